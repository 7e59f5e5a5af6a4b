//! The verdict on threads that were to run: how much of their time was taken, by what, and what helps.

use super::causes::LEAST;
use super::host::hypervisor;
use crate::cause::Cause;
use crate::cpulist::CpuList;
use crate::machine::{Machine, TimeDomain};
use crate::record::Record;
use crate::record::explained::Explained;
use crate::record::running::{RunningThread, Taken};
use crate::remedy::{self, PIN_VIRTUAL_CPUS, REALTIME_KERNEL};
use crate::time::Nanos;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Largest number of threads in the verdict, and of causes of each.
const THREADS: usize = 3;
const CAUSES: usize = 3;

/// Against tasks that take turns with a `SCHED_OTHER` thread, or run before it.
const OUTRANK_OTHERS: &str =
    "move them to other CPUs (`taskset -p`), or give the thread a real-time policy";

/// Most tasks that it names as waiting.
const TASKS: usize = 3;

/// Returns how each thread that was to run lost its time, the largest lost share first; remedies
/// for the leading causes; and the effect of a real-time thread that never sleeps on others.
/// Nothing if the record has no such thread.
pub fn running(record: &Record) -> Vec<String> {
    let Some(explained) = &record.explained else { return Vec::new() };
    let mut threads: Vec<&RunningThread> = explained.running.iter().collect();
    threads.sort_by_key(|thread| Reverse(permyriad(thread)));
    let (shown, rest) = threads.split_at(threads.len().min(THREADS));
    let mut lines: Vec<String> = shown.iter().map(|thread| fate(thread, &record.machine)).collect();
    let more = format!("and {} more threads, which lost less", rest.len());
    lines.extend((!rest.is_empty()).then_some(more));
    if !is_of_gaps(explained) {
        lines.extend(shown.first().into_iter().flat_map(|first| remedies(first, &record.machine)));
    }
    lines.extend(shown.iter().filter_map(|thread| starvation(thread)));
    lines.extend(nothing_recorded(shown, &record.machine));
    lines
}

/// Returns whether all late samples are gaps of busy loops, not wake-ups.
pub fn is_of_gaps(explained: &Explained) -> bool {
    let gaps = explained.running.iter().fold(0u64, |sum, thread| sum.saturating_add(thread.gaps));
    gaps > 0 && gaps >= explained.wake_ups
}

/// Returns what a cause of lost time was and what to do against it, as two clauses. `largest` is its
/// largest culprit; none where it has none.
pub(super) fn answer(
    cause: &str,
    (culprit, function, cpu): (&str, Option<&str>, Option<u32>),
    realtime: bool,
    machine: &Machine,
) -> (String, String) {
    let named = |what: &str| match (culprit, function) {
        ("", _) => what.to_owned(),
        (culprit, None) => format!("{what} ({culprit})"),
        (culprit, Some(function)) => format!("{what} ({culprit} in {function})"),
    };
    let is_rt = machine.preempt.as_deref() == Some("rt");
    match Cause::named(cause) {
        Some(Cause::Interrupt) => (named("interrupts"), interrupt(culprit, cpu, machine)),
        Some(Cause::Softirq | Cause::TimerCallbacks) if is_rt => (
            named("softirqs"),
            "move what raises them, interrupts and timers, to other CPUs".to_owned(),
        ),
        Some(Cause::Softirq | Cause::TimerCallbacks) => {
            (named("softirqs"), REALTIME_KERNEL.to_owned())
        }
        Some(Cause::HigherPriority | Cause::EqualPriority) => {
            let what = format!("tasks of {} priority", cause.trim_end_matches("-priority"));
            let remedy = if realtime { remedy::OUTRANK_RIVALS } else { OUTRANK_OTHERS };
            (named(&what), remedy.to_owned())
        }
        Some(Cause::Throttled) => throttled(realtime, machine),
        Some(Cause::Host) => {
            ("the host of this virtual machine".to_owned(), PIN_VIRTUAL_CPUS.to_owned())
        }
        Some(Cause::Dispatch) => (
            "the ways into the kernel and out of it".to_owned(),
            "each interrupt and each switch has them: fewer of these help".to_owned(),
        ),
        Some(Cause::IdleExit) => (
            "exits from idle states after it slept".to_owned(),
            remedy::LIMIT_IDLE_STATES.to_owned(),
        ),
        _ => ("time in which nothing was recorded".to_owned(), suspects(machine)),
    }
}

/// How much of its time a thread lost, in hundredths of a percent.
fn permyriad(thread: &RunningThread) -> u128 {
    u128::from(thread.lost().0) * 10_000 / u128::from(thread.awake().0.max(1))
}

fn fate(thread: &RunningThread, machine: &Machine) -> String {
    let awake = thread.awake();
    let cpus: CpuList = thread.taken.iter().map(|taken| taken.cpu).collect();
    let on = if cpus.is_empty() { String::new() } else { format!(" on {}", cpus.in_words()) };
    let share = |time| percent(time, awake);
    let slept = match thread.sleeps {
        _ if thread.gaps > 0 => format!("was to run for {awake}"),
        0 => format!("never slept in {awake}"),
        1 => format!("slept once, and was to run for {awake}"),
        times => format!("slept {times} times, and was to run for {awake}"),
    };
    let counts = |sum: Nanos| u128::from(sum.0) * 100 >= u128::from(thread.lost().0);
    let causes = thread.causes().into_iter().filter(|(_, sum)| counts(*sum)).take(CAUSES);
    let causes: Vec<String> = causes
        .map(|(largest, sum)| {
            let name = name(largest, thread.priority.is_some(), machine);
            format!("{} by {name}", share(sum))
        })
        .collect();
    let taken = match causes.as_slice() {
        [] => "nothing was taken from it".to_owned(),
        causes => format!("{} was taken: {}", share(thread.lost()), causes.join(", ")),
    };
    let lost = match thread.unrecorded {
        Nanos(0) => String::new(),
        time => format!("; of {} events were lost", share(time)),
    };
    format!("{}{on} {slept}: it ran {} of that; {taken}{lost}", who(thread), share(thread.ran))
}

fn who(thread: &RunningThread) -> String {
    let priority = match thread.priority {
        Some(100) => ", SCHED_DEADLINE".to_owned(),
        Some(priority) => format!(", real-time priority {priority}"),
        None => String::new(),
    };
    format!("{} (thread {}{priority})", thread.name, thread.pid)
}

/// The name of a cause with its largest culprit, as a noun.
fn name(largest: &Taken, realtime: bool, machine: &Machine) -> String {
    let culprit = (&*largest.culprit, largest.function.as_deref(), Some(largest.cpu));
    answer(&largest.cause, culprit, realtime, machine).0
}

/// What to do against the leading causes of a thread.
fn remedies(thread: &RunningThread, machine: &Machine) -> Vec<String> {
    let lost = thread.lost();
    let causes = thread.causes();
    let leading = causes.iter().enumerate().filter(|(place, (_, sum))| {
        *place == 0 || u128::from(sum.0) * 100 >= u128::from(lost.0) * u128::from(LEAST)
    });
    let lines = leading.take(CAUSES).map(|(_, (largest, sum))| {
        let culprit = (&*largest.culprit, largest.function.as_deref(), Some(largest.cpu));
        let (what, remedy) = answer(&largest.cause, culprit, thread.priority.is_some(), machine);
        format!("{} of what was taken: {what}: {remedy}", percent(*sum, lost))
    });
    lines.collect()
}

fn interrupt(culprit: &str, cpu: Option<u32>, machine: &Machine) -> String {
    let is_tickless = cpu.is_some_and(|cpu| {
        machine.isolation.nohz_full.as_ref().is_some_and(|cpus| cpus.contains(cpu))
    });
    match culprit {
        "timer interrupt" if is_tickless => {
            "the tick goes on though this CPU is in `nohz_full=`: it stops only while no other task is \
             runnable there and no timer or perf event needs it"
        }
        "timer interrupt" => {
            "where one task runs alone, `nohz_full=` for this CPU stops the tick; move timers away \
             with `isolcpus=`"
        }
        _ if culprit.starts_with("interrupt ") => {
            "move the interrupt to other CPUs (/proc/irq/N/smp_affinity_list)"
        }
        _ => {
            "they come from other CPUs: keep what asks for them off this machine while it matters, or \
             share neither memory nor mappings with it"
        }
    }
    .to_owned()
}

fn throttled(realtime: bool, machine: &Machine) -> (String, String) {
    if !realtime {
        let what = "the CPU quota of its control group".to_owned();
        return (what, "raise `cpu.max` of the group, or take the thread out of it".to_owned());
    }
    let throttles = machine.throttles();
    let names: Vec<&str> = throttles.iter().map(|throttle| throttle.name()).collect();
    let what = if names.is_empty() { "throttling".to_owned() } else { names.join(" or ") };
    (what, format!("let it sleep; {}", remedy::throttling(&throttles)))
}

/// What a real-time thread that never sleeps does to others.
fn starvation(thread: &RunningThread) -> Option<String> {
    let priority = thread.priority.filter(|_| thread.sleeps == 0)?;
    let cpus: CpuList = thread.taken.iter().map(|taken| taken.cpu).collect();
    let mut waited = thread.starved.iter().collect::<Vec<_>>();
    waited.sort_by_key(|one| Reverse(one.longest));
    let waited = waited.iter().take(TASKS).map(|one| format!("{} up to {}", one.task, one.longest));
    let waited: Vec<String> = waited.collect();
    let mut text = format!(
        "{} never sleeps at real-time priority {priority}: no SCHED_OTHER task and no kernel thread \
         of lower priority (ktimers, rcuc, kworker) runs on {} beside it",
        thread.name,
        cpus.in_words(),
    );
    if !thread.meanwhile.is_empty() {
        let some = thread.meanwhile.iter().take(TASKS).cloned().collect::<Vec<_>>().join(", ");
        let _ = write!(text, " but while it is throttled ({some})");
    }
    if !waited.is_empty() {
        let _ = write!(text, "; it kept waiting: {}", waited.join(", "));
    }
    Some(text + ". Let it wait for its work, or give it a CPU that nothing else needs")
}

/// What the gaps without any event may be.
fn nothing_recorded(threads: &[&RunningThread], machine: &Machine) -> Option<String> {
    let nothing = |taken: &&Taken| taken.cause == crate::explain::running::NOTHING;
    let all = || threads.iter().flat_map(|thread| &thread.taken).filter(nothing);
    let count = all().fold(0u64, |sum, taken| sum.saturating_add(taken.count));
    let longest = all().map(|taken| taken.longest).max()?;
    let total = all().fold(Nanos(0), |sum, taken| sum + taken.total);
    Some(format!(
        "In {count} gaps of up to {longest}, {total} in all, nothing was recorded that takes this long, \
         so that one instruction seems to have taken it: {}",
        suspects(machine)
    ))
}

/// What may take time without an event.
fn suspects(machine: &Machine) -> String {
    if machine.time_domain == TimeDomain::Instructions && machine.cpus.len() > 1 {
        return "QEMU runs the CPUs of a guest in turns, so that one stands still while another has its \
                turn: measure such a guest's times in one with one CPU"
            .to_owned();
    }
    if machine.time_domain == TimeDomain::Instructions {
        return "an exception or interrupt without a tracepoint, as only instructions take time here"
            .to_owned();
    }
    if let Some(name) = hypervisor(machine) {
        return format!(
            "in a virtual machine ({name}) the host takes it, mostly without counting it as stolen: for \
             another task, an exit, a page of memory. What its firmware and its hardware take looks the \
             same. {}",
            capital(PIN_VIRTUAL_CPUS)
        );
    }
    "the firmware (SMI), an access to a slow device, a bus lock, or an interrupt without a tracepoint \
     (NMI). The tracer hwlat tells the first from the last"
        .to_owned()
}

fn capital(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns a part of a whole as a percentage, with more digits the smaller it is.
#[expect(clippy::cast_precision_loss, reason = "a share has few digits")]
pub fn percent(part: Nanos, whole: Nanos) -> String {
    let share = 100.0 * part.0 as f64 / whole.0.max(1) as f64;
    let digits = match share {
        0.0 | 1.0.. => 1,
        0.1..1.0 => 2,
        _ => 3,
    };
    format!("{share:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::running::Starved;
    use crate::record::tests;

    fn taken(cause: &str, culprit: &str, us: u64) -> Taken {
        let total = Nanos::from_micros(us);
        Taken {
            cpu: 1,
            cause: cause.to_owned(),
            culprit: culprit.to_owned(),
            count: 2,
            total,
            longest: total,
            ..Taken::default()
        }
    }

    fn busy(priority: Option<i32>, taken: Vec<Taken>) -> RunningThread {
        let (name, ran) = ("busy".to_owned(), Nanos::from_micros(949_000));
        RunningThread { name, pid: 12, priority, ran, taken, ..RunningThread::default() }
    }

    fn record(machine: Machine, running: Vec<RunningThread>) -> Record {
        let mut record = tests::record(0, &[]);
        record.explained = Some(Explained { running, ..Explained::default() });
        Record { machine, ..record }
    }

    fn kernel(version: &str) -> Machine {
        let mut machine = Machine { rt_runtime_us: Some(950_000), ..Machine::default() };
        version.clone_into(&mut machine.kernel);
        machine.config.insert("CONFIG_PREEMPT_RT".to_owned(), "y".to_owned());
        machine
    }

    #[test]
    fn fate_of_a_throttled_thread_comes_first_then_remedy_and_starvation() {
        let mut thread = busy(
            Some(80),
            vec![taken("throttled", "", 50_000), taken("interrupt", "timer interrupt", 1_000)],
        );
        thread.meanwhile = vec!["kworker/1:1".to_owned()];
        let waited = Nanos::from_millis(950);
        thread.starved = vec![Starved { task: "ktimers/1".to_owned(), count: 1, longest: waited }];
        let lines = running(&record(kernel("6.1.0"), vec![thread]));
        assert_eq!(
            lines[0],
            "busy (thread 12, real-time priority 80) on CPU 1 never slept in 1 s: it ran 94.9 % of \
             that; 5.1 % was taken: 5.0 % by throttling of real-time tasks, 0.10 % by interrupts \
             (timer interrupt)"
        );
        assert!(lines[1].ends_with("--set rt_runtime_us=-1`"), "{lines:?}");
        assert_eq!(lines.len(), 3, "a cause of 2 % has no remedy: {lines:?}");
        assert!(lines[2].contains("while it is throttled (kworker/1:1)"), "{lines:?}");
        assert!(lines[2].contains("it kept waiting: ktimers/1 up to 950 ms"), "{lines:?}");
    }

    #[test]
    fn throttle_is_that_of_the_kernel_and_of_the_policy() {
        let of = |version, priority| {
            let thread = busy(priority, vec![taken("throttled", "", 50_000)]);
            running(&record(kernel(version), vec![thread]))[0].clone()
        };
        assert!(of("6.12.0", Some(80)).contains("by the fair server"));
        assert!(of("6.12.0", None).ends_with("by the CPU quota of its control group"));
        let thread = busy(None, vec![taken("equal-priority", "make", 9_000)]);
        let lines = running(&record(kernel("6.12.0"), vec![thread]));
        assert_eq!(lines.len(), 2, "who is not real-time starves nobody: {lines:?}");
        assert!(lines[1].contains("tasks of equal priority (make): move them"), "{lines:?}");
    }

    #[test]
    fn time_without_an_event_is_named_by_what_the_machine_is() {
        let suspects = |machine: Machine| {
            let thread = busy(None, vec![taken(crate::explain::running::NOTHING, "", 300)]);
            running(&record(machine, vec![thread])).pop().expect("it is named")
        };
        let guest = Machine { hypervisor: Some("KVM".to_owned()), ..kernel("6.12.0") };
        let lab = Machine { time_domain: TimeDomain::Instructions, ..guest.clone() };
        let two = Machine { cpus: [0, 1].into_iter().collect(), ..lab.clone() };
        assert!(suspects(two).contains("in turns"));
        assert!(suspects(guest).contains("virtual machine (KVM) the host takes it"));
        assert!(suspects(lab).contains("without a tracepoint"));
        let metal = suspects(kernel("6.12.0"));
        assert!(metal.starts_with("In 2 gaps of up to 300 us") && metal.contains("SMI"), "{metal}");
    }

    #[test]
    fn tick_that_goes_on_is_told_from_one_that_nobody_stopped() {
        let remedy = |nohz_full: Option<&str>| {
            let mut machine = kernel("6.12.0");
            machine.isolation.nohz_full = nohz_full.map(|cpus| cpus.parse().expect("a list"));
            interrupt("timer interrupt", Some(1), &machine)
        };
        assert!(remedy(None).contains("`nohz_full=` for this CPU stops"));
        assert!(remedy(Some("1-3")).starts_with("the tick goes on though"));
    }
}
