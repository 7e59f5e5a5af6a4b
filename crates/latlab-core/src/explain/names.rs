//! Names of culprits for users.

use super::charge::Culprit;
use super::{Line, Task};
use crate::symbols::Symbols;
use std::collections::BTreeMap;

/// The names of a machine's kernel functions and interrupts.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The functions of the kernel; empty where they are hidden.
    pub symbols: Symbols,
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
    let is_tool = |name: &&T| TOOLS.iter().any(|tool| name.as_ref().starts_with(tool));
    stack.iter().find(|name| !is_tool(name)).or(stack.first()).map(AsRef::as_ref)
}

impl Names {
    /// Returns the name of a culprit: the interrupt, the softirq, or the task with its thread id.
    pub fn culprit(&self, culprit: &Culprit) -> String {
        self.named(culprit, |task| format!("{} (pid {})", task.comm, task.pid))
    }

    /// Returns the name without the thread id, so that all runs of one program count together.
    pub fn kind(&self, culprit: &Culprit) -> String {
        self.named(culprit, |task| task.comm.to_string())
    }

    fn named(&self, culprit: &Culprit, named: impl Fn(Task) -> String) -> String {
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
            (None, None, Some(task)) => named(task),
            (None, None, None) => String::new(),
        }
    }

    pub(super) fn interrupt(&self, line: Line) -> String {
        match line {
            Line::Timer => "timer interrupt".to_owned(),
            Line::Reschedule => "reschedule interrupt".to_owned(),
            Line::Call => "function call interrupt".to_owned(),
            Line::Device(number) => match self.interrupts.get(&number) {
                Some(name) => format!("interrupt {number} ({name})"),
                None => format!("interrupt {number}"),
            },
        }
    }

    /// Returns the function to blame, where the kernel's symbols are known.
    pub fn function(&self, culprit: &Culprit) -> Option<String> {
        let all = culprit.stack.iter().filter_map(|address| self.short(*address));
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
        culprit.stack.iter().map(named).collect()
    }

    /// Returns cause, culprit and functions, outermost first, as one line of folded stacks for
    /// flame graphs.
    pub fn folded(&self, cause: &str, culprit: &Culprit) -> String {
        let functions = culprit.stack.iter().rev().filter_map(|address| self.short(*address));
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
    use crate::explain::any::task;

    fn names() -> Names {
        let text = "1000 T __schedule\n2000 T preempt_schedule_irq\n3000 t copy_page_range\n\
                    4000 t spin_loop\t[latlab]\n";
        let interrupts = BTreeMap::from([(24, "virtio0-input".to_owned())]);
        Names { symbols: Symbols::parse(text).unwrap(), interrupts }
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
        assert_eq!(names().culprit(&Culprit::default()), "");
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
        assert_eq!(names().folded("non-preemptible", &culprit(&[0x3010, 0x4000])), folded);
    }

    #[test]
    fn hidden_symbols_give_no_functions() {
        let culprit = Culprit { stack: vec![0x1000], ..Culprit::default() };
        let names = Names::default();
        assert_eq!((names.function(&culprit), names.stack(&culprit)), (None, vec![]));
        assert_eq!(names.folded("interrupts-off", &culprit), "interrupts-off");
    }
}
