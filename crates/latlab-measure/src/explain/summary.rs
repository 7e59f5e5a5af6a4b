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
    /// Without a threshold, the wake-ups above `least`.
    kept: Vec<ExplainedWakeUp>,
    /// All late wake-ups. Without a threshold, so far only wake-ups of the latency `least`: they
    /// may be too many to keep.
    summary: Summary,
    gaps: Gaps,
    /// The least latency that is among the worst.
    least: Nanos,
}

/// Late wake-ups that were not completely recorded.
#[derive(Default)]
pub(super) struct Gaps {
    /// Number of samples without a recorded wake-up.
    unrecorded: u64,
    /// Sum of their latencies. All of it is unexplained.
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

/// Number of worst wake-ups that are summarized, and as many more as are as late as the least late of
/// them. Up to twice as many are kept until the others are dropped.
const KEPT: usize = 5_000;
/// Most wake-ups in an interim summary, as naming the functions of more would disturb the run.
const INTERIM: usize = 1_000;

impl Summarizer {
    pub(super) fn new(machine: &Machine, has_threshold: bool) -> Summarizer {
        // Reading symbols takes long beside loads.
        let _share = LargestShare::take();
        let (names, no_symbols) = names();
        let of_trace = Summarizer::of_trace(machine, has_threshold);
        Summarizer { names, no_symbols, ..of_trace }
    }

    /// The same for a trace, which names functions and interrupts itself.
    pub(super) fn of_trace(machine: &Machine, has_threshold: bool) -> Summarizer {
        Summarizer {
            circumstances: circumstances(machine),
            names: Names::default(),
            no_symbols: None,
            has_threshold,
            kept: Vec::new(),
            summary: Summary::default(),
            gaps: Gaps::default(),
            least: Nanos(1),
        }
    }

    /// Explains and adds a wake-up.
    pub(super) fn add(&mut self, mut late: LateWakeUp) {
        let explanation = late.explain(&self.circumstances);
        let window = late.window.take();
        let torn = window.as_ref().is_some_and(|window| window.torn);
        let recorded = window.is_some() || late.gap.take().is_some();
        let explained = ExplainedWakeUp { late, explanation, recorded, torn };
        let latency = explained.late.latency;
        if self.has_threshold || latency == self.least {
            self.count(&explained);
        } else if latency > self.least {
            self.kept.push(explained);
            self.keep_the_worst();
        }
    }

    /// Replaces the names of interrupts and functions.
    pub(super) fn set_names(&mut self, names: Names) {
        self.names = names;
    }

    /// The names of interrupts and functions.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// Latency up to which wake-ups are not among the worst any more.
    pub(super) fn above(&self) -> Nanos {
        self.least - Nanos(1)
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
        let above = above.max(self.above());
        let mut late: Vec<&ExplainedWakeUp> =
            self.kept.iter().filter(|one| one.late.latency > above).collect();
        late.sort_by_key(|one| Reverse(one.late.latency));
        let above = late.get(INTERIM).map_or(above, |first| first.late.latency);
        if self.has_threshold {
            return explanations(wake_ups, above, &self.summary);
        }
        let mut summary =
            if self.least > above { self.summary.clone() } else { Summary::default() };
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
        let mut all = self.finish_trace(wake_ups, above);
        let explained = &mut all.explained;
        let losses = recorder.losses();
        (explained.cost, explained.counted) = (cost(recorder), recorder.counted());
        explained.lost = losses.windows + losses.unreadable + losses.events_missed;
        explained.missing = self.gaps.sentences(recorder);
        let no_symbols = self.no_symbols.iter();
        explained.missing.extend(no_symbols.map(|why| format!("functions can't be named: {why}")));
        all
    }

    /// The same for a trace.
    pub(super) fn finish_trace(&mut self, wake_ups: u64, above: Nanos) -> Explanations {
        let above = above.max(self.above());
        self.count_kept(above);
        explanations(wake_ups, above, &self.summary)
    }

    /// Number of wake-ups among those that count whose events are incomplete.
    pub(super) fn torn(&self) -> u64 {
        self.gaps.torn
    }

    fn keep_the_worst(&mut self) {
        if self.kept.len() > 2 * KEPT {
            self.kept.sort_by_key(|one| Reverse(one.late.latency));
            let least = self.kept[KEPT - 1].late.latency;
            let longer = self.kept.partition_point(|one| one.late.latency > least);
            let rest = self.kept.split_off(longer);
            (self.summary, self.gaps, self.least) = (Summary::default(), Gaps::default(), least);
            rest.iter().take_while(|one| one.late.latency == least).for_each(|one| self.count(one));
        }
    }

    /// Counts the kept wake-ups above a latency. Without a threshold, the wake-ups of the least
    /// latency are counted already.
    fn count_kept(&mut self, above: Nanos) {
        if !self.has_threshold && self.least <= above {
            (self.summary, self.gaps) = (Summary::default(), Gaps::default());
        }
        for explained in std::mem::take(&mut self.kept) {
            if explained.late.latency > above {
                self.count(&explained);
            }
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
        match (&self.window, &self.gap) {
            (Some(window), _) => cause::explain(window, circumstances),
            (None, Some(explanation)) => explanation.clone(),
            (None, None) => Explanation { charges: Vec::new(), unexplained: self.latency },
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A summary of wake-ups of these latencies, in nanoseconds, each so many times.
    fn summarizer(latencies: &[(u64, usize)]) -> Summarizer {
        let mut summarizer = Summarizer::new(&Machine::default(), false);
        let all = latencies.iter().flat_map(|&(ns, times)| std::iter::repeat_n(Nanos(ns), times));
        for latency in all {
            let (name, cpu, origin) = ("task".to_owned(), 0, Nanos(0));
            let at = Nanos::from_secs(1);
            let (window, gap) = (None, None);
            summarizer.add(LateWakeUp { name, cpu, at, origin, latency, window, gap });
        }
        summarizer
    }

    /// Their number above a latency, in the end and, of the worst, meanwhile.
    fn late(latencies: &[(u64, usize)], above: u64) -> (u64, u64) {
        let mut summarizer = summarizer(latencies);
        let interim = summarizer.interim(0, Nanos(above)).explained.late;
        let above = summarizer.above().max(Nanos(above));
        summarizer.count_kept(above);
        assert_eq!(summarizer.gaps.unrecorded, summarizer.summary.explained().late);
        (summarizer.summary.explained().late, interim)
    }

    #[test]
    fn longest_wake_ups_count_where_all_of_them_are_equally_late() {
        let all = 4 * KEPT;
        assert_eq!(late(&[(700, all)], 0), (all as u64, all as u64));
        assert_eq!(late(&[(300, 1), (700, all), (300, 1)], 0), (all as u64, all as u64));
    }

    #[test]
    fn equals_of_the_least_late_count_until_longer_ones_are_enough() {
        let (all, few) = (3 * KEPT, INTERIM / 2);
        let both = (all + few) as u64;
        assert_eq!(late(&[(700, all), (900, few)], 0), (both, both));
        assert_eq!(late(&[(700, all), (900, few)], 700), (few as u64, few as u64));
        assert_eq!(late(&[(700, all), (900, all)], 0).0, all as u64);
    }

    #[test]
    fn memory_is_bounded_whatever_the_latencies_are() {
        for latencies in [[(700, 5 * KEPT), (900, 1)], [(700, 1), (900, 5 * KEPT)]] {
            assert!(summarizer(&latencies).kept.len() <= 2 * KEPT);
        }
        let different: Vec<(u64, usize)> = (1..=5 * KEPT as u64).map(|ns| (ns, 1)).collect();
        let summarizer = summarizer(&different);
        assert!(summarizer.kept.len() <= 2 * KEPT);
        assert!(summarizer.above() <= Nanos(4 * KEPT as u64), "the longest count");
    }
}
