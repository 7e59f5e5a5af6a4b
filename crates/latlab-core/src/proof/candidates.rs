//! The table of remedies: what can be changed against each cause.

use super::Remedy;
use super::evidence::Evidence;
use crate::cause::Cause;
use crate::doctor;
use crate::explain::quota::QUOTA;
use crate::machine::Throttle;
use crate::record::Record;
use crate::verdict::{self, LeadingCause};
use serde_json::Value;

/// A remedy to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The change.
    pub remedy: Remedy,
    /// The leading causes that it is a remedy for, the largest first.
    pub causes: Vec<String>,
}

/// Returns a change if the evidence speaks for it and the machine does not have it already.
type Rule = fn(&Evidence<'_>) -> Option<Remedy>;

/// The remedies of each cause, the most likely first. There are none for time of the host, late
/// interrupts that may be the host's, time that the kernel does not report, and the work of the
/// task itself.
const TABLE: &[(Cause, &[Rule])] = &[
    (Cause::TimerResolution, &[realtime_policy]),
    (Cause::TimerCallbacks, &[above_softirqs, timers_stay, elsewhere]),
    (Cause::Interrupt, &[elsewhere]),
    (Cause::InterruptsOff, &[small_batches, background_work, elsewhere]),
    (Cause::Softirq, &[above_softirqs, timers_stay, elsewhere]),
    (Cause::PageFault, &[huge_pages, merging, numa_balancing, swapping]),
    (Cause::Overrun, &[constant_frequency]),
    (Cause::InterruptThread, &[adapting]),
    (Cause::Migration, &[timers_stay, elsewhere]),
    (Cause::Throttled, &[first_throttle_off, both_throttles_off]),
    (Cause::IdleExit, &[shallow_idle, constant_frequency]),
    (Cause::HigherPriority, &[outrank, adapting_above, elsewhere]),
    (Cause::EqualPriority, &[outrank, background_work, elsewhere]),
    (Cause::NonPreemptible, &[preemption, huge_pages, small_batches, background_work, elsewhere]),
    (Cause::Dispatch, &[constant_frequency]),
];

/// The highest priority that a program should have: the kernel's own threads use 99.
const HIGHEST: u32 = 98;

/// Returns what can be changed against the leading causes of the late wake-ups of a record, each
/// change once.
pub fn candidates(record: &Record) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for LeadingCause { cause, .. } in verdict::leading(record).into_iter().filter(|c| !c.hosted) {
        for remedy in remedies(record, &cause) {
            match all.iter_mut().find(|known| known.remedy == remedy) {
                Some(known) => known.causes.push(cause.clone()),
                None => all.push(Candidate { remedy, causes: vec![cause.clone()] }),
            }
        }
    }
    all
}

/// Returns the leading causes against which nothing can be changed at once, each with what to do, as
/// clauses.
pub fn not_tried(record: &Record) -> Vec<String> {
    let without = verdict::leading(record)
        .into_iter()
        .filter(|c| c.hosted || remedies(record, &c.cause).is_empty());
    without.map(|LeadingCause { what, remedy, .. }| format!("{what}: {remedy}")).collect()
}

fn remedies(record: &Record, cause: &str) -> Vec<Remedy> {
    let rules =
        TABLE.iter().find(|(known, _)| *cause == *known).map_or(&[][..], |(_, rules)| rules);
    let evidence = Evidence { record, cause };
    rules.iter().filter_map(|rule| rule(&evidence)).collect()
}

/// Whether doctor finds this about the machine.
fn has(evidence: &Evidence<'_>, code: &str) -> bool {
    doctor::diagnose(evidence.machine()).iter().any(|finding| finding.code == code)
}

/// Against kernel code that runs on to its next scheduling point.
fn preemption(evidence: &Evidence<'_>) -> Option<Remedy> {
    let machine = evidence.machine();
    let can = machine.preempt_modes.iter().any(|mode| mode == "full");
    (can && machine.runs_to_scheduling_point()).then(|| Remedy::knob("preempt", "full"))
}

/// Against the throttle of real-time tasks that acts first.
fn first_throttle_off(evidence: &Evidence<'_>) -> Option<Remedy> {
    let first = throttles(evidence).into_iter().next();
    first.map(|throttle| Remedy::knobs(&[throttle.switched_off_by()]))
}

/// Against two throttles of real-time tasks: the second acts where the first is off.
fn both_throttles_off(evidence: &Evidence<'_>) -> Option<Remedy> {
    let all: Vec<_> = throttles(evidence);
    let settings: Vec<_> = all.into_iter().map(Throttle::switched_off_by).collect();
    (settings.len() > 1).then(|| Remedy::knobs(&settings))
}

/// The throttles of real-time tasks that may be to blame: none is for the quota of a control group.
fn throttles(evidence: &Evidence<'_>) -> Vec<Throttle> {
    if evidence.blames(QUOTA) { Vec::new() } else { evidence.machine().throttles() }
}

/// Against tasks of the same or a higher priority.
fn outrank(evidence: &Evidence<'_>) -> Option<Remedy> {
    let changed = |priority: u32| {
        let remedy = Remedy::Priority(priority);
        let plan = &evidence.record.plan;
        (remedy.applied_to(plan) != *plan).then_some(remedy)
    };
    changed(HIGHEST).or_else(|| changed(HIGHEST + 1))
}

/// Against timer slack, which real-time tasks do not have.
fn realtime_policy(evidence: &Evidence<'_>) -> Option<Remedy> {
    let ordinary = |params: &serde_json::Map<String, Value>| {
        params.get("policy").and_then(Value::as_str) == Some("other")
    };
    let is_ordinary = evidence.record.plan.probes.iter().any(|probe| ordinary(&probe.params));
    is_ordinary.then(|| outrank(evidence)).flatten()
}

/// Against softirqs, which are tasks on `PREEMPT_RT`, and against the timers that they call.
fn above_softirqs(evidence: &Evidence<'_>) -> Option<Remedy> {
    let are_tasks = evidence.machine().preempt.as_deref() == Some("rt");
    are_tasks.then(|| outrank(evidence)).flatten()
}

/// Against an interrupt thread that runs too late.
fn adapting(evidence: &Evidence<'_>) -> Option<Remedy> {
    let remedy = Remedy::Adapt(["transparent", "inherit"].map(str::to_owned).to_vec());
    let plan = &evidence.record.plan;
    (remedy.applied_to(plan) != *plan).then_some(remedy)
}

/// Against interrupt threads of a higher priority than the task, which it may not need.
fn adapting_above(evidence: &Evidence<'_>) -> Option<Remedy> {
    evidence.blames("irq/").then(|| adapting(evidence)).flatten()
}

/// Against all work that is not the task's.
fn elsewhere(evidence: &Evidence<'_>) -> Option<Remedy> {
    let (plan, machine) = (&evidence.record.plan, evidence.machine());
    let is_room = !machine.cpus.minus(&plan.cpus).is_empty();
    (is_room && Remedy::Elsewhere.applied_to(plan) != *plan).then_some(Remedy::Elsewhere)
}

/// Against timers of other CPUs.
fn timers_stay(evidence: &Evidence<'_>) -> Option<Remedy> {
    has(evidence, "timer-migration").then(|| Remedy::knob("timer_migration", "0"))
}

/// Against huge pages, which are cleared in one piece and found by compaction.
fn huge_pages(evidence: &Evidence<'_>) -> Option<Remedy> {
    let always = evidence.machine().memory.transparent_hugepage.as_deref() == Some("always");
    let blamed = evidence.passes_through(&["huge", "compact_zone", "isolate_migratepages"])
        || evidence.blames("khugepaged")
        || *evidence.cause == Cause::PageFault;
    (always && blamed).then(|| Remedy::knob("transparent_hugepage", "madvise"))
}

/// Against pages that are freed in large batches with a lock held.
fn small_batches(evidence: &Evidence<'_>) -> Option<Remedy> {
    let blamed = evidence.passes_through(&["free_pcppages_bulk", "__free_one_page"]);
    // The kernel keeps its smallest lists; `latlab adapt mode` sets the same.
    blamed.then(|| Remedy::knob("pagelist_high_fraction", "1000000"))
}

/// Against threads of the memory management.
fn background_work(evidence: &Evidence<'_>) -> Option<Remedy> {
    let memory = &evidence.machine().memory;
    match () {
        () if evidence.blames("kcompactd") => Some(Remedy::knob("compaction_proactiveness", "0")),
        () if evidence.blames("ksmd") && memory.ksm == Some(1) => Some(Remedy::knob("ksm", "0")),
        () => None,
    }
}

/// Against page faults on merged pages.
fn merging(evidence: &Evidence<'_>) -> Option<Remedy> {
    has(evidence, "ksm").then(|| Remedy::knob("ksm", "0"))
}

/// Against page faults that find out where memory is used.
fn numa_balancing(evidence: &Evidence<'_>) -> Option<Remedy> {
    has(evidence, "numa-balancing").then(|| Remedy::knob("numa_balancing", "0"))
}

/// Against page faults that read from disk.
fn swapping(evidence: &Evidence<'_>) -> Option<Remedy> {
    let used = evidence.machine().memory.swap_used_kib.is_some_and(|used| used > 0);
    (used && evidence.machine().memory.swappiness != Some(0))
        .then(|| Remedy::knob("swappiness", "0"))
}

/// Against a CPU that is slow when a task wakes.
fn constant_frequency(evidence: &Evidence<'_>) -> Option<Remedy> {
    let offered = &evidence.machine().processor.frequency.governors;
    let can = offered.iter().any(|governor| governor == "performance");
    let varies = has(evidence, "governor") || has(evidence, "lowest-frequency");
    (can && varies).then(|| Remedy::knob("governor", "performance"))
}

/// Against idle states that take long to leave.
fn shallow_idle(evidence: &Evidence<'_>) -> Option<Remedy> {
    let idle = &evidence.machine().processor.idle;
    let limited = idle.cpu_dma_latency_us == Some(0);
    (!idle.states.is_empty() && !limited).then(|| Remedy::knob("cpu_dma_latency", "0"))
}
