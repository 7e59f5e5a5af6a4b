//! The real-time tasks of programs, read from /proc whenever the kernel reports that they may have
//! changed.

use super::task_events::TaskEvents;
use latlab_core::time::Nanos;
use latlab_mechanism::RealTimeTask;
use latlab_sys::root::Root;
use latlab_sys::rt_task_events::{self, RtTaskEventsError};
use latlab_sys::{clock, process};
use std::io;
use std::os::fd::BorrowedFd;

/// The real-time tasks as of the last scan of /proc.
#[derive(Debug)]
pub(super) struct RealTimeTasks {
    events: TaskEvents,
    /// Whether an event has arrived since the last scan.
    outdated: bool,
    list: TaskList,
    scanned: Nanos,
    /// Duration of the last scan.
    scan_cost: Nanos,
}

/// The tasks that were found last.
#[derive(Debug, Default)]
struct TaskList {
    tasks: Vec<RealTimeTask>,
    /// A warning that a scan failed, until it is reported.
    problem: Option<String>,
    /// Whether a scan has failed before.
    failed: bool,
}

/// Interval between scans without an event, with and without real-time tasks. They find tasks whose
/// event was lost, and tasks that had not ended yet when their event arrived.
const RESCAN: Nanos = Nanos::from_millis(250);
const RESCAN_NONE: Nanos = Nanos::from_secs(1);
/// Scans may take this fraction of the time, as 1/N: scans without an event, and all scans.
const SHARE_WITHOUT_EVENT: u64 = 100;
const SHARE: u64 = 10;

impl RealTimeTasks {
    /// Starts to receive events, and scans for the first time.
    pub(super) fn start(root: &Root) -> Result<RealTimeTasks, RtTaskEventsError> {
        // Events take up to four descriptors per CPU. If the limit can't be raised, opening them
        // fails and says so.
        let _ = process::raise_file_limit();
        let events = TaskEvents::start(root)?;
        let (list, scanned, scan_cost) = (TaskList::default(), Nanos(0), Nanos(0));
        let mut all = RealTimeTasks { events, outdated: true, list, scanned, scan_cost };
        all.scan();
        Ok(all)
    }

    /// A warning that has not been reported yet.
    pub(super) fn problem(&mut self) -> Option<String> {
        self.events.problem().or_else(|| self.list.problem.take())
    }

    /// The tasks, scanned again if they may have changed, and whether they were.
    pub(super) fn update(&mut self) -> (&[RealTimeTask], bool) {
        self.outdated |= self.events.follow_cpus(RESCAN_NONE);
        let rescan = self.is_rescan_due() || (self.outdated && self.pause() == Nanos(0));
        if rescan {
            self.scan();
        }
        (&self.list.tasks, rescan)
    }

    /// Requests a scan by the next update, if this task is unknown.
    pub(super) fn expect(&mut self, task: i32) {
        self.outdated |= self.list.tasks.iter().all(|known| known.id != task);
    }

    /// Waits until there is something to scan or `other` can be read, at most `at_most`. Whether
    /// there is something to scan now.
    pub(super) fn wait(&mut self, at_most: Nanos, other: Option<BorrowedFd<'_>>) -> bool {
        if self.outdated {
            // Tasks change faster than they may be scanned.
            rt_task_events::wait_for(other, self.pause().min(at_most));
        } else {
            self.outdated = self.events.wait(at_most, other);
        }
        self.outdated && self.pause() == Nanos(0)
    }

    /// Whether an event has arrived since the last scan.
    pub(super) fn is_outdated(&self) -> bool {
        self.outdated
    }

    fn is_rescan_due(&self) -> bool {
        let interval = if self.list.tasks.is_empty() { RESCAN_NONE } else { RESCAN };
        let least = Nanos(self.scan_cost.0 * SHARE_WITHOUT_EVENT);
        clock::now() - self.scanned >= interval.max(least)
    }

    /// Time until the next scan is allowed.
    fn pause(&self) -> Nanos {
        Nanos(self.scan_cost.0 * SHARE) - (clock::now() - self.scanned)
    }

    fn scan(&mut self) {
        let begin = clock::now();
        // An event during the scan may come too late for it.
        self.outdated = false;
        self.list.update(rt_task_events::realtime_tasks());
        self.scanned = clock::now();
        self.scan_cost = self.scanned - begin;
    }
}

impl TaskList {
    /// Replaces the tasks by the tasks that a scan found. If the scan failed, they stay as they
    /// are, and the first failure leads to a warning.
    fn update(&mut self, found: io::Result<Vec<RealTimeTask>>) {
        match found {
            Ok(tasks) => self.tasks = tasks,
            Err(error) if !self.failed => {
                self.failed = true;
                self.problem = Some(format!(
                    "real-time tasks can't be listed: {error}; those that were found last count \
                     until they can"
                ));
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_tasks_that_can_not_be_read_is_warned_of_once() {
        let task = RealTimeTask { id: 1, process: 1, name: "player".to_owned(), priority: 50 };
        let mut list = TaskList::default();
        list.update(Ok(vec![task]));
        assert_eq!(list.problem, None);
        list.update(Err(io::ErrorKind::Other.into()));
        assert_eq!(list.tasks.len(), 1, "it stays");
        assert!(list.problem.take().unwrap().starts_with("real-time tasks can't be listed: "));
        list.update(Err(io::ErrorKind::Other.into()));
        assert_eq!(list.problem, None);
    }
}
