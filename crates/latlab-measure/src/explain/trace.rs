//! Explaining the wake-ups of a trace that another tool has recorded.

use super::LateWakeUp;
use super::summary::Summarizer;
use latlab_core::explain::Window;
use latlab_core::explain::charge::Explanation;
use latlab_core::explain::names::Names;
use latlab_core::machine::Machine;
use latlab_core::record::explained::Explanations;
use latlab_core::time::Nanos;

/// The late wake-ups of a trace so far.
pub struct TraceExplainer {
    summarizer: Summarizer,
    above: Nanos,
    /// The begin of the trace.
    origin: Nanos,
}

impl TraceExplainer {
    /// Explains wake-ups later than `above`, by default the worst. `machine` is the one that was traced, as far as
    /// it is known, and `origin` the time at which the trace begins.
    pub fn new(machine: &Machine, above: Option<Nanos>, origin: Nanos) -> TraceExplainer {
        let summarizer = Summarizer::of_trace(machine, above.is_some());
        TraceExplainer { summarizer, above: above.unwrap_or_default(), origin }
    }

    /// Functions and interrupts have these names from now on.
    pub fn set_names(&mut self, names: Names) {
        self.summarizer.set_names(names);
    }

    /// Explains one more wake-up.
    pub fn add(&mut self, window: Window) {
        if window.latency() > self.above {
            self.summarizer.add(LateWakeUp::of(window, self.origin));
        }
    }

    /// Adds a delay that is already explained, on this CPU until `at`.
    pub fn add_explained(&mut self, name: &str, cpu: u32, at: Nanos, explanation: Explanation) {
        let latency = explanation.latency();
        let (name, origin, gap) = (name.to_owned(), self.origin, Some(explanation));
        self.summarizer.add(LateWakeUp { name, cpu, at, origin, latency, window: None, gap });
    }

    /// Latency up to which wake-ups are not among the worst any more.
    pub fn above(&self) -> Nanos {
        self.above.max(self.summarizer.above())
    }

    /// The summary, of so many wake-ups in all, and how many of the late ones have incomplete events.
    pub fn finish(mut self, wake_ups: u64) -> (Explanations, u64) {
        let explanations = self.summarizer.finish_trace(wake_ups, self.above);
        (explanations, self.summarizer.torn())
    }
}
