//! Tasks that are runnable all the time on the CPUs of a sampler.

use super::Sampler;
use super::coordination::Coordination;
use super::second_task::StopSecondTasks;
use latlab_core::time::Nanos;
use latlab_part::failure::failed;
use latlab_sys::{clock, sched};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{Builder, Scope};

/// The runnable tasks of the sampler with this index.
struct RunnableTasks<'a> {
    coordination: &'a Coordination,
    index: usize,
    /// Number of tasks that have started.
    started: AtomicU32,
}

impl Sampler<'_> {
    /// Measures with `body` while `tasks` ordinary tasks compute on the same CPUs, and stops the
    /// sampler. They run at nice 19, because an observer may have to run on these CPUs as well.
    pub fn with_runnable_tasks(
        &mut self,
        tasks: u32,
        body: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let (coordination, index) = (self.coordination, self.index());
        let runnable = RunnableTasks { coordination, index, started: AtomicU32::new(0) };
        std::thread::scope(|scope| {
            StopSecondTasks(coordination, index).after(|| {
                (0..tasks).try_for_each(|_| runnable.spawn(scope))?;
                runnable.wait_until_started(tasks)?;
                body(self)
            })
        })
    }
}

impl RunnableTasks<'_> {
    fn spawn<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        let thread = Builder::new().name("runnable".to_owned()).stack_size(64 * 1024);
        thread.spawn_scoped(scope, || self.run()).map(drop)
    }

    /// Body of one task. It starts with the policy of the measuring thread, so that all tasks have
    /// started as soon as that thread sleeps, and none waits behind tasks that already compute.
    fn run(&self) {
        let _registered = self.coordination.register_second_task(self.index);
        self.started.fetch_add(1, Relaxed);
        if let Err(error) = sched::set_nice(19) {
            return self.coordination.fail(failed("a runnable task", error));
        }
        while !self.coordination.is_stopped(self.index) {
            compute();
        }
    }

    /// Waits until all tasks have started or the sampler is to stop.
    fn wait_until_started(&self, tasks: u32) -> io::Result<()> {
        const TIMEOUT: Nanos = Nanos::from_secs(20);
        let deadline = clock::now() + TIMEOUT;
        while self.started.load(Relaxed) < tasks && !self.coordination.is_stopped(self.index) {
            if clock::now() > deadline {
                let started = self.started.load(Relaxed);
                let why = format!("only {started} of {tasks} runnable tasks ran within {TIMEOUT}");
                return Err(io::Error::other(why));
            }
            clock::wait_for(Nanos::from_millis(1))?;
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
