//! Sleeping threads: an event to wait for, and a count that a busy machine does not change.

use crate::wait_at_most;
use std::fs;
use std::time::Duration;

/// Waits until a thread of this process sleeps, as one does that waits for something.
pub fn wait_until_asleep(thread: i32) {
    let path = format!("/proc/self/task/{thread}/stat");
    wait_at_most(Duration::from_secs(20), "the thread sleeps", || {
        state(&fs::read_to_string(&path).expect("the thread lives")) == Some('S')
    });
}

/// Number of times that the calling thread has slept, whatever it waited for: its voluntary
/// context switches (`proc_pid_status(5)`). Waiting for a CPU is none.
pub fn times_asleep() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").expect("/proc is mounted");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).expect("it is a number")
}

/// The state in the text of a thread's `stat`, where it follows the name in parentheses.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn state_follows_a_name_of_any_characters() {
        assert_eq!(state("12 (a) R (b) S 1 12"), Some('S'));
        assert_eq!(state("12 (a"), None);
    }

    #[test]
    fn sleep_of_a_thread_is_seen_and_counted() {
        let (sender, id) = mpsc::channel();
        let (wake, woken) = mpsc::channel::<()>();
        let sleeper = thread::spawn(move || {
            let link = fs::read_link("/proc/thread-self").unwrap();
            let before = times_asleep();
            sender.send(link.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
            let _ = woken.recv();
            times_asleep() - before
        });
        wait_until_asleep(id.recv().unwrap());
        drop(wake);
        assert!(sleeper.join().unwrap() >= 1);
    }
}
