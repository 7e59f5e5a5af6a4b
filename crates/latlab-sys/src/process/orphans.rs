//! The processes that a program leaves behind when it ends: this process adopts them, knows when they
//! have ended, and ends them.

use super::descendants::{adopt_orphans, children_of, has_children, own};
use crate::{clock, procfs};
use latlab_core::time::Nanos;
use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::BTreeSet;
use std::io;

/// The processes that programs leave to this process, which is their parent from then on. Its
/// earlier children are not among them: a shell leaves some to the program that replaces it.
#[derive(Debug)]
pub struct Orphans {
    before: BTreeSet<i32>,
}

impl Orphans {
    /// Adopts all descendants whose parents end from now on.
    pub fn adopt() -> io::Result<Orphans> {
        let before = if has_children() { children_of(&[own()]) } else { Vec::new() };
        adopt_orphans()?;
        Ok(Orphans { before: before.into_iter().collect() })
    }

    /// Whether some have not ended. Reaps the ended ones: all `Child` values of this process must
    /// have been dropped.
    pub fn are_left(&self) -> bool {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        has_children() && (self.before.is_empty() || !self.children().is_empty())
    }

    /// The IDs of the orphans that have not ended, and of their descendants.
    pub fn left(&self) -> Vec<u32> {
        let mut all = self.children();
        let mut newest = all.clone();
        while !newest.is_empty() {
            newest = children_of(&newest);
            newest.retain(|child| !all.contains(child));
            all.extend(&newest);
        }
        all.sort_unstable();
        all.into_iter()
            .filter(|task| !has_ended(*task))
            .filter_map(|id| id.try_into().ok())
            .collect()
    }

    /// Asks each of them to end (SIGTERM), waits for at most `patience`, and kills those that remain.
    /// One in uninterruptible sleep ends later.
    pub fn end(&self, patience: Nanos) {
        let mut asked = BTreeSet::new();
        self.signal_until(clock::now() + patience, |child| asked.insert(child), Signal::TERM);
        self.signal_until(clock::now() + patience, |_| true, Signal::KILL);
    }

    /// Sends a signal to each child for which `is_due`, until all have ended or the time is over.
    /// The orphans of ended children follow.
    fn signal_until(&self, time: Nanos, mut is_due: impl FnMut(i32) -> bool, signal: Signal) {
        while self.are_left() && clock::now() < time {
            // A child that has ended and is not reaped keeps its ID.
            for child in self.children().into_iter().filter(|child| is_due(*child)) {
                let _ =
                    Pid::from_raw(child).map(|child| rustix::process::kill_process(child, signal));
            }
            clock::sleep_for(Nanos::from_millis(1));
        }
    }

    fn children(&self) -> Vec<i32> {
        let mut children = children_of(&[own()]);
        children.retain(|child| !self.before.contains(child));
        children
    }
}

fn has_ended(process: i32) -> bool {
    const STATE: usize = 3;
    !procfs::stat_field(process, STATE).is_ok_and(|state: char| state != 'Z' && state != 'X')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Running, command};
    use latlab_testing::wait_at_most;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// cargo-nextest runs each test in a process of its own; elsewhere, tests beside this one have
    /// children, which are reaped.
    #[test]
    fn process_that_a_program_leaves_is_known_and_ended() {
        if std::env::var_os("NEXTEST").is_none() {
            return;
        }
        let mut earlier = Running::start(command("sleep").arg("1000")).unwrap();
        let orphans = Orphans::adopt().unwrap();
        assert!(!orphans.are_left());
        let mut shell = command("sh");
        let mut program =
            Running::start(shell.args(["-c", "(sleep 1000 & sleep 1000; :) &"])).unwrap();
        wait_at_most(PATIENCE, "the shell ends", || program.child().try_wait().unwrap().is_some());
        assert!(orphans.are_left());
        wait_at_most(PATIENCE, "the second shell starts its two", || orphans.left().len() == 3);
        orphans.end(Nanos::from_secs(60));
        assert_eq!((orphans.are_left(), orphans.left()), (false, Vec::new()));
        assert!(earlier.child().try_wait().unwrap().is_none());
    }
}
