//! Tests of the verdicts: each depends on facts of the machine, not on a cause's name only.

use super::*;
use crate::cause::Cause;
use crate::machine::{Machine, TimeDomain};
use crate::record::explained::{Explained, Share};
use crate::record::{Record, Schedule, Warning, WarningCode, tests};
use crate::time::Nanos;

/// A record of one CPU whose median is 10 us and whose worst sample is `latency`.
fn measured(latency: Nanos, index: Option<u64>) -> Record {
    let latencies = [vec![10_000; 99], vec![latency.0]].concat();
    let mut record = tests::record(0, &[(1, (latencies, 0))]);
    (record.worst[0].index, record.worst[0].at) = (index, Nanos::from_secs(6));
    record.explained = None;
    record
}

fn share(cause: &str, culprit: &str, function: Option<&str>, us: [u64; 3]) -> Share {
    let [count, total, worst] = us;
    Share {
        cause: cause.to_owned(),
        culprit: culprit.to_owned(),
        function: function.map(str::to_owned),
        count,
        total: Nanos::from_micros(total),
        worst: Nanos::from_micros(worst),
    }
}

/// A record with these causes, on this machine.
fn explained(machine: Machine, causes: Vec<Share>) -> Record {
    let mut record = Record { machine, ..measured(Nanos::from_millis(3), Some(1)) };
    let total = causes.iter().fold(Nanos(0), |sum, share| sum + share.total);
    record.explained = Some(Explained { late: 100, total, causes, ..Explained::default() });
    record
}

fn kernel(preempt: &str) -> Machine {
    Machine { kernel: "6.18".to_owned(), preempt: Some(preempt.to_owned()), ..Machine::default() }
}

fn guest(preempt: &str) -> Machine {
    Machine { hypervisor: Some("KVM".to_owned()), ..kernel(preempt) }
}

/// The verdict on one cause alone.
fn verdict(machine: Machine, cause: Share) -> String {
    let lines = leading_causes(&explained(machine, vec![cause]));
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

#[test]
fn leading_causes_are_summed_over_culprits_and_at_most_three() {
    let causes = vec![
        share("host", "", None, [10, 500, 100]),
        share(Cause::NonPreemptible.name(), "cp", Some("copy_page"), [9, 200, 50]),
        share(Cause::NonPreemptible.name(), "dd", Some("read"), [9, 150, 50]),
        share("softirq", "BLOCK", None, [9, 100, 50]),
        share("interrupt", "timer interrupt", None, [9, 50, 5]),
    ];
    let machine = Machine { preempt_modes: vec!["full".to_owned()], ..guest("none") };
    assert_eq!(
        leading_causes(&explained(machine, causes)),
        [
            "50 % the host of this virtual machine: on the host, pin the virtual CPUs to dedicated \
             CPUs",
            "35 % kernel code under preempt=none (cp): boot with `preempt=full`",
            "10 % softirqs (BLOCK): boot a kernel with CONFIG_PREEMPT_RT=y",
        ]
    );
    assert!(leading_causes(&measured(Nanos::from_millis(3), Some(1))).is_empty());
}

#[test]
fn small_causes_are_left_out_and_unexplained_time_is_one() {
    let causes = vec![
        share("softirq", "BLOCK", None, [9, 960, 50]),
        share("dispatch", "", None, [9, 40, 5]),
    ];
    let mut record = explained(kernel("full"), causes);
    assert_eq!(leading_causes(&record).len(), 1);
    let explained = record.explained.as_mut().expect("it is explained");
    (explained.unexplained, explained.total) = (Nanos(4_000_000), Nanos(5_000_000));
    let lines = leading_causes(&record);
    assert!(lines[0].starts_with("80 % unexplained: ") && lines.len() == 2, "{lines:?}");
}

#[test]
fn remedy_depends_on_preemption_model() {
    let section = || share(Cause::NonPreemptible.name(), "cp", Some("copy_page"), [9, 100, 50]);
    let of = |model| verdict(kernel(model), section());
    assert!(of("none").ends_with(
        "preempt=none (cp): boot a kernel with CONFIG_PREEMPT=y or, better, CONFIG_PREEMPT_RT=y"
    ));
    assert!(of("full").ends_with("(cp in copy_page): boot a kernel with CONFIG_PREEMPT_RT=y"));
    assert!(of("rt").contains("no setting shortens it"), "{}", of("rt"));
}

#[test]
fn remedy_depends_on_settings_and_policy() {
    let device = || share("interrupt", "interrupt 24 (virtio0-input)", None, [9, 100, 50]);
    let mut machine = kernel("full");
    assert!(verdict(machine.clone(), device()).contains("smp_affinity_list"));
    machine.config.insert("CONFIG_IRQ_FORCED_THREADING".to_owned(), "y".to_owned());
    assert!(verdict(machine, device()).ends_with(": boot with `threadirqs`"));

    let timer = || share("timer-resolution", "", None, [9, 100, 50]);
    let coarse = Machine { timer_resolution_ns: Some(4_000_000), ..kernel("full") };
    assert!(verdict(coarse, timer()).contains("every 4 ms: boot without `highres=off`"));
    let mut record = explained(kernel("full"), vec![timer()]);
    let slack = Nanos::from_micros(50);
    record.series[0].schedule = Schedule { policy: "other".to_owned(), priority: 0, slack };
    assert!(leading_causes(&record)[0].contains("timer slack of 50 us: use a real-time policy"));

    let rival = || share(Cause::HigherPriority.name(), "load:cpu", None, [9, 100, 50]);
    assert!(verdict(kernel("full"), rival()).contains("(load:cpu): give the measured task a high"));
    let idle = || share("idle-exit", "", None, [9, 100, 50]);
    assert!(verdict(guest("full"), idle()).contains("the host resumes late"));
    assert!(verdict(kernel("full"), idle()).contains("limited already"));
}

#[test]
fn throttling_is_named_after_the_throttle_of_the_kernel() {
    let throttled = || share("throttled", "load:cpu", None, [9, 100, 50]);
    let limited = |version: &str, config: &str| {
        let mut machine =
            Machine { kernel: version.to_owned(), rt_runtime_us: Some(950_000), ..kernel("rt") };
        machine.config.insert(config.to_owned(), "y".to_owned());
        machine
    };
    let of = |version, config| verdict(limited(version, config), throttled());
    let server = "the fair server (SCHED_DEADLINE server of SCHED_OTHER tasks)";
    let command = "for one measurement: `latlab run --set";
    assert_eq!(
        of("6.12.0", "CONFIG_PREEMPT_RT"),
        format!("100 % {server}: {command} fair_server=0`")
    );
    assert_eq!(
        of("6.1.0", "CONFIG_PREEMPT_RT"),
        format!("100 % throttling of real-time tasks: {command} rt_runtime_us=-1`")
    );
    assert_eq!(
        of("6.12.0", "CONFIG_RT_GROUP_SCHED"),
        format!(
            "100 % throttling of real-time tasks or {server}: {command} rt_runtime_us=-1 --set \
             fair_server=0`"
        )
    );
    let mut record = explained(limited("6.12.0", "CONFIG_PREEMPT_RT"), vec![throttled()]);
    "deadline".clone_into(&mut record.series[0].schedule.policy);
    let lines = leading_causes(&record);
    assert!(lines[0].ends_with("or of its SCHED_DEADLINE reservation"), "{lines:?}");
}

#[test]
fn handler_of_milliseconds_is_probably_the_host_in_virtual_machine_only() {
    let handler = || share("interrupt", "timer interrupt", None, [41, 3_300, 3_100]);
    assert_eq!(
        verdict(guest("none"), handler()),
        "100 % interrupt, probably the host (up to 3.1 ms; usually 5 us; hypervisor KVM; no steal \
         time reported): on the host, pin the virtual CPUs to dedicated CPUs"
    );
    assert!(!verdict(kernel("none"), handler()).contains("host"));
    let lab = Machine { time_domain: TimeDomain::Instructions, ..guest("none") };
    assert!(!verdict(lab, handler()).contains("host"));
}

#[test]
fn handler_that_always_takes_milliseconds_is_not_the_host() {
    let record = explained(
        guest("full"),
        vec![share("interrupt", "interrupt 9 (slow)", None, [10, 30_000, 3_000])],
    );
    let suspect = |length| probably_host(&record, "interrupt", "interrupt 9 (slow)", length);
    assert_eq!(suspect(Nanos::from_millis(3)), None);
    assert_eq!(suspect(Nanos::from_micros(999)), None);
    let other = probably_host(&record, "interrupt", "interrupt 8", Nanos::from_millis(3));
    assert_eq!(other.expect("its usual length is not known").usual, None);
}

#[test]
fn long_section_is_probably_the_host_if_it_is_preemptible_and_usually_short() {
    let section = || share(Cause::NonPreemptible.name(), "cp", Some("read"), [11, 3_100, 3_000]);
    let suspect = |model| {
        let record = explained(guest(model), vec![section(), share("host", "", None, [1, 9, 9])]);
        probably_host(&record, Cause::NonPreemptible.name(), "cp (pid 12)", Nanos::from_millis(3))
    };
    let why = suspect("full").expect("its other sections take 10 us");
    assert_eq!((why.usual, why.steal_reported), (Some(Nanos::from_micros(10)), true));
    assert_eq!(suspect("none"), None);
    let few = explained(guest("full"), vec![Share { count: 3, ..section() }]);
    let few = probably_host(&few, Cause::NonPreemptible.name(), "cp", Nanos::from_millis(3));
    assert_eq!(few, None, "its usual length is not known");
}

#[test]
fn functions_are_only_places_without_preemption() {
    let section =
        || vec![share(Cause::NonPreemptible.name(), "cp", Some("copy_page"), [9, 100, 50])];
    let note = |model| note_on_functions(&explained(kernel(model), section()));
    assert!(note("none").is_some_and(|note| note.starts_with("preempt=none: the function")));
    assert!(note("voluntary").is_some());
    assert_eq!((note("full"), note("rt")), (None, None));
    let other = explained(kernel("none"), vec![share("dispatch", "", None, [9, 100, 50])]);
    assert_eq!(note_on_functions(&other), None);
}

#[test]
fn worst_sample_is_compared_with_median() {
    let mut record = measured(Nanos::from_millis(3), Some(7));
    assert_eq!(
        worst(&record).as_deref(),
        Some(
            "Worst sample: 3 ms, 300 times the median (10.01 us), of cyclic on CPU 1, 6 s after the start."
        )
    );
    assert_eq!(next(&record), Next::Explain);
    record.runs = 2;
    assert!(worst(&record).is_some_and(|found| found.ends_with("after the start of its run.")));
}

#[test]
fn next_step_depends_on_what_can_be_done() {
    let late = |index| measured(Nanos::from_millis(3), index);
    assert_eq!(next(&late(None)), Next::Compare);
    let mut unfit = late(None);
    unfit.warnings.push(Warning::new(WarningCode::Machine, "not configured"));
    assert_eq!(next(&unfit), Next::Doctor);
    assert_eq!(next(&measured(Nanos::from_micros(15), Some(1))), Next::Compare);
    let mut known = late(Some(1));
    known.explained = Some(Explained::default());
    assert_eq!(next(&known), Next::Nothing);
    known.worst.clear();
    assert_eq!((next(&known), worst(&known)), (Next::Nothing, None));
}

#[test]
fn stop_is_answered_by_what_did_it() {
    let stopped = |how: &str| verdict(kernel("full"), share("stopped", how, None, [5, 750, 150]));
    let by_signal = stopped("stopped by a signal of sh");
    assert!(by_signal.starts_with("100 % the task was stopped by a signal of sh: let nothing"));
    assert!(stopped("stopped by a tracer, gdb").contains("detach the debugger"));
    let frozen = stopped("frozen with its control group by sh");
    assert!(frozen.contains("the task was frozen") && frozen.contains("cgroup.freeze"), "{frozen}");
}

#[test]
fn quota_is_answered_with_its_group_even_where_throttles_are_on() {
    let quota = "CPU quota of the control group /sys/fs/cgroup/a: 20 ms per 100 ms";
    let machine = Machine { rt_runtime_us: Some(950_000), ..kernel("full") };
    let found = verdict(machine, share("throttled", quota, None, [5, 750, 150]));
    assert!(found.starts_with(&format!("100 % throttled: {quota}: raise the quota")), "{found}");
    assert!(found.contains("`cpu.max` of /sys/fs/cgroup/a") && !found.contains("--set"), "{found}");
}
