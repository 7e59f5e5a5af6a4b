//! The real-time threads of a machine, from `/proc/PID/task/TID/stat`.

use crate::root::Root;
use latlab_core::machine::RealtimeThread;

/// The tasks of a machine.
pub(super) struct Tasks {
    /// The real-time threads that may compete with a measurement.
    pub(super) realtime: Vec<RealtimeThread>,
    /// The number of real-time threads left out, because every machine has them.
    pub(super) per_cpu: u32,
    /// Whether irqbalance runs, which moves interrupts between CPUs.
    pub(super) irqbalance: bool,
}

/// Kernel threads that exist for each CPU on every machine.
const PER_CPU: &[&str] = &["migration/", "watchdog/", "idle_inject/"];

/// `PF_KTHREAD` of `linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The tasks except latlab's own; None where no processes are visible.
pub(super) fn read(root: &Root) -> Option<Tasks> {
    let own = root.text("proc/self/stat").as_deref().and_then(number);
    let processes = root.numbered("proc", "");
    if processes.is_empty() {
        return None;
    }
    let mut tasks = Tasks { realtime: Vec::new(), per_cpu: 0, irqbalance: false };
    for (pid, _) in processes.into_iter().filter(|(pid, _)| Some(*pid) != own) {
        for (_, tid) in root.numbered(format!("proc/{pid}/task"), "") {
            // A thread may have ended since it was listed.
            if let Some(stat) = root.text(format!("proc/{pid}/task/{tid}/stat")) {
                tasks.add(pid, &stat);
            }
        }
    }
    Some(tasks)
}

impl Tasks {
    fn add(&mut self, pid: u32, stat: &str) {
        self.irqbalance |= stat.contains("(irqbalance)");
        match thread(pid, stat) {
            Some(thread) if is_per_cpu(&thread) => self.per_cpu += 1,
            Some(thread) => self.realtime.push(thread),
            None => {}
        }
    }
}

fn is_per_cpu(thread: &RealtimeThread) -> bool {
    thread.kernel && PER_CPU.iter().any(|name| thread.comm.starts_with(name))
}

fn number(stat: &str) -> Option<u32> {
    stat.split_whitespace().next()?.parse().ok()
}

/// The thread of a line as in `proc_pid_stat(5)`, if it is a real-time thread. Its name, in
/// parentheses, may contain blanks and parentheses: columns are counted from the last parenthesis.
fn thread(pid: u32, stat: &str) -> Option<RealtimeThread> {
    let (head, tail) = stat.rsplit_once(')')?;
    let columns: Vec<&str> = tail.split_whitespace().collect();
    // The first column here is the third there.
    let column = |n: usize| columns.get(n - 3)?.parse::<u64>().ok();
    let policy = match column(41)? {
        1 => "fifo",
        2 => "rr",
        6 => "deadline",
        _ => return None,
    };
    Some(RealtimeThread {
        comm: head.split_once('(')?.1.to_owned(),
        pid,
        tid: number(head)?,
        policy: policy.to_owned(),
        priority: u32::try_from(column(40)?).ok()?,
        kernel: column(9)? & KERNEL_THREAD != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_may_have_any_name() {
        let tail = "S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 9 0 0 0 0 0 0 0 0 0 0 \
                    2147483647 0 0 0 0 17 1 50 1 0 0 0";
        let found = thread(7, &format!("8 (a) (b c) {tail}")).unwrap();
        assert_eq!((found.comm.as_str(), found.pid, found.tid), ("a) (b c", 7, 8));
        assert_eq!((found.policy.as_str(), found.priority, found.kernel), ("fifo", 50, true));
        assert_eq!(thread(7, &format!("8 (x) {}", tail.replace("50 1 0", "0 0 0"))), None);
        assert_eq!(thread(7, "8 (x"), None);
        assert_eq!(thread(7, ""), None);
    }
}
