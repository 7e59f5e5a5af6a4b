//! Tasks that are runnable all the time on the CPUs of a sampler.

use super::Sampler;
use super::coordination::Coordination;
use crate::failure::failed;
use latlab_core::time::Nanos;
use latlab_sys::{clock, sched};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::{Builder, Scope};

/// Number of tasks that have started, and whether they are to end.
#[derive(Default)]
struct RunnableTasks {
    started: AtomicU32,
    stop: AtomicBool,
}

/// Stops the tasks when dropped, however the measurement ends.
struct StopRunnableTasks<'a>(&'a RunnableTasks);

impl Drop for StopRunnableTasks<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Relaxed);
    }
}

impl Sampler<'_> {
    /// Measures with `body` while `tasks` ordinary tasks compute on the same CPUs. They run at nice
    /// 19, because an observer may have to run on these CPUs as well.
    pub(crate) fn with_runnable_tasks(
        &mut self,
        tasks: u32,
        body: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let (coordination, index, runnable) =
            (self.coordination, self.index(), RunnableTasks::default());
        std::thread::scope(|scope| {
            let _stop = StopRunnableTasks(&runnable);
            (0..tasks).try_for_each(|_| runnable.spawn(scope, coordination))?;
            runnable.wait_until_started(tasks, || coordination.is_stopped(index))?;
            body(self)
        })
    }
}

impl RunnableTasks {
    fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        coordination: &'scope Coordination,
    ) -> io::Result<()> {
        let thread = Builder::new().name("runnable".to_owned()).stack_size(64 * 1024);
        thread.spawn_scoped(scope, || self.run(coordination)).map(drop)
    }

    /// Body of one task. It starts with the policy of the measuring thread, so that all tasks have
    /// started as soon as that thread sleeps, and none waits behind those that already compute.
    fn run(&self, coordination: &Coordination) {
        self.started.fetch_add(1, Relaxed);
        if let Err(error) = sched::set_nice(19) {
            return coordination.fail(failed("a runnable task", error));
        }
        while !self.stop.load(Relaxed) {
            compute();
        }
    }

    /// Waits until all tasks have started or the sampler is to stop.
    fn wait_until_started(&self, tasks: u32, is_stopped: impl Fn() -> bool) -> io::Result<()> {
        const TIMEOUT: Nanos = Nanos::from_secs(20);
        let deadline = clock::now() + TIMEOUT;
        while self.started.load(Relaxed) < tasks && !is_stopped() {
            if clock::now() > deadline {
                let started = self.started.load(Relaxed);
                let why = format!("only {started} of {tasks} runnable tasks ran within {TIMEOUT}");
                return Err(io::Error::other(why));
            }
            clock::sleep_for(Nanos::from_millis(1));
        }
        Ok(())
    }
}

/// Computes for some microseconds, as the load of Heursch et al. 2001 does (section 4). With a pause
/// instruction instead, a guest of the laboratory runs many times slower.
fn compute() {
    for number in 0..1000_u32 {
        std::hint::black_box(f64::from(number).sqrt());
    }
}
