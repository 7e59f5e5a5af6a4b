//! Kernel events that real-time tasks may have started, ended, or changed their policy.

use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::rt_task_events::{RtTaskEvents, RtTaskEventsError};
use latlab_sys::{clock, cpu};
use std::os::fd::BorrowedFd;

/// The events of all online CPUs.
#[derive(Debug)]
pub(super) struct TaskEvents {
    root: Root,
    events: RtTaskEvents,
    /// CPUs whose events are received.
    cpus: CpuList,
    /// Time at which `cpus` was last compared with the online CPUs.
    cpus_checked: Nanos,
    /// A warning that receiving events slows system calls down, until it is reported.
    slow_calls: Option<String>,
    /// A warning that events of new CPUs are not received.
    unwatched: Option<Unwatched>,
}

#[derive(Debug)]
struct Unwatched {
    warning: String,
    reported: bool,
}

/// Interval between two looks at the online CPUs.
const CHECK_CPUS: Nanos = Nanos::from_secs(1);

impl TaskEvents {
    pub(super) fn start(root: &Root) -> Result<TaskEvents, RtTaskEventsError> {
        let (root, cpus) = (root.clone(), cpu::online(root));
        let events = RtTaskEvents::listen(&root, &cpus)?;
        let slow_calls = slow_calls(&events);
        let cpus_checked = clock::now();
        Ok(TaskEvents { root, events, cpus, cpus_checked, slow_calls, unwatched: None })
    }

    /// Once a second, opens the events again if the online CPUs have changed: the events of a CPU
    /// that goes offline end for good. Whether events may have been missed. If new CPUs can't be
    /// watched, real-time tasks on them are detected `delay` late.
    pub(super) fn follow_cpus(&mut self, delay: Nanos) -> bool {
        let now = clock::now();
        if now < self.cpus_checked + CHECK_CPUS {
            return false;
        }
        self.cpus_checked = now;
        let cpus = cpu::online(&self.root);
        if cpus == self.cpus {
            return false;
        }
        match RtTaskEvents::listen(&self.root, &cpus) {
            Ok(events) => {
                self.replace(events, cpus);
                return true;
            }
            // The old events remain; the next call tries again.
            Err(why) if cpus == cpu::online(&self.root) => {
                let reported = self.unwatched.as_ref().is_some_and(|old| old.reported);
                let warning = format!(
                    "real-time tasks on new CPUs are detected up to {delay} late (online CPUs: \
                     {cpus}): {why}"
                );
                self.unwatched = Some(Unwatched { warning, reported });
            }
            // A CPU has gone offline in the meantime.
            Err(_) => {}
        }
        false
    }

    fn replace(&mut self, events: RtTaskEvents, cpus: CpuList) {
        // A slowdown from the beginning has been reported.
        if self.events.slows_calls().is_none() {
            self.slow_calls = slow_calls(&events);
        }
        (self.events, self.cpus, self.unwatched) = (events, cpus, None);
    }

    /// A warning that has not been reported yet.
    pub(super) fn problem(&mut self) -> Option<String> {
        if let Some(warning) = self.slow_calls.take() {
            return Some(warning);
        }
        let unwatched = self.unwatched.as_mut().filter(|unwatched| !unwatched.reported)?;
        unwatched.reported = true;
        Some(unwatched.warning.clone())
    }

    /// Waits for an event, or until `other` can be read, at most `at_most`. Whether there was an
    /// event.
    pub(super) fn wait(&self, at_most: Nanos, other: Option<BorrowedFd<'_>>) -> bool {
        self.events.wait(at_most, other)
    }
}

fn slow_calls(events: &RtTaskEvents) -> Option<String> {
    let fallback = "falling back to sys_exit tracepoints to detect sched_setscheduler(), which \
                    slows all system calls down";
    events.slows_calls().map(|why| format!("{fallback}: {why}"))
}
