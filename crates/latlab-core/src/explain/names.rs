//! Names of culprits for users.

use super::charge::Culprit;
use super::lock::{Access, LockAddress, LockWait, Owner, is_taker};
use super::{Line, Task};
use crate::symbols::{Symbol, Symbols};
use std::collections::BTreeMap;

/// The names of a machine's kernel functions and interrupts.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The functions of the kernel; empty where they are hidden.
    pub symbols: Symbols,
    /// Its variables; empty where they are hidden.
    pub variables: Symbols,
    /// The name of each device interrupt in /proc/interrupts.
    pub interrupts: BTreeMap<u32, String>,
}

/// The softirqs by number, as in /proc/softirqs.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Functions that only enable interrupts or preemption, switch contexts, read the clock or trace:
/// the culprit is the function that called them.
const TOOLS: &[&str] = &[
    "__bpf_",
    "__cond_resched",
    "__const_udelay",
    "__local_bh_enable",
    "__preempt_schedule",
    "__raw_spin_unlock",
    "__schedule",
    "__traceiter_",
    "__x86_",
    "_raw_read_unlock",
    "_raw_spin_unlock",
    "_raw_write_unlock",
    "arch_local_irq",
    "arm64_preempt_",
    "asm_",
    "bpf_",
    "delay_",
    "dynamic_",
    "el0_",
    "el0t_",
    "el1_",
    "el1h_",
    "irqentry_exit",
    "ktime_get",
    "kvm_clock_",
    "native_irq_enable",
    "preempt_count_sub",
    "preempt_schedule",
    "pvclock_",
    "raw_irqentry_exit",
    "read_tsc",
    "rt_read_unlock",
    "rt_spin_unlock",
    "rt_write_unlock",
    "schedule",
    "sysvec_",
    "trace_hardirqs_on",
    "trace_preempt_on",
];

/// Returns the culprit in a stack of function names, innermost first.
pub fn culprit<T: AsRef<str>>(stack: &[T]) -> Option<&str> {
    stack.iter().map(AsRef::as_ref).find(|name| !is_tool(name)).or(stack.first().map(AsRef::as_ref))
}

fn is_tool(function: &str) -> bool {
    TOOLS.iter().any(|tool| function.starts_with(tool))
}

/// Names a variable, with the offset of the address within it.
fn variable(symbol: &Symbol<'_>) -> String {
    match (symbol.offset, symbol.module) {
        (0, None) => symbol.function.to_owned(),
        (0, Some(module)) => format!("{} [{module}]", symbol.function),
        _ => symbol.to_string(),
    }
}

/// Describes the priority of a task, from the kernel's number.
fn priority(prio: i16) -> String {
    match prio {
        ..0 => "deadline".to_owned(),
        0..100 => format!("real-time priority {}", 99 - prio),
        100.. => format!("nice {}", prio - 120),
    }
}

impl Names {
    /// Returns the name of a culprit: the lock with its owner, the interrupt, the softirq, or the
    /// task with its thread id.
    pub fn culprit(&self, culprit: &Culprit) -> String {
        if let Some(wait) = &culprit.lock {
            return self.lock(wait, culprit, |Owner { task, cpu, .. }| {
                let priority = priority(task.prio);
                format!("{} (pid {}, {priority}, CPU {cpu})", task.comm, task.pid)
            });
        }
        self.named(culprit, |task| format!("{} (pid {})", task.comm, task.pid))
    }

    /// Returns the name without the thread id, so that all runs of one program count together.
    pub fn kind(&self, culprit: &Culprit) -> String {
        if let Some(wait) = &culprit.lock {
            return self.lock(wait, culprit, |owner| owner.task.comm.to_string());
        }
        self.named(culprit, |task| task.comm.to_string())
    }

    fn named(&self, culprit: &Culprit, named: impl Fn(Task) -> String) -> String {
        if let Some(quota) = &culprit.quota {
            return quota.clone();
        }
        if let Some(stop) = culprit.stop {
            return stop.name(culprit.task.map(named).as_deref());
        }
        match (culprit.line, culprit.softirq, culprit.task) {
            (Some(line), ..) => match culprit.sender {
                Some((task, cpu)) => {
                    let sender = Culprit { task: Some(task), ..Culprit::default() };
                    let sender = self.named(&sender, named);
                    format!("{} by {sender} on CPU {cpu}", self.interrupt(line))
                }
                None => self.interrupt(line),
            },
            (None, Some(number), _) => softirq(number),
            (None, None, Some(task)) if task.is_idle() => "the idle task".to_owned(),
            (None, None, Some(task)) => match culprit.behind {
                Some(front) => format!("{} behind {}", named(task), named(front)),
                None => named(task),
            },
            (None, None, None) => String::new(),
        }
    }

    /// Names a lock and its owner: `mutex rtnl_mutex held by ip`.
    fn lock(&self, wait: &LockWait, culprit: &Culprit, named: impl Fn(&Owner) -> String) -> String {
        let functions: Vec<String> =
            culprit.stack.iter().filter_map(|address| self.short(*address)).collect();
        let mut text = wait.kind.name(&functions).to_owned();
        let owner = wait.owner.as_ref();
        match (wait.place, owner) {
            (LockAddress::OwnMemory, _) => text += " mmap_lock of its own process",
            (LockAddress::OwnersMemory, Some(owner)) => {
                text = format!("{text} mmap_lock of {}", owner.task.comm);
            }
            (LockAddress::At(address), _) => {
                if let Some(symbol) = self.variables.find(address) {
                    text = format!("{text} {}", variable(&symbol));
                }
            }
            (LockAddress::OwnersMemory, None) => {}
        }
        text += match wait.kind.access() {
            Some(Access::Read) => " for reading",
            Some(Access::Write) => " for writing",
            None => "",
        };
        match owner {
            Some(owner) if owner.is_reader => {
                format!("{text} held by readers, the last {}", named(owner))
            }
            Some(owner) => format!("{text} held by {}", named(owner)),
            None => text,
        }
    }

    /// The functions of a stack; of the wait for a lock from the one on that called for it.
    fn callers<'a>(&self, culprit: &'a Culprit) -> &'a [u64] {
        let is_part = |address: &u64| {
            self.symbols
                .find(*address)
                .is_some_and(|symbol| is_taker(symbol.function) || is_tool(symbol.function))
        };
        let first = culprit.stack.iter().position(|address| !is_part(address));
        match (culprit.lock, first) {
            (Some(_), Some(first)) => &culprit.stack[first..],
            _ => &culprit.stack,
        }
    }

    pub(super) fn interrupt(&self, line: Line) -> String {
        match line {
            Line::Timer => "timer interrupt".to_owned(),
            Line::Reschedule => "reschedule interrupt".to_owned(),
            Line::Call => "function call interrupt".to_owned(),
            Line::Unknown => "an interrupt".to_owned(),
            Line::Device(number) => match self.interrupts.get(&number) {
                Some(name) => format!("interrupt {number} ({name})"),
                None => format!("interrupt {number}"),
            },
        }
    }

    /// Returns the function to blame, where the kernel's symbols are known.
    pub fn function(&self, culprit: &Culprit) -> Option<String> {
        let all = self.callers(culprit).iter().filter_map(|address| self.short(*address));
        self::culprit(&all.collect::<Vec<_>>()).map(str::to_owned)
    }

    /// Returns all functions with their offsets, innermost first.
    pub fn stack(&self, culprit: &Culprit) -> Vec<String> {
        if self.symbols.is_empty() {
            return Vec::new();
        }
        let named = |address: &u64| match self.symbols.find(*address) {
            Some(symbol) => symbol.to_string(),
            None => format!("{address:#x}"),
        };
        self.callers(culprit).iter().map(named).collect()
    }

    /// Returns cause, culprit and functions, outermost first, as one line of folded stacks for
    /// flame graphs.
    pub fn folded(&self, cause: &str, culprit: &Culprit) -> String {
        let stack = self.callers(culprit).iter().rev();
        let functions = stack.filter_map(|address| self.short(*address));
        let frames = [cause.to_owned(), self.kind(culprit)].into_iter().chain(functions);
        let frames = frames.filter(|frame| !frame.is_empty());
        // A semicolon separates frames, and a newline separates stacks.
        let frames = frames.map(|frame| frame.replace([';', '\n'], ":"));
        frames.collect::<Vec<_>>().join(";")
    }

    pub(super) fn short(&self, address: u64) -> Option<String> {
        let symbol = self.symbols.find(address)?;
        Some(match symbol.module {
            Some(module) => format!("{} [{module}]", symbol.function),
            None => symbol.function.to_owned(),
        })
    }
}

pub(super) fn softirq(number: u8) -> String {
    SOFTIRQS
        .get(usize::from(number))
        .map_or_else(|| format!("softirq {number}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use crate::explain::any::{self, task};
    use crate::explain::lock::LockKind;
    use crate::explain::stop::StopKind;

    fn names() -> Names {
        let text = "1000 T __schedule\n2000 T preempt_schedule_irq\n3000 t copy_page_range\n\
                    4000 t spin_loop\t[latlab]\n5000 T mutex_lock\n6000 T rt_spin_lock\n\
                    7000 d rtnl_mutex\n8000 b latlab_mutex\t[latlab]\n";
        let interrupts = BTreeMap::from([(24, "virtio0-input".to_owned())]);
        let symbols = Symbols::parse(text).unwrap();
        Names { symbols, variables: Symbols::variables(text).unwrap(), interrupts }
    }

    #[test]
    fn culprits_of_each_kind_have_a_name() {
        let line = |line| names().culprit(&Culprit { line: Some(line), ..Culprit::default() });
        assert_eq!(line(Line::Device(24)), "interrupt 24 (virtio0-input)");
        assert_eq!(line(Line::Device(9)), "interrupt 9");
        assert_eq!(line(Line::Timer), "timer interrupt");
        let sender = Some((task(7), 1));
        let call = Culprit { line: Some(Line::Call), sender, ..Culprit::default() };
        assert_eq!(names().culprit(&call), "function call interrupt by task (pid 7) on CPU 1");
        assert_eq!(names().kind(&call), "function call interrupt by task on CPU 1");
        let softirq = |n| names().culprit(&Culprit { softirq: Some(n), ..Culprit::default() });
        assert_eq!((softirq(3), softirq(77)), ("NET_RX".to_owned(), "softirq 77".to_owned()));
        let task = |pid| Culprit { task: Some(task(pid)), ..Culprit::default() };
        assert_eq!(names().culprit(&task(7)), "task (pid 7)");
        assert_eq!(names().kind(&task(7)), "task");
        assert_eq!(names().culprit(&task(0)), "the idle task");
        let behind = Culprit { behind: Some(any::task(8)), ..task(7) };
        assert_eq!(names().culprit(&behind), "task (pid 7) behind task (pid 8)");
        assert_eq!(names().kind(&behind), "task behind task");
        assert_eq!(names().culprit(&Culprit::default()), "");
        let stopped = |task| Culprit { task, stop: Some(StopKind::Signal), ..Culprit::default() };
        let by = names().culprit(&stopped(Some(any::task(7))));
        assert_eq!(by, "stopped by a signal of task (pid 7)");
        assert_eq!(names().kind(&stopped(None)), "stopped by a signal");
    }

    #[test]
    fn function_to_blame_is_the_one_that_called_the_scheduler() {
        let culprit = |stack: &[u64]| Culprit { stack: stack.to_vec(), ..Culprit::default() };
        let all = culprit(&[0x1008, 0x2004, 0x3010, 0x4000]);
        assert_eq!(names().function(&all).as_deref(), Some("copy_page_range"));
        assert_eq!(names().function(&culprit(&[0x1008])).as_deref(), Some("__schedule"));
        assert_eq!(names().function(&culprit(&[])), None);
        assert_eq!(names().stack(&culprit(&[0x3010, 5])), ["copy_page_range+0x10", "0x5"]);
        let folded = "non-preemptible;spin_loop [latlab];copy_page_range";
        assert_eq!(
            names().folded(Cause::NonPreemptible.name(), &culprit(&[0x3010, 0x4000])),
            folded
        );
    }

    /// The culprit of a wait for the lock there, called for by `copy_page_range`.
    fn waiting(place: LockAddress, kind: LockKind, owner: Option<Owner>, taker: u64) -> Culprit {
        let lock = Some(LockWait { place, kind, owner });
        Culprit { lock, stack: vec![0x1000, taker, 0x3010, 0x4000], ..Culprit::default() }
    }

    #[test]
    fn lock_is_named_with_its_owner_and_who_called_for_it() {
        let owner = Owner { task: Task { prio: 49, ..task(7) }, cpu: 1, is_reader: false };
        let place = LockAddress::At(0x7000);
        let culprit = waiting(place, LockKind::Mutex, Some(owner), 0x5004);
        let held = "mutex rtnl_mutex held by task";
        assert_eq!(names().kind(&culprit), held);
        assert_eq!(
            names().culprit(&culprit),
            format!("{held} (pid 7, real-time priority 50, CPU 1)")
        );
        assert_eq!(names().function(&culprit).as_deref(), Some("copy_page_range"));
        assert_eq!(names().stack(&culprit), ["copy_page_range+0x10", "spin_loop+0x0 [latlab]"]);
        let folded = format!("lock;{held};spin_loop [latlab];copy_page_range");
        assert_eq!(names().folded("lock", &culprit), folded);
    }

    #[test]
    fn lock_is_named_as_far_as_it_is_known() {
        let owner = Some(Owner { task: task(7), cpu: 1, is_reader: true });
        let kind = |place, kind, owner| names().kind(&waiting(place, kind, owner, 0x6004));
        assert_eq!(
            kind(LockAddress::At(0x8000), LockKind::RtMutex, None),
            "spinlock latlab_mutex [latlab]"
        );
        assert_eq!(
            kind(LockAddress::At(0x8008), LockKind::Semaphore, None),
            "semaphore latlab_mutex+0x8 [latlab]"
        );
        assert_eq!(kind(LockAddress::At(1 << 40), LockKind::Spinlock, None), "spinlock");
        let rwsem = LockKind::Rwsem(Access::Write);
        let expected =
            "rwsem mmap_lock of its own process for writing held by readers, the last task";
        assert_eq!(kind(LockAddress::OwnMemory, rwsem, owner), expected);
        let expected = "rwsem mmap_lock of task for reading held by readers, the last task";
        let rwsem = LockKind::Rwsem(Access::Read);
        assert_eq!(kind(LockAddress::OwnersMemory, rwsem, owner), expected);
        assert_eq!(
            [-1, 0, 98, 120].map(priority),
            ["deadline", "real-time priority 99", "real-time priority 1", "nice 0"]
        );
    }

    #[test]
    fn hidden_symbols_give_no_functions() {
        let culprit = Culprit { stack: vec![0x1000], ..Culprit::default() };
        let names = Names::default();
        assert_eq!((names.function(&culprit), names.stack(&culprit)), (None, vec![]));
        assert_eq!(
            names.folded(Cause::InterruptsOff.name(), &culprit),
            Cause::InterruptsOff.name()
        );
    }
}
