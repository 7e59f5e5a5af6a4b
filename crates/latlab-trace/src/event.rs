//! The events of the kernel that explanations use, from the text of their fields: as the kernel prints them
//! (`include/trace/events/` of Linux), and as libtraceevent's plugins do (trace-cmd, perf).

use crate::line::word;
use latlab_core::explain::{Comm, Line as Source, Task};
use latlab_core::time::Nanos;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What<'a> {
    /// `sched_switch`.
    Switch { prev: Task, state: &'a str, next: Task },
    /// `sched_waking`, with the CPU that the task last ran on.
    Waking { task: Task, cpu: u32 },
    /// `sched_wakeup`, with the CPU on whose run queue the task was put.
    Queued { task: Task, cpu: u32 },
    /// `sched_migrate_task`.
    Migrated { pid: u32, from: u32, to: u32 },
    /// `sched_pi_setprio`.
    Priority { pid: u32, prio: i16 },
    /// The begin of an interrupt, with the name of its handler.
    Interrupt { source: Source, name: Option<&'a str> },
    /// Its end.
    InterruptEnd,
    /// `softirq_entry`.
    Softirq(u8),
    /// `softirq_exit`.
    SoftirqEnd,
    /// `hrtimer_start`, with the times on the timer's clock.
    TimerStarted { timer: u64, expiry: Nanos, soft: Nanos },
    /// `hrtimer_expire_entry`, with when the kernel began to look for expired timers, on the timer's clock.
    Timer { timer: u64, function: &'a str, now: Nanos },
    /// `hrtimer_expire_exit`.
    TimerEnd,
    /// `timer_expire_entry`.
    Callback { function: &'a str },
    /// `timer_expire_exit`.
    CallbackEnd,
    /// A stack follows, of the event before on the same CPU.
    Stack,
    /// timerlat: a latency at the timer's interrupt (false) or in its thread (true).
    Timerlat { is_thread: bool, latency: Nanos },
    /// osnoise: an interrupt, softirq or thread that ran for this long.
    Noise { kind: Noise, name: &'a str, number: u32, start: Nanos, length: Nanos },
    /// Another event.
    Other,
}

/// Kinds of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noise {
    Interrupt,
    Softirq,
    Thread,
}

impl<'a> What<'a> {
    /// Parses an event by its name and fields. An event that lacks a field is another one.
    pub(crate) fn parse(event: &'a str, fields: &'a str) -> What<'a> {
        What::known(event, fields).unwrap_or(What::Other)
    }

    fn known(event: &'a str, fields: &'a str) -> Option<What<'a>> {
        Some(match event {
            "sched_switch" => switch(fields)?,
            "sched_waking" => woken(fields).map(|(task, cpu)| What::Waking { task, cpu })?,
            "sched_wakeup" | "sched_wakeup_new" => {
                woken(fields).map(|(task, cpu)| What::Queued { task, cpu })?
            }
            "sched_migrate_task" => What::Migrated {
                pid: number(fields, "pid")?,
                from: number(fields, "orig_cpu")?,
                to: number(fields, "dest_cpu")?,
            },
            "sched_pi_setprio" => {
                What::Priority { pid: number(fields, "pid")?, prio: number(fields, "newprio")? }
            }
            "softirq_entry" => What::Softirq(number(fields, "vec")?),
            "softirq_exit" => What::SoftirqEnd,
            "hrtimer_start" => What::TimerStarted {
                timer: hexadecimal(value(fields, "hrtimer")?)?,
                expiry: Nanos(number(fields, "expires")?),
                soft: Nanos(number(fields, "softexpires")?),
            },
            "hrtimer_expire_entry" => What::Timer {
                timer: hexadecimal(value(fields, "hrtimer")?)?,
                function: value(fields, "function")?,
                now: Nanos(number(fields, "now")?),
            },
            "hrtimer_expire_exit" => What::TimerEnd,
            "timer_expire_entry" => What::Callback { function: value(fields, "function")? },
            "timer_expire_exit" => What::CallbackEnd,
            "kernel_stack" => What::Stack,
            "" if fields.starts_with("<stack trace") => What::Stack,
            "" if fields.starts_with('#') => timerlat(fields)?,
            "irq_noise" => noise(Noise::Interrupt, fields)?,
            "softirq_noise" => noise(Noise::Softirq, fields)?,
            "thread_noise" => noise(Noise::Thread, fields)?,
            _ => return interrupt(event, fields),
        })
    }
}

/// The begins and ends of interrupts: of devices, of the vectors of x86, and between the CPUs of arm64.
fn interrupt<'a>(event: &str, fields: &'a str) -> Option<What<'a>> {
    let begins = |source| Some(What::Interrupt { source, name: None });
    match event {
        "irq_handler_entry" => {
            // A name may contain blanks.
            let name = fields.split_once("name=").map(|(_, name)| name.trim_end());
            let source = match name {
                Some("arch_timer") => Source::Timer,
                _ => Source::Device(number(fields, "irq")?),
            };
            (name != Some("IPI")).then_some(What::Interrupt { source, name })
        }
        "ipi_entry" if fields.contains("Timer") => begins(Source::Timer),
        "ipi_entry" if fields.contains("Rescheduling") => begins(Source::Reschedule),
        "ipi_entry" | "call_function_entry" | "call_function_single_entry" => begins(Source::Call),
        "local_timer_entry" => begins(Source::Timer),
        "reschedule_entry" => begins(Source::Reschedule),
        "irq_handler_exit"
        | "ipi_exit"
        | "call_function_exit"
        | "call_function_single_exit"
        | "local_timer_exit"
        | "reschedule_exit" => Some(What::InterruptEnd),
        _ => None,
    }
}

/// Whether an event is one of the interrupts that no device has.
pub(crate) fn is_vector(event: &str) -> bool {
    let vectors = ["local_timer_", "reschedule_", "call_function_", "ipi_entry"];
    vectors.iter().any(|begin| event.starts_with(begin))
}

fn switch(fields: &str) -> Option<What<'_>> {
    let (prev, next) = fields.split_once(" ==> ")?;
    if !prev.starts_with("prev_comm=") {
        let (prev, state) = prev.rsplit_once(' ')?;
        return Some(What::Switch { prev: short(prev)?.0, state, next: short(next)?.0 });
    }
    let state = value(prev, "prev_state")?;
    Some(What::Switch { prev: named(prev, "prev_")?, state, next: named(next, "next_")? })
}

/// A woken task and its CPU.
fn woken(fields: &str) -> Option<(Task, u32)> {
    if fields.starts_with("comm=") {
        return Some((named(fields, "")?, number(fields, "target_cpu")?));
    }
    let (task, rest) = short(fields)?;
    Some((task, rest.rsplit_once("CPU:")?.1.trim().parse().ok()?))
}

/// A task as the kernel prints it: `comm=… pid=… prio=…`, each after this prefix.
fn named(fields: &str, prefix: &str) -> Option<Task> {
    let rest = fields.strip_prefix(prefix)?.strip_prefix("comm=")?;
    let (comm, rest) = rest.split_once(&format!(" {prefix}pid="))?;
    let (pid, rest) = word(rest);
    let prio = value(rest, &format!("{prefix}prio"))?;
    Some(Task { pid: pid.parse().ok()?, prio: prio.parse().ok()?, comm: Comm::from(comm) })
}

/// A task as the plugins print it: `comm:pid [prio]`, and what follows.
fn short(text: &str) -> Option<(Task, &str)> {
    let (task, rest) = text.split_once(" [")?;
    let (prio, rest) = rest.split_once(']')?;
    let (comm, pid) = task.rsplit_once(':')?;
    let task = Task { pid: pid.parse().ok()?, prio: prio.parse().ok()?, comm: Comm::from(comm) };
    Some((task, rest))
}

/// `#58634 context    irq timer_latency     12505 ns`.
fn timerlat(fields: &str) -> Option<What<'_>> {
    let mut words = fields.split_whitespace().skip(1);
    let (context, kind) = (words.next()?, words.next()?);
    let is_thread = match kind {
        "irq" => false,
        "thread" => true,
        _ => return None,
    };
    let is_latency = context == "context" && words.next()? == "timer_latency";
    let latency = Nanos(words.next()?.parse().ok()?);
    is_latency.then_some(What::Timerlat { is_thread, latency })
}

/// `local_timer:236 start 426.271245463 duration 12553 ns`.
fn noise(kind: Noise, fields: &str) -> Option<What<'_>> {
    let (who, rest) = fields.split_once(" start ")?;
    let (name, number) = who.trim().rsplit_once(':')?;
    let mut words = rest.split_whitespace();
    let (start, _) = crate::line::time(words.next()?)?;
    let length = Nanos(words.nth(1)?.parse().ok()?);
    Some(What::Noise { kind, name, number: number.parse().ok()?, start, length })
}

/// The value of `key=value` up to the next blank.
fn value<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    let found = fields.match_indices(key).find_map(|(at, _)| {
        let begins = at == 0 || fields[..at].ends_with(' ');
        fields[at + key.len()..].strip_prefix('=').filter(|_| begins)
    });
    found.map(|rest| word(rest).0)
}

fn number<T: std::str::FromStr>(fields: &str, key: &str) -> Option<T> {
    value(fields, key)?.parse().ok()
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(comm: &str, pid: u32, prio: i16) -> Task {
        Task { pid, prio, comm: Comm::from(comm) }
    }

    #[test]
    fn tasks_are_read_from_both_forms() {
        let (prev, next) = (task("my task", 7, 19), task("swapper/0", 0, 120));
        let expected = What::Switch { prev, state: "R+", next };
        let kernel = "prev_comm=my task prev_pid=7 prev_prio=19 prev_state=R+ ==> \
                      next_comm=swapper/0 next_pid=0 next_prio=120";
        assert_eq!(What::parse("sched_switch", kernel), expected);
        let plugin = "my task:7 [19] R+ ==> swapper/0:0 [120]";
        assert_eq!(What::parse("sched_switch", plugin), expected);
        let woken = What::Waking { task: prev, cpu: 1 };
        let kernel = "comm=my task pid=7 prio=19 target_cpu=001";
        assert_eq!(What::parse("sched_waking", kernel), woken);
        assert_eq!(What::parse("sched_waking", "my task:7 [19] CPU:001"), woken);
        let old = "my task:7 [19] success=1 CPU:001";
        assert_eq!(What::parse("sched_wakeup", old), What::Queued { task: prev, cpu: 1 });
    }

    #[test]
    fn interrupts_of_devices_timers_and_other_cpus_are_told_apart() {
        let source = |event, fields| match What::parse(event, fields) {
            What::Interrupt { source, name } => Some((source, name)),
            _ => None,
        };
        let device = source("irq_handler_entry", "irq=36 name=virtio1 req.0");
        assert_eq!(device, Some((Source::Device(36), Some("virtio1 req.0"))));
        let timer = source("irq_handler_entry", "irq=11 name=arch_timer");
        assert_eq!(timer, Some((Source::Timer, Some("arch_timer"))));
        assert_eq!(source("irq_handler_entry", "irq=3 name=IPI"), None);
        let ipi = source("ipi_entry", "(Rescheduling interrupts)");
        assert_eq!(ipi, Some((Source::Reschedule, None)));
        assert_eq!(source("local_timer_entry", "vector=236"), Some((Source::Timer, None)));
        assert_eq!(What::parse("reschedule_exit", "vector=253"), What::InterruptEnd);
        assert!(is_vector("call_function_single_entry") && !is_vector("irq_handler_entry"));
    }

    #[test]
    fn timers_and_noise_have_their_times() {
        let started = "hrtimer=00000000ebaed8d3 function=hrtimer_wakeup expires=1041364000000 \
                       softexpires=1041363950000 mode=ABS";
        let (expiry, soft) = (Nanos(1_041_364_000_000), Nanos(1_041_363_950_000));
        let timer = 0xebae_d8d3;
        let expected = What::TimerStarted { timer, expiry, soft };
        assert_eq!(What::parse("hrtimer_start", started), expected);
        let expired = "hrtimer=00000000ebaed8d3 function=hrtimer_wakeup now=1041364006274";
        let now = Nanos(1_041_364_006_274);
        let expected = What::Timer { timer, function: "hrtimer_wakeup", now };
        assert_eq!(What::parse("hrtimer_expire_entry", expired), expected);
        let noise = "local_timer:236 start 426.271245463 duration 12553 ns";
        let (start, length) = (Nanos(426_271_245_463), Nanos(12_553));
        let (kind, name, number) = (Noise::Interrupt, "local_timer", 236);
        let expected = What::Noise { kind, name, number, start, length };
        assert_eq!(What::parse("irq_noise", noise), expected);
        let thread = What::Timerlat { is_thread: true, latency: Nanos(30_328) };
        assert_eq!(What::parse("", "#58634 context thread timer_latency     30328 ns"), thread);
        assert_eq!(What::parse("", "<stack trace>"), What::Stack);
    }

    #[test]
    fn event_that_lacks_a_field_is_another_one() {
        for (event, fields) in [
            ("sched_switch", "prev_comm=a prev_pid=1 ==> next_comm=b"),
            ("sched_switch", ""),
            ("sched_waking", "comm=a pid=x prio=1 target_cpu=0"),
            ("hrtimer_start", "hrtimer=(____ptrval____) expires=1 softexpires=1"),
            ("irq_noise", "x start 1.0"),
            ("", "#1 context"),
        ] {
            assert_eq!(What::parse(event, fields), What::Other, "{event}: {fields}");
        }
    }
}
