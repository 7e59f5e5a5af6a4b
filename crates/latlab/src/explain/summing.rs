//! What all explanations of a run come to, for its record.

use super::Late;
use crate::cause;
use latlab_bpf::Recorder;
use latlab_core::explain::charge::{Circumstances, Explanation};
use latlab_core::explain::names::Names;
use latlab_core::explain::summary::{self, Summary};
use latlab_core::machine::{Machine, TimeDomain};
use latlab_core::record::Sample;
use latlab_core::record::explained::{Cost, Explained};
use latlab_core::symbols::{NoSymbols, Symbols};
use latlab_core::time::Nanos;
use latlab_sys::machine::interrupts;
use latlab_sys::root::Root;

/// What was explained, and what could not be.
pub(crate) struct Explanations {
    pub(crate) explained: Explained,
    /// The worst, with their charges.
    pub(crate) worst: Vec<Sample>,
}

/// How much was seen, beside what was late.
pub(super) struct Extent {
    pub(super) wake_ups: u64,
    pub(super) above: Nanos,
    /// Samples that came faster than they were looked at.
    pub(super) lost: u64,
}

impl Explanations {
    pub(super) fn of(
        late: &[Late],
        extent: &Extent,
        recorder: &Recorder,
        machine: &Machine,
    ) -> Explanations {
        let circumstances = Circumstances {
            timer_resolution: Nanos(machine.timer_resolution_ns.unwrap_or(1)),
            // What the host does takes none of the guest's instructions.
            hypervisor: machine.hypervisor.is_some()
                && machine.time_domain != TimeDomain::Instructions,
        };
        let (names, hidden) = names();
        let mut summary = Summary::default();
        for one in late {
            summary.add(one.named(), &one.explain(&circumstances), &names);
        }
        let mut missing = missing(late, recorder);
        missing.extend(hidden.map(|why| format!("no function is named: {why}")));
        let losses = recorder.losses();
        let explained = Explained {
            wake_ups: extent.wake_ups,
            above: extent.above,
            cost: cost(recorder),
            lost: extent.lost + losses.windows + losses.unreadable + losses.events_missed,
            missing,
            ..summary.explained()
        };
        Explanations { explained, worst: summary.worst().to_vec() }
    }
}

impl Late {
    fn named(&self) -> summary::Late<'_> {
        summary::Late {
            probe: &self.probe,
            cpu: self.cpu,
            at: self.at - self.origin,
            due: self.at - self.latency,
            latency: self.latency,
        }
    }

    /// Nothing is known of one that was not seen to wake up.
    fn explain(&self, circumstances: &Circumstances) -> Explanation {
        match &self.window {
            Some(window) => cause::explain(window, circumstances),
            None => Explanation { charges: Vec::new(), unexplained: self.latency },
        }
    }
}

/// What the numbers of this machine are called, and why functions are not.
fn names() -> (Names, Option<NoSymbols>) {
    let root = Root::default();
    let interrupts = interrupts::handlers(&root);
    match Symbols::parse(&root.text("proc/kallsyms").unwrap_or_default()) {
        Ok(symbols) => (Names { symbols, interrupts }, None),
        Err(why) => (Names { symbols: Symbols::default(), interrupts }, Some(why)),
    }
}

/// What can't be told, a sentence each.
fn missing(late: &[Late], recorder: &Recorder) -> Vec<String> {
    let mut missing = Vec::new();
    let unseen = late.iter().filter(|one| one.window.is_none()).count();
    if unseen > 0 {
        missing.push(format!(
            "{unseen} of the late samples belong to no wake-up that was seen: the task had not slept, \
             or its wake-up was lost"
        ));
    }
    let torn = late.iter().filter(|one| one.window.as_ref().is_some_and(|seen| seen.torn)).count();
    if torn > 0 {
        missing.push(format!(
            "of {torn} late wake-ups the first events are missing: more happened than is kept"
        ));
    }
    let tracepoints = recorder.missing();
    if !tracepoints.is_empty() {
        let list = tracepoints.join(", ");
        missing
            .push(format!("this kernel lacks the tracepoints {list}: what they say is not known"));
    }
    let unwatched = recorder.losses().unwatched;
    if unwatched > 0 {
        missing
            .push(format!("{unwatched} wake-ups were of more tasks than can be watched at a time"));
    }
    if let Some(error) = recorder.uncounted() {
        missing.push(format!(
            "what explaining cost was not counted ({error}): it needs CAP_SYS_ADMIN"
        ));
    }
    missing
}

fn cost(recorder: &Recorder) -> Vec<Cost> {
    let mut cost: Vec<Cost> = recorder
        .cost()
        .into_iter()
        .filter(|program| program.runs > 0)
        .map(|program| Cost { program: program.name, runs: program.runs, ns: program.time })
        .collect();
    cost.sort_by_key(|program| std::cmp::Reverse(program.ns));
    cost
}
