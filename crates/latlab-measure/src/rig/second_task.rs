//! A second task on the CPUs of a sampler, which the measuring thread switches to, preempts or
//! waits for.

use super::Sampler;
use super::coordination::Coordination;
use latlab_part::failure::failed;
use latlab_sys::sched::{self, Policy};
use latlab_sys::{memory, signal};
use std::io;

/// The second task's view of the measurement it takes part in.
pub struct SecondTask<'a> {
    coordination: &'a Coordination,
    index: usize,
}

impl SecondTask<'_> {
    /// Whether to go on. To be checked after each wait, which a request to stop interrupts.
    #[inline]
    pub fn running(&self) -> bool {
        !self.coordination.is_stopped(self.index)
    }

    /// Calls `wait` again after each signal, until it returns true. Returns false if the task is to
    /// stop.
    #[inline]
    pub fn wait_for(&self, wait: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
        self.coordination.wait_for(self.index, wait)
    }
}

/// Stops the second tasks of a sampler when dropped, however the measurement ends.
pub(super) struct StopSecondTasks<'a>(pub(super) &'a Coordination, pub(super) usize);

impl StopSecondTasks<'_> {
    /// Measures with `body`, then stops the tasks. Its failure is reported first: after a request to
    /// stop, it would count as a wait that was interrupted in order to stop.
    pub(super) fn after(self, body: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let StopSecondTasks(coordination, index) = &self;
        body().inspect_err(|error| {
            if !coordination.is_stopped(*index) {
                coordination.fail(failed("measuring beside other tasks of the probe", error));
            }
        })
    }
}

impl Drop for StopSecondTasks<'_> {
    fn drop(&mut self) {
        self.0.stop(self.1);
        // The monitoring thread then interrupts whatever the tasks wait for.
        signal::notify();
    }
}

impl Sampler<'_> {
    /// Measures with `body` while `task` runs on another thread, with this policy and bound to the
    /// same CPUs. When `body` returns, the task is told to stop, and its sleep is interrupted. A
    /// task that fails, or ends earlier, ends the probe.
    ///
    /// Calls can be nested for more tasks.
    pub fn with_second_task(
        &mut self,
        policy: Policy,
        task: impl FnOnce(&SecondTask<'_>) -> io::Result<()> + Send,
        body: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let (coordination, index) = (self.coordination, self.index());
        std::thread::scope(|scope| {
            let run = move || {
                let _registered = coordination.register_second_task(index);
                memory::touch_stack();
                let result = sched::set_policy(policy)
                    .and_then(|()| task(&SecondTask { coordination, index }));
                // A wait that was interrupted in order to stop is not a failure.
                if let Err(error) = result
                    && !coordination.is_stopped(index)
                {
                    coordination.fail(failed("a second task of the probe", error));
                }
            };
            StopSecondTasks(coordination, index).after(|| {
                let thread = std::thread::Builder::new().name("second-task".to_owned());
                thread.stack_size(512 * 1024).spawn_scoped(scope, run)?;
                body(self)
            })
        })
    }
}
