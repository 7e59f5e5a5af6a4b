//! The explanations of all late wake-ups of a run, summarized for its record.

use super::LateWakeUp;
use crate::cause;
use latlab_bpf::Recorder;
use latlab_core::explain::charge::{Circumstances, Explanation};
use latlab_core::explain::names::Names;
use latlab_core::explain::summary::{self, Summary};
use latlab_core::explain::{Event, history};
use latlab_core::machine::{Machine, TimeDomain};
use latlab_core::record::explained::{Cost, Explained, Explanations, History};
use latlab_core::symbols::{NoSymbols, Symbols};
use latlab_core::time::Nanos;
use latlab_sys::machine::interrupts;
use latlab_sys::root::Root;
use latlab_sys::sched::LargestShare;
use std::cmp::Reverse;
use std::io;

/// Explains late wake-ups as they arrive: the events of one take up to a hundred times the memory
/// of its explanation.
pub(super) struct Summarizer {
    circumstances: Circumstances,
    names: Names,
    /// Reason why functions can't be named, if so.
    no_symbols: Option<NoSymbols>,
    /// Whether the user has set a threshold. All late wake-ups count then, else only the worst.
    has_threshold: bool,
    kept: Vec<ExplainedWakeUp>,
    summary: Summary,
    /// Wake-ups up to this latency are not kept any more.
    above: Nanos,
    gaps: Gaps,
}

/// Late wake-ups of which not everything was recorded.
#[derive(Default)]
pub(super) struct Gaps {
    /// Number of samples without a recorded wake-up.
    unrecorded: u64,
    /// Sum of their latencies, all of which is unexplained.
    unrecorded_time: Nanos,
    /// Number of wake-ups with incomplete events.
    pub(super) torn: u64,
}

/// A late wake-up and its explanation.
struct ExplainedWakeUp {
    late: LateWakeUp,
    explanation: Explanation,
    recorded: bool,
    torn: bool,
}

/// The last events of a CPU before a sample.
pub(super) struct LastEvents {
    pub(super) cpu: u32,
    /// When the sample was taken, since counting began.
    pub(super) until: Nanos,
    /// When counting began.
    pub(super) origin: Nanos,
    pub(super) events: io::Result<Vec<Event>>,
}

/// Number of worst wake-ups that are kept. With twice as many, the less late half is dropped.
const KEPT: usize = 5_000;
/// Most wake-ups in an interim summary, as naming the functions of more would disturb the run.
const INTERIM: usize = 1_000;

impl Summarizer {
    pub(super) fn new(machine: &Machine, has_threshold: bool) -> Summarizer {
        // Reading symbols takes long beside loads.
        let _share = LargestShare::take();
        let circumstances = circumstances(machine);
        let (names, no_symbols) = names();
        Summarizer {
            circumstances,
            names,
            no_symbols,
            has_threshold,
            kept: Vec::new(),
            summary: Summary::default(),
            above: Nanos(0),
            gaps: Gaps::default(),
        }
    }

    /// Explains and adds a wake-up.
    pub(super) fn add(&mut self, mut late: LateWakeUp) {
        let explanation = late.explain(&self.circumstances);
        let window = late.window.take();
        let torn = window.as_ref().is_some_and(|window| window.torn);
        let explained = ExplainedWakeUp { late, explanation, recorded: window.is_some(), torn };
        if self.has_threshold {
            self.count(&explained);
        } else if explained.late.latency > self.above {
            self.kept.push(explained);
            self.keep_the_worst();
        }
    }

    /// Latency up to which wake-ups are not kept any more.
    pub(super) fn above(&self) -> Nanos {
        self.above
    }

    /// The worst wake-up so far: the name of the task or probe, and the latency.
    pub(super) fn worst(&self) -> Option<(&str, Nanos)> {
        let kept = self.kept.iter().map(|one| (one.late.name.as_str(), one.late.latency));
        let counted = self.summary.worst().iter().map(|one| (one.probe.as_str(), one.latency));
        kept.chain(counted).max_by_key(|(_, latency)| *latency)
    }

    /// The activities in the last second before a sample.
    pub(super) fn history(&self, last: LastEvents) -> io::Result<History> {
        const KEPT: Nanos = Nanos::from_secs(1);
        let LastEvents { cpu, until, origin, events } = last;
        let end = origin + until;
        let span = (origin.max(end - KEPT), end);
        let activities = history::activities(&events?, span, origin, &self.names);
        Ok(History { cpu, activities })
    }

    /// The explanations so far of the wake-ups above a latency, or of the worst of them.
    pub(super) fn interim(&self, wake_ups: u64, above: Nanos) -> Explanations {
        let above = above.max(self.above);
        let mut late: Vec<&ExplainedWakeUp> =
            self.kept.iter().filter(|one| one.late.latency > above).collect();
        late.sort_by_key(|one| Reverse(one.late.latency));
        let above = late.get(INTERIM).map_or(above, |first| first.late.latency);
        if self.has_threshold {
            return explanations(wake_ups, above, &self.summary);
        }
        let mut summary = Summary::default();
        for one in late.into_iter().take_while(|one| one.late.latency > above) {
            summary.add(one.late.sample(), &one.explanation, &self.names);
        }
        explanations(wake_ups, above, &summary)
    }

    /// The summary of the wake-ups above a latency.
    pub(super) fn finish(
        mut self,
        wake_ups: u64,
        above: Nanos,
        recorder: &Recorder,
    ) -> Explanations {
        let above = above.max(self.above);
        for explained in std::mem::take(&mut self.kept) {
            if explained.late.latency > above {
                self.count(&explained);
            }
        }
        let mut missing = self.gaps.sentences(recorder);
        let no_symbols = self.no_symbols.iter();
        missing.extend(no_symbols.map(|why| format!("functions can't be named: {why}")));
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
            self.kept.sort_by_key(|one| Reverse(one.late.latency));
            self.above = self.kept[KEPT].late.latency;
            self.kept.truncate(KEPT);
        }
    }

    fn count(&mut self, one: &ExplainedWakeUp) {
        self.gaps.count(one);
        self.summary.add(one.late.sample(), &one.explanation, &self.names);
    }
}

fn explanations(wake_ups: u64, above: Nanos, summary: &Summary) -> Explanations {
    let explained = Explained { wake_ups, above, ..summary.explained() };
    Explanations { explained, worst: summary.worst().to_vec() }
}

impl Gaps {
    fn count(&mut self, one: &ExplainedWakeUp) {
        if !one.recorded {
            self.unrecorded += 1;
            self.unrecorded_time = self.unrecorded_time + one.late.latency;
        }
        self.torn += u64::from(one.torn);
    }

    /// A sentence for each kind of data that is missing.
    pub(super) fn sentences(&self, recorder: &Recorder) -> Vec<String> {
        let unrecorded = format!(
            "late samples without a recorded wake-up, {} of the unexplained time: the kernel did \
             not report it, the buffer was full, or the task had not slept",
            self.unrecorded_time
        );
        let torn = "late wake-ups with incomplete events: the buffer was full, or a sched_switch \
                    event is missing";
        let mut sentences = counted(&[(self.unrecorded, &unrecorded), (self.torn, torn)]);
        sentences.extend(lost(recorder));
        let tracepoints = recorder.missing();
        if !tracepoints.is_empty() {
            let list = tracepoints.join(", ");
            sentences.push(format!("tracepoints that this kernel does not have: {list}"));
        }
        if let Some(error) = recorder.counting_error() {
            sentences.push(format!(
                "the cost of tracing was not measured ({error}): it needs CAP_SYS_ADMIN"
            ));
        }
        sentences
    }
}

/// A sentence for each kind of wake-up, event and thread that the recorder lost.
fn lost(recorder: &Recorder) -> Vec<String> {
    let losses = recorder.losses();
    counted(&[
        (losses.windows, "late wake-ups lost: they came faster than they were read"),
        (losses.unreadable, "late wake-ups lost: they could not be read"),
        (
            losses.events_missed,
            "events lost: their CPU was recording another event of the same kind",
        ),
        (losses.switches, "sched_switch events missing; affected samples are marked `unreported`"),
        (losses.unwatched, "wake-ups not watched: too many tasks at a time"),
        (
            losses.threads,
            "threads not watched: their ids differ from those of other watched threads by a \
             multiple of 4096",
        ),
    ])
}

/// The counts above 0, each with what it counts.
pub(super) fn counted(counts: &[(u64, &str)]) -> Vec<String> {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, text)| format!("{count} {text}")).collect()
}

impl LateWakeUp {
    pub(super) fn sample(&self) -> summary::LateWakeup<'_> {
        summary::LateWakeup {
            probe: &self.name,
            cpu: self.cpu,
            at: self.at - self.origin,
            due: self.at - self.latency,
            latency: self.latency,
        }
    }

    /// Explains the wake-up. All of it is unexplained if it was not recorded.
    pub(super) fn explain(&self, circumstances: &Circumstances) -> Explanation {
        match &self.window {
            Some(window) => cause::explain(window, circumstances),
            None => Explanation { charges: Vec::new(), unexplained: self.latency },
        }
    }
}

/// What holds for all wake-ups on a machine.
pub(super) fn circumstances(machine: &Machine) -> Circumstances {
    Circumstances {
        timer_resolution: Nanos(machine.timer_resolution_ns.unwrap_or(1)),
        // In the instruction domain, time taken by the host does not count.
        hypervisor: machine.hypervisor.is_some() && machine.time_domain != TimeDomain::Instructions,
    }
}

/// The names of this machine's interrupts and functions, and why functions can't be named.
pub(super) fn names() -> (Names, Option<NoSymbols>) {
    let root = Root::default();
    let interrupts = interrupts::handlers(&root);
    let text = root.text("proc/kallsyms").unwrap_or_default();
    let variables = Symbols::variables(&text).unwrap_or_default();
    let (symbols, why) = match Symbols::parse(&text) {
        Ok(symbols) => (symbols, None),
        Err(why) => (Symbols::default(), Some(why)),
    };
    (Names { symbols, variables, interrupts }, why)
}

/// The cost of each BPF program that has run.
pub(super) fn cost(recorder: &Recorder) -> Vec<Cost> {
    let mut cost: Vec<Cost> = recorder
        .cost()
        .into_iter()
        .filter(|program| program.runs > 0)
        .map(|program| Cost { program: program.name, runs: program.runs, ns: program.time })
        .collect();
    cost.sort_by_key(|program| Reverse(program.ns));
    cost
}
