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

impl Explanations {
    /// So many samples of probes were not kept.
    pub(super) fn lost_samples(&mut self, count: u64) {
        self.explained.lost += count;
        let what = "samples were not kept: they came faster than they were read";
        self.explained.missing.extend((count > 0).then(|| format!("{count} {what}")));
    }
}

/// Late wake-ups as they come. Each is explained at once: what was seen of one takes up to a hundred
/// times the room of its explanation.
pub(super) struct Sum {
    circumstances: Circumstances,
    names: Names,
    /// Why functions have no names.
    hidden: Option<NoSymbols>,
    /// Whether it was said what is late; else only the worst count.
    asked: bool,
    kept: Vec<Known>,
    summary: Summary,
    /// No wake-up that is not above this is kept any more.
    above: Nanos,
    unseen: u64,
    /// What the latencies of these add up to: all of it is unexplained.
    unseen_for: Nanos,
    torn: u64,
}

/// A late wake-up that was explained.
struct Known {
    late: Late,
    explanation: Explanation,
    seen: bool,
    torn: bool,
}

/// So many of the worst are kept; of twice as many, the better half goes.
const KEPT: usize = 5_000;

impl Sum {
    pub(super) fn new(machine: &Machine, asked: bool) -> Sum {
        let circumstances = Circumstances {
            timer_resolution: Nanos(machine.timer_resolution_ns.unwrap_or(1)),
            // What the host does takes none of the guest's instructions.
            hypervisor: machine.hypervisor.is_some()
                && machine.time_domain != TimeDomain::Instructions,
        };
        let (names, hidden) = names();
        let (kept, summary) = (Vec::new(), Summary::default());
        let (above, unseen, unseen_for, torn) = (Nanos(0), 0, Nanos(0), 0);
        #[rustfmt::skip]
        let sum = Sum {
            circumstances, names, hidden, asked, kept, summary, above, unseen, unseen_for, torn,
        };
        sum
    }

    /// Explains one more.
    pub(super) fn add(&mut self, mut late: Late) {
        let explanation = late.explain(&self.circumstances);
        let window = late.window.take();
        let torn = window.as_ref().is_some_and(|window| window.torn);
        let known = Known { late, explanation, seen: window.is_some(), torn };
        if self.asked {
            self.book(&known);
        } else if known.late.latency > self.above {
            self.kept.push(known);
            self.keep_the_worst();
        }
    }

    /// Above which latency all are kept.
    pub(super) fn above(&self) -> Nanos {
        self.above
    }

    /// The worst so far, and the task's or the probe's name.
    pub(super) fn worst(&self) -> Option<(&str, Nanos)> {
        let kept = self.kept.iter().map(|known| (known.late.probe.as_str(), known.late.latency));
        let booked = self.summary.worst().iter().map(|one| (one.probe.as_str(), one.latency));
        kept.chain(booked).max_by_key(|(_, latency)| *latency)
    }

    /// What those above a latency come to until now, or the worst of them.
    pub(super) fn so_far(&self, wake_ups: u64, above: Nanos) -> Explained {
        // To name the functions of more takes longer than somebody who looks on should cost.
        const MOST: usize = 1_000;
        let above = above.max(self.above);
        let mut late: Vec<&Known> =
            self.kept.iter().filter(|known| known.late.latency > above).collect();
        late.sort_by_key(|known| std::cmp::Reverse(known.late.latency));
        let above = late.get(MOST).map_or(above, |first| first.late.latency);
        if self.asked {
            return Explained { wake_ups, above, ..self.summary.explained() };
        }
        let mut summary = Summary::default();
        for known in late.into_iter().take_while(|known| known.late.latency > above) {
            summary.add(known.late.named(), &known.explanation, &self.names);
        }
        Explained { wake_ups, above, ..summary.explained() }
    }

    /// What those above a latency come to.
    pub(super) fn finish(
        mut self,
        wake_ups: u64,
        above: Nanos,
        recorder: &Recorder,
    ) -> Explanations {
        let above = above.max(self.above);
        for known in std::mem::take(&mut self.kept) {
            if known.late.latency > above {
                self.book(&known);
            }
        }
        let mut missing = self.missing(recorder);
        missing.extend(self.hidden.iter().map(|why| format!("no function is named: {why}")));
        let losses = recorder.losses();
        let explained = Explained {
            wake_ups,
            above,
            cost: cost(recorder),
            counted: recorder.counted(),
            lost: losses.windows + losses.unreadable + losses.events_missed,
            missing,
            ..self.summary.explained()
        };
        Explanations { explained, worst: self.summary.worst().to_vec() }
    }

    fn keep_the_worst(&mut self) {
        if self.kept.len() > 2 * KEPT {
            self.kept.sort_by_key(|known| std::cmp::Reverse(known.late.latency));
            self.above = self.kept[KEPT].late.latency;
            self.kept.truncate(KEPT);
        }
    }

    fn book(&mut self, known: &Known) {
        if !known.seen {
            self.unseen += 1;
            self.unseen_for = self.unseen_for + known.late.latency;
        }
        self.torn += u64::from(known.torn);
        self.summary.add(known.late.named(), &known.explanation, &self.names);
    }

    /// What can't be told, a sentence each.
    fn missing(&self, recorder: &Recorder) -> Vec<String> {
        let losses = recorder.losses();
        let unseen = format!(
            "late samples, {} of what is unexplained, belong to no wake-up that was seen: the \
             kernel did not report it, there was no room for it, or the task had not slept",
            self.unseen_for
        );
        let counts = [
            (self.unseen, unseen.as_str()),
            (
                self.torn,
                "late wake-ups lack events: more happened than is kept, or the kernel did not \
                 report a switch",
            ),
            (losses.windows, "late wake-ups were not kept: they came faster than they were read"),
            (losses.unreadable, "late wake-ups were not kept: they could not be read"),
            (
                losses.events_missed,
                "events were not kept: they came while the CPU noted another of the same kind",
            ),
            (losses.switches, "switches between tasks were not reported by the kernel"),
            (losses.unwatched, "wake-ups were of more tasks than can be watched at a time"),
            (
                losses.threads,
                "threads were not watched: their numbers differ from those of others that were by \
                 a multiple of 4096",
            ),
        ];
        let counted = counts.iter().filter(|(count, _)| *count > 0);
        let mut missing: Vec<String> =
            counted.map(|(count, what)| format!("{count} {what}")).collect();
        let tracepoints = recorder.missing();
        if !tracepoints.is_empty() {
            let list = tracepoints.join(", ");
            missing.push(format!(
                "this kernel lacks the tracepoints {list}: what they say is not known"
            ));
        }
        if let Some(error) = recorder.uncounted() {
            missing.push(format!(
                "what explaining cost was not counted ({error}): it needs CAP_SYS_ADMIN"
            ));
        }
        missing
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
