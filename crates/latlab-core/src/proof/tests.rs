//! Tests of the table of remedies and of the words of a proof.

mod chance;

use super::*;
use crate::cause::Cause;
use crate::cpulist::CpuList;
use crate::machine::{FairServer, IdleState, Machine};
use crate::plan::{Part, Plan, Setting};
use crate::record::explained::{Explained, Share, Stack};
use crate::record::{Record, tests};
use crate::time::Nanos;
use serde_json::{Value, json};

fn part(name: &str, params: &Value) -> Part {
    Part { name: name.to_owned(), params: params.as_object().expect("an object").clone() }
}

/// A share of a cause, with its task, its function and its time in microseconds.
fn share(cause: &str, culprit: &str, function: &str, us: u64) -> Share {
    Share {
        cause: cause.to_owned(),
        culprit: culprit.to_owned(),
        function: (!function.is_empty()).then(|| function.to_owned()),
        count: 10,
        total: Nanos::from_micros(us),
        worst: Nanos::from_micros(us / 10),
    }
}

/// A record of a FIFO task of priority 10 on CPU 0 with these causes.
fn explained(machine: Machine, causes: Vec<Share>) -> Record {
    let mut record = tests::record(4, &[(0, (vec![1_000, 9_000_000], 0))]);
    record.plan.probes = vec![part("cyclic", &json!({"policy": "fifo", "priority": 10}))];
    record.plan.loads = vec![part("cpu", &json!({"on": "all"}))];
    record.plan.cpus = CpuList::from_iter([0]);
    let total = causes.iter().fold(Nanos(0), |sum, share| sum + share.total);
    record.explained = Some(Explained { late: 10, total, causes, ..Explained::default() });
    Record { machine: Machine { cpus: CpuList::from_iter([0]), ..machine }, ..record }
}

fn turns(record: &Record) -> Vec<String> {
    candidates(record).iter().map(|candidate| candidate.remedy.words()).collect()
}

fn machine(preempt: &str) -> Machine {
    Machine {
        preempt: Some(preempt.to_owned()),
        preempt_modes: ["none", "voluntary", "full"].map(str::to_owned).to_vec(),
        kernel: "6.1".to_owned(),
        ..Machine::default()
    }
}

#[test]
fn task_of_low_priority_gets_a_higher_one() {
    let mut record =
        explained(machine("rt"), vec![share(Cause::HigherPriority.name(), "load:cpu", "", 2_000)]);
    assert_eq!(turns(&record), ["FIFO priority 98"]);
    record.plan.probes[0].params["priority"] = json!(98);
    assert_eq!(turns(&record), ["FIFO priority 99"]);
    record.plan.probes[0].params["priority"] = json!(99);
    assert!(candidates(&record).is_empty());
    record.series[0].schedule.priority = 99;
    let left = not_tried(&record);
    assert!(left[0].contains("has the highest priority"), "{left:?}");
}

#[test]
fn ordinary_task_gets_a_real_time_policy_and_a_deadline_stays() {
    let mut record =
        explained(machine("rt"), vec![share(Cause::HigherPriority.name(), "load:cpu", "", 2_000)]);
    record.plan.probes[0].params["policy"] = json!("other");
    let [Candidate { remedy, .. }] = &candidates(&record)[..] else { panic!("one is expected") };
    let probe = &remedy.applied_to(&record.plan).probes[0];
    assert_eq!(probe.params, *json!({"policy": "fifo", "priority": 98}).as_object().unwrap());
    record.plan.probes[0].params["policy"] = json!("deadline");
    assert!(candidates(&record).is_empty());
}

/// What is measured is what its words say.
#[test]
fn round_robin_task_gets_fifo() {
    let mut record =
        explained(machine("rt"), vec![share(Cause::HigherPriority.name(), "load:cpu", "", 2_000)]);
    record.plan.probes[0].params["policy"] = json!("rr");
    let [Candidate { remedy, .. }] = &candidates(&record)[..] else { panic!("one is expected") };
    assert_eq!(remedy.words(), "FIFO priority 98");
    let probe = &remedy.applied_to(&record.plan).probes[0];
    assert_eq!(probe.params, *json!({"policy": "fifo", "priority": 98}).as_object().unwrap());
}

/// The thread of the softirq calls timers there, elsewhere an interrupt does.
#[test]
fn priority_is_above_that_of_timers_on_preempt_rt_only() {
    let cause = || vec![share(Cause::TimerCallbacks.name(), "HRTIMER", "timerfd_tmrproc", 900)];
    assert_eq!(turns(&explained(machine("rt"), cause())), ["FIFO priority 98"]);
    assert!(turns(&explained(machine("full"), cause())).is_empty());
}

#[test]
fn preemption_is_changed_only_where_the_kernel_can() {
    let cause = || vec![share(Cause::NonPreemptible.name(), "load:procfs", "string", 2_000)];
    assert_eq!(turns(&explained(machine("voluntary"), cause())), ["preempt=full"]);
    assert!(turns(&explained(machine("full"), cause())).is_empty());
    let fixed = Machine { preempt_modes: Vec::new(), ..machine("voluntary") };
    let record = explained(fixed, cause());
    assert!(turns(&record).is_empty());
    assert!(not_tried(&record)[0].contains("CONFIG_PREEMPT_RT=y"), "{:?}", not_tried(&record));
}

#[test]
fn throttling_is_lifted_only_where_there_is_a_limit() {
    let cause = || vec![share("throttled", "swapper/0", "", 2_000)];
    let limited = |us| Machine { rt_runtime_us: Some(us), ..machine("rt") };
    assert_eq!(turns(&explained(limited(500_000), cause())), ["rt_runtime_us=-1"]);
    assert!(turns(&explained(limited(-1), cause())).is_empty());
}

#[test]
fn throttle_that_the_kernel_has_is_switched_off() {
    let cause = || vec![share("throttled", "load:cpu", "", 2_000)];
    let of = |config: &str, runtime_ns: u64| {
        let mut machine = Machine { kernel: "6.12".to_owned(), ..machine("rt") };
        machine.rt_runtime_us = Some(950_000);
        machine.config.insert(config.to_owned(), "y".to_owned());
        machine.scheduling.fair_server = Some(FairServer { runtime_ns, period_ns: 1_000_000_000 });
        turns(&explained(machine, cause()))
    };
    assert_eq!(of("CONFIG_PREEMPT_RT", 50_000_000), ["fair_server=0"]);
    assert!(of("CONFIG_PREEMPT_RT", 0).is_empty());
    assert_eq!(
        of("CONFIG_RT_GROUP_SCHED", 50_000_000),
        ["rt_runtime_us=-1", "rt_runtime_us=-1 and fair_server=0"]
    );
    assert_eq!(of("CONFIG_RT_GROUP_SCHED", 0), ["rt_runtime_us=-1"]);
}

#[test]
fn memory_is_changed_only_where_its_functions_are_blamed() {
    let mut fixed = machine("full");
    fixed.memory.transparent_hugepage = Some("always".to_owned());
    let of = |function| vec![share(Cause::NonPreemptible.name(), "load:exit", function, 2_000)];
    let freed = explained(fixed.clone(), of("free_pcppages_bulk"));
    assert_eq!(turns(&freed), ["pagelist_high_fraction=1000000"]);
    let mut cleared = explained(fixed, of("clear_page_erms"));
    assert!(turns(&cleared).is_empty());
    let explained = cleared.explained.as_mut().unwrap();
    let stack = "non-preemptible;load:exit;do_huge_pmd_anonymous_page;clear_page_erms".to_owned();
    explained.stacks.push(Stack { stack, ns: Nanos::from_millis(2) });
    assert_eq!(turns(&cleared), ["transparent_hugepage=madvise"]);
}

#[test]
fn loads_move_only_where_a_cpu_is_free() {
    let mut record =
        explained(machine("full"), vec![share(Cause::InterruptsOff.name(), "load:cpu", "x", 900)]);
    assert!(turns(&record).is_empty());
    record.machine.cpus = CpuList::from_iter([0, 1]);
    assert_eq!(turns(&record), ["loads on other CPUs"]);
    let moved = Remedy::Elsewhere.applied_to(&record.plan);
    assert_eq!(moved.loads[0].params["on"], json!("others"));
    record.plan.loads.clear();
    assert!(turns(&record).is_empty());
}

#[test]
fn governor_is_changed_only_where_it_varies_the_frequency() {
    let mut varying = machine("rt");
    varying.governor = Some("schedutil".to_owned());
    varying.processor.frequency.governors =
        ["schedutil", "performance"].map(str::to_owned).to_vec();
    let cause = || vec![share("dispatch", "", "", 900)];
    assert_eq!(turns(&explained(varying.clone(), cause())), ["governor=performance"]);
    let constant = Machine { governor: Some("performance".to_owned()), ..varying.clone() };
    assert!(turns(&explained(constant, cause())).is_empty());
    varying.processor.frequency.governors.pop();
    assert!(turns(&explained(varying, cause())).is_empty());
}

#[test]
fn idle_states_are_limited_only_where_there_are_some() {
    let cause = || vec![share("idle-exit", "", "", 900)];
    assert!(turns(&explained(machine("rt"), cause())).is_empty());
    let mut idle = machine("rt");
    idle.processor.idle.states = vec![IdleState { name: "C6".to_owned(), ..IdleState::default() }];
    assert_eq!(turns(&explained(idle.clone(), cause())), ["cpu_dma_latency=0"]);
    idle.processor.idle.cpu_dma_latency_us = Some(0);
    assert!(turns(&explained(idle, cause())).is_empty());
}

#[test]
fn thread_of_the_memory_management_is_changed_only_where_it_is_to_blame() {
    let of = |culprit| vec![share(Cause::NonPreemptible.name(), culprit, "x", 900)];
    let kcompactd = explained(machine("rt"), of("kcompactd0"));
    assert_eq!(turns(&kcompactd), ["compaction_proactiveness=0"]);
    let mut merging = machine("rt");
    merging.memory.ksm = Some(1);
    assert_eq!(turns(&explained(merging.clone(), of("ksmd"))), ["ksm=0"]);
    assert!(turns(&explained(merging, of("load:disk"))).is_empty());
}

#[test]
fn interrupt_thread_that_is_to_blame_is_adapted() {
    let adapted = "adapting by transparent and inherit";
    let above = explained(
        machine("rt"),
        vec![share(Cause::HigherPriority.name(), "irq/24-nvme0q1", "", 900)],
    );
    assert_eq!(turns(&above), ["FIFO priority 98", adapted]);
    let mut late = explained(machine("rt"), vec![share("interrupt-thread", "irq/24", "", 900)]);
    assert_eq!(turns(&late), [adapted]);
    late.plan.adapt = ["transparent", "inherit"].map(str::to_owned).to_vec();
    assert!(turns(&late).is_empty());
}

#[test]
fn time_of_the_host_is_not_changed() {
    let record = explained(machine("full"), vec![share("host", "", "", 900)]);
    assert!(turns(&record).is_empty());
    assert!(not_tried(&record)[0].contains("on the host"), "{:?}", not_tried(&record));
}

#[test]
fn one_remedy_of_two_causes_is_tried_once() {
    let causes = vec![
        share(Cause::HigherPriority.name(), "load:cpu", "", 2_000),
        share("equal-priority", "load:cpu", "", 1_000),
    ];
    let all = candidates(&explained(machine("rt"), causes));
    let [Candidate { causes, .. }] = &all[..] else { panic!("{all:?}") };
    assert_eq!(causes, &[Cause::HigherPriority.name(), "equal-priority"]);
}

#[test]
fn knob_that_the_plan_sets_is_replaced_by_the_remedy() {
    let setting =
        |knob: &str, value: &str| Setting { knob: knob.to_owned(), value: value.to_owned() };
    let settings = vec![setting("rt_runtime_us", "500000"), setting("ksm", "0")];
    let plan = Plan { settings, ..tests::record(1, &[]).plan };
    let changed = Remedy::knob("rt_runtime_us", "-1").applied_to(&plan);
    assert_eq!(changed.settings, [setting("ksm", "0"), setting("rt_runtime_us", "-1")]);
    assert_eq!(Plan { settings: plan.settings.clone(), ..changed }, plan);
}

/// Every change can be made again without effect, and says how to keep it.
#[test]
fn change_is_complete_and_says_how_to_keep_it() {
    let record = explained(machine("rt"), Vec::new());
    let adapt = Remedy::Adapt(vec!["transparent".to_owned()]);
    let throttles = Remedy::knobs(&[("rt_runtime_us", "-1"), ("fair_server", "0")]);
    let preempt = Remedy::knob("preempt", "full");
    for remedy in [preempt, throttles.clone(), Remedy::Priority(98), Remedy::Elsewhere, adapt] {
        let once = remedy.applied_to(&record.plan);
        assert_ne!(once, record.plan, "{remedy:?}");
        assert_eq!(remedy.applied_to(&once), once, "{remedy:?}");
        assert!(!remedy.for_good().is_empty());
    }
    assert_eq!(Remedy::knob("preempt", "full").for_good(), "boot with `preempt=full`");
    assert_eq!(
        throttles.for_good(),
        "`kernel.sched_rt_runtime_us=-1`, in a file of /etc/sysctl.d; `echo 0 | tee \
         /sys/kernel/debug/sched/fair_server/cpu*/runtime` at each start"
    );
}

fn judged(effect: Effect, ratio: f64) -> Outcome {
    let figure = JudgedFigure {
        probe: "cyclic".to_owned(),
        name: "worst".to_owned(),
        without: Nanos::from_millis(2),
        with: Nanos::from_micros(5),
        ratio,
        interval: None,
        p: None,
        effect,
    };
    Outcome::Judged(Judged { effect, figures: vec![figure] })
}

#[test]
fn words_name_what_helped_first_and_how_to_keep_it() {
    let proof = |remedy, outcome| Proof { remedy, causes: Vec::new(), pairs: 6, outcome };
    let proofs = Proofs {
        tried: vec![
            proof(Remedy::Priority(98), judged(Effect::Helped, 0.5)),
            proof(Remedy::knob("preempt", "full"), judged(Effect::Helped, 0.0025)),
            proof(Remedy::knob("ksm", "0"), judged(Effect::NoneShown, 1.0)),
            Proof {
                pairs: 0,
                ..proof(Remedy::Elsewhere, Outcome::Refused("there is no other CPU".to_owned()))
            },
        ],
        not_tried: vec!["the host: pin it".to_owned()],
    };
    let sentences = proofs.sentences(|time| time.to_string());
    assert_eq!(sentences[1], "preempt=full helped: worst 2 ms → 5 us, ÷ 400");
    assert_eq!(sentences[2], "ksm=0: no effect shown: worst 2 ms → 5 us, +0.00 %");
    assert_eq!(sentences[3], "loads on other CPUs could not be made: there is no other CPU");
    assert_eq!(sentences[4], "not tried: the host: pin it");
    assert_eq!(sentences[5], "to keep preempt=full: boot with `preempt=full`");
    assert!(sentences[6].starts_with("to keep FIFO priority 98: "), "{sentences:?}");
    assert_eq!(sentences.len(), 7);
}

#[test]
fn words_do_not_deny_a_help_that_also_harmed() {
    let proof =
        |outcome| Proof { remedy: Remedy::Elsewhere, causes: Vec::new(), pairs: 6, outcome };
    let conclusion = |outcome| {
        let tried = vec![proof(outcome), proof(judged(Effect::NoneShown, 1.0))];
        Proofs { tried, not_tried: Vec::new() }.conclusion()
    };
    let harmed = conclusion(judged(Effect::Harmed, 2.0));
    assert_eq!(harmed, ["none of the remedies is shown to help"]);
    let mixed = conclusion(judged(Effect::Mixed, 0.5));
    assert_eq!(mixed, ["none of the remedies is shown to help without harm"]);
}

#[test]
fn words_tell_a_late_failure_from_a_refusal() {
    let sentence = |pairs| {
        let (remedy, causes) = (Remedy::Elsewhere, Vec::new());
        let outcome = Outcome::Refused("no memory".to_owned());
        Proof { remedy, causes, pairs, outcome }.sentence(|time| time.to_string())
    };
    assert_eq!(sentence(0), "loads on other CPUs could not be made: no memory");
    assert_eq!(sentence(1), "loads on other CPUs failed after 1 pair of runs: no memory");
    assert_eq!(sentence(6), "loads on other CPUs failed after 6 pairs of runs: no memory");
}

#[test]
fn proofs_survive_json() {
    let proof = Proof {
        remedy: Remedy::Priority(98),
        causes: vec!["throttled".to_owned()],
        pairs: 6,
        outcome: judged(Effect::Helped, 0.5),
    };
    let mut record = explained(machine("rt"), Vec::new());
    record.proofs = Some(Proofs { tried: vec![proof], not_tried: Vec::new() });
    let read = Record::from_json(&record.to_json()).unwrap();
    assert_eq!(read.proofs, record.proofs);
}
