//! The answer to one cause: what it was on this machine, and what to do against it.

use super::host::{Suspicion, hypervisor};
use crate::cause::Cause;
use crate::doctor;
use crate::explain::quota::{self, QUOTA};
use crate::machine::Machine;
use crate::record::Schedule;
use crate::record::explained::Share;
use crate::remedy::{self, PIN_VIRTUAL_CPUS, REALTIME_KERNEL};
use crate::time::Nanos;

/// A cause in a record.
pub(super) struct Subject<'a> {
    pub(super) machine: &'a Machine,
    /// Its largest share.
    pub(super) largest: Option<&'a Share>,
    /// The longest segment that is probably the host's, and why; none unless such segments are a
    /// quarter of the cause's time.
    pub(super) hosted: Option<(Nanos, Suspicion)>,
    /// The scheduling of the late task; none where latlab did not start it.
    pub(super) policy: Option<&'a Schedule>,
}

/// Against a cause that no setting of this machine changes.
const NO_SETTING: &str = "no setting shortens it; the time lines below name the functions";

/// Against other work on the measured CPUs.
const ISOLATE: &str = "keep other work off the measured CPUs (`isolcpus=`, cpusets)";

/// Returns what a cause was and what to do against it, as two clauses.
pub(super) fn answer(cause: &str, subject: &Subject<'_>) -> (String, String) {
    let machine = subject.machine;
    if let Some((longest, why)) = &subject.hosted {
        let reason = why.reason(|time| time.to_string());
        let what = format!("{cause}, probably the host (up to {longest}; {reason})");
        return (what, PIN_VIRTUAL_CPUS.to_owned());
    }
    let (what, remedy) = match Cause::named(cause) {
        Some(Cause::Host) => ("the host of this virtual machine".to_owned(), PIN_VIRTUAL_CPUS),
        Some(Cause::Stalled) => {
            ("interrupts delivered late, by the kernel or by the host".to_owned(), PIN_VIRTUAL_CPUS)
        }
        Some(Cause::Stopped) => stopped(subject),
        Some(Cause::TimerResolution) => timer_resolution(subject),
        Some(Cause::TimerCallbacks) => {
            (subject.named("timer callbacks"), realtime_kernel(machine, ISOLATE))
        }
        Some(Cause::Interrupt) => (subject.named("interrupt handlers"), interrupt(subject)),
        Some(Cause::InterruptsOff) => {
            let what = subject.named("kernel code with interrupts disabled");
            (what, realtime_kernel(machine, NO_SETTING))
        }
        Some(Cause::Softirq) => (
            subject.named("softirqs"),
            realtime_kernel(machine, "give the task a priority above that of the softirq's thread"),
        ),
        Some(Cause::Lock) => (subject.lock(), remedy::SHORTEN_LOCK),
        Some(Cause::PageFault) => ("page faults of the task".to_owned(), remedy::LOCK_MEMORY),
        Some(Cause::Overrun) => (
            "the task was still running when it was due again".to_owned(),
            "lengthen its period, or shorten its work",
        ),
        Some(Cause::InterruptThread) => (
            subject.named("interrupt threads"),
            "give the thread a higher priority (`chrt -f -p 60 TID`), or use `latlab adapt`",
        ),
        Some(Cause::Migration) => {
            ("migrations between CPUs".to_owned(), "bind the task to a CPU (`taskset -p`)")
        }
        Some(Cause::Throttled) => return throttled(subject),
        Some(Cause::Unreported) => (
            "tasks whose switches this kernel does not report".to_owned(),
            "repeat it on another kernel, such as `--on lab:standard`",
        ),
        Some(Cause::IdleExit) => idle_exit(machine),
        Some(Cause::HigherPriority) => {
            (subject.named("tasks of higher priority"), outrank(subject))
        }
        Some(Cause::EqualPriority) => (subject.named("tasks of equal priority"), outrank(subject)),
        Some(Cause::NonPreemptible) => non_preemptible(subject),
        Some(Cause::Dispatch) => dispatch(machine),
        None => (cause.to_owned(), "`latlab explain --verbose` lists what was recorded"),
    };
    (what, remedy.to_owned())
}

impl Subject<'_> {
    /// Adds the largest culprit to a name.
    fn named(&self, what: &str) -> String {
        let Some(share) = self.largest else { return what.to_owned() };
        match (share.culprit.as_str(), share.function.as_deref()) {
            ("", None) => what.to_owned(),
            ("", Some(name)) | (name, None) => format!("{what} ({name})"),
            (task, Some(function)) => format!("{what} ({task} in {function})"),
        }
    }

    /// The lock that was waited for longest, its holder, and who called for it.
    fn lock(&self) -> String {
        let largest = self.largest.filter(|share| !share.culprit.is_empty());
        let Some(Share { culprit, function, .. }) = largest else {
            return "waits for locks of the kernel".to_owned();
        };
        let caller = function.iter().map(|function| format!(", called from {function}"));
        format!("waits for locks of the kernel ({culprit}{})", caller.collect::<String>())
    }

    fn culprit(&self) -> &str {
        self.largest.map_or("", |share| &share.culprit)
    }
}

/// The remedy of a kernel without `PREEMPT_RT`, and the one of a kernel with it.
fn realtime_kernel(machine: &Machine, otherwise: &'static str) -> &'static str {
    if machine.preempt.as_deref() == Some("rt") { otherwise } else { REALTIME_KERNEL }
}

/// Whether doctor finds this about the machine.
fn has(machine: &Machine, code: &str) -> bool {
    doctor::diagnose(machine).iter().any(|finding| finding.code == code)
}

fn stopped(subject: &Subject<'_>) -> (String, &'static str) {
    let how = subject.largest.map_or("stopped", |share| &share.culprit);
    let remedy = match how {
        how if how.contains(" by a signal") => {
            "let nothing stop it (`kill -STOP`, Ctrl-Z) while it has to be on time"
        }
        how if how.contains(" by a tracer") => {
            "detach the debugger or strace: each of its stops takes until it lets the task go on"
        }
        _ => "do not freeze its control group (`cgroup.freeze`, `freezer.state`)",
    };
    (format!("the task was {how}"), remedy)
}

fn timer_resolution(subject: &Subject<'_>) -> (String, &'static str) {
    let resolution = subject.machine.timer_resolution_ns.unwrap_or_default();
    if has(subject.machine, "coarse-timers") {
        let what = format!("timers expire at ticks only, every {}", Nanos(resolution));
        return (what, remedy::HIGH_RESOLUTION);
    }
    let slack = subject.policy.map(|schedule| schedule.slack).filter(|slack| *slack > Nanos(0));
    let slack = slack.map_or(String::new(), |slack| format!(" of {slack}"));
    let what = format!("the task's timer slack{slack}");
    (what, "use a real-time policy, or reduce the slack (PR_SET_TIMERSLACK)")
}

fn interrupt(subject: &Subject<'_>) -> &'static str {
    let is_device = subject.culprit().starts_with("interrupt ");
    match subject.culprit() {
        _ if is_device && has(subject.machine, "unthreaded-interrupts") => {
            remedy::THREAD_INTERRUPTS
        }
        _ if is_device => "move the interrupt to other CPUs (/proc/irq/N/smp_affinity_list)",
        "timer interrupt" => "it is a part of every wake-up by a timer",
        _ => ISOLATE,
    }
}

fn throttled(subject: &Subject<'_>) -> (String, String) {
    if subject.culprit().starts_with(QUOTA) {
        let what = format!("throttled: {}", subject.culprit());
        return (what, remedy::quota(quota::group_of(subject.culprit())));
    }
    // A deadline task is above the limit of real-time tasks, and has a runtime of its own.
    let is_deadline = subject.policy.is_some_and(|schedule| schedule.policy == "deadline");
    let throttles = if is_deadline { Vec::new() } else { subject.machine.throttles() };
    let names: Vec<&str> = throttles.iter().map(|throttle| throttle.name()).collect();
    let what =
        if names.is_empty() { "throttling of the task".to_owned() } else { names.join(" or ") };
    (what, remedy::throttling(&throttles))
}

fn idle_exit(machine: &Machine) -> (String, &'static str) {
    if hypervisor(machine).is_some() {
        let what = "idle virtual CPUs, which the host resumes late".to_owned();
        return (what, "boot with `idle=poll`, so that they do not halt");
    }
    let what = "exits from idle states".to_owned();
    if has(machine, "deep-idle") {
        return (what, remedy::LIMIT_IDLE_STATES);
    }
    (what, "boot with `idle=poll`: deep states are limited already")
}

fn outrank(subject: &Subject<'_>) -> &'static str {
    if subject.policy.is_some_and(|schedule| schedule.policy == "other") {
        return "give the measured task a real-time policy (`chrt -f`, `--policy fifo`)";
    }
    if subject.policy.is_some_and(|schedule| schedule.priority == 99) {
        return "move them to other CPUs (`taskset -p`): the measured task has the highest priority";
    }
    remedy::OUTRANK_RIVALS
}

fn non_preemptible(subject: &Subject<'_>) -> (String, &'static str) {
    let machine = subject.machine;
    let model = machine.preempt.as_deref().unwrap_or("unknown");
    if machine.runs_to_scheduling_point() {
        let found = match subject.culprit() {
            "" => String::new(),
            task => format!(" ({task})"),
        };
        return (format!("kernel code under preempt={model}{found}"), remedy::preemption(machine));
    }
    let what = subject.named(&format!("non-preemptible sections under preempt={model}"));
    (what, realtime_kernel(machine, NO_SETTING))
}

fn dispatch(machine: &Machine) -> (String, &'static str) {
    let what = "context switches and returns to user space".to_owned();
    match () {
        () if has(machine, "governor") => (what, remedy::CONSTANT_FREQUENCY),
        () if hypervisor(machine).is_some() => (what, PIN_VIRTUAL_CPUS),
        () => (what, "this is the cost of every wake-up"),
    }
}
