//! The processes that a program leaves when it ends, as one does that becomes a daemon: they are watched
//! until they end.

use super::watch::{PACE, PATIENCE, Watching};
use crate::explain::proc;
use latlab_check::some_of;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_sys::clock;
use latlab_sys::process::Orphans;
use latlab_sys::root::Root;
use latlab_sys::signal::{self, Signals};

/// Time for which processes without a real-time thread are watched: one of them may become real-time yet.
const PATIENCE_FOR_REALTIME: Nanos = Nanos::from_secs(10);

/// How watching them ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The last one ended.
    Ended,
    /// The time is over, or the user ended it: latlab ended them.
    Stopped,
    /// None of them was real-time. They run on.
    Ordinary,
}

impl Watching {
    /// Watches the processes that a program has left, if there are any, and says so. `end` says how the
    /// program ended. Returns what became of them.
    pub(super) fn watch_left(
        &mut self,
        orphans: &Orphans,
        end: &str,
        (length, signals): (Option<Nanos>, &Signals),
        say: &dyn Fn(&str),
    ) -> Result<Option<String>> {
        if !orphans.are_left() {
            return Ok(None);
        }
        let names: Vec<String> = orphans.left().into_iter().map(name).collect();
        let names = some_of(&names);
        say(&format!("{end}; watching the processes that it left: {names}"));
        let mut is_realtime_since = clock::now();
        let outcome = loop {
            if self.is_over(length) || signals.wait(PACE) == signal::Event::End {
                self.stop()?;
                orphans.end(PATIENCE);
                break Outcome::Stopped;
            }
            self.read()?;
            if !orphans.are_left() {
                break Outcome::Ended;
            }
            if !self.any_policy && clock::now() - is_realtime_since >= PATIENCE_FOR_REALTIME {
                if !orphans.left().into_iter().any(has_realtime_thread) {
                    break Outcome::Ordinary;
                }
                is_realtime_since = clock::now();
            }
        };
        Ok(Some(result(&names, outcome, self.elapsed())))
    }
}

/// What became of the processes with these names, that long after the start of the program.
fn result(names: &str, outcome: Outcome, elapsed: Nanos) -> String {
    let what = format!("the processes that it left ({names})");
    match outcome {
        Outcome::Ended => format!("{what} ended after {elapsed}"),
        Outcome::Stopped => format!("{what} were ended after {elapsed}"),
        Outcome::Ordinary => {
            format!("{what} run on: none was real-time for {PATIENCE_FOR_REALTIME}")
        }
    }
}

/// The name of a process, and its ID.
fn name(pid: u32) -> String {
    let comm = Root::default().text(format!("proc/{pid}/comm")).unwrap_or_default();
    format!("{comm} [{pid}]")
}

fn has_realtime_thread(pid: u32) -> bool {
    proc::threads(pid).is_ok_and(|threads| threads.into_iter().any(proc::is_realtime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_says_what_became_of_the_processes() {
        let of = |outcome| result("daemon [7]", outcome, Nanos::from_secs(3));
        let what = "the processes that it left (daemon [7])";
        assert_eq!(of(Outcome::Ended), format!("{what} ended after 3 s"));
        assert_eq!(of(Outcome::Stopped), format!("{what} were ended after 3 s"));
        assert_eq!(of(Outcome::Ordinary), format!("{what} run on: none was real-time for 10 s"));
    }

    #[test]
    fn process_of_the_tests_is_named_and_ordinary() {
        let own = std::process::id();
        assert!(name(own).ends_with(&format!(" [{own}]")) && name(own).len() > 5);
        assert!(!has_realtime_thread(own));
    }
}
