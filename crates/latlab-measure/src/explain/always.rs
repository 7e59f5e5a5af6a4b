//! A flight recorder for weeks: explains each late wake-up by itself, in bounded memory.

use super::summary::{Gaps, circumstances, cost, names};
use super::tasks::{self, Process};
use super::{LateWakeUp, READS, recorder_failed, refused};
use latlab_bpf::{Detail, Recorder};
use latlab_core::explain::Window;
use latlab_core::explain::charge::Circumstances;
use latlab_core::explain::names::Names;
use latlab_core::explain::summary::Summary;
use latlab_core::machine::Machine;
use latlab_core::plan::Watched;
use latlab_core::record::explained::{Explained, Explanations};
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_sys::clock;

/// The watched tasks, and the sums of their late wake-ups.
pub struct FlightRecorder {
    recorder: Recorder,
    process: Option<Process>,
    circumstances: Circumstances,
    names: Names,
    /// Why functions can't be named, if so.
    no_symbols: Option<String>,
    above: Nanos,
    began: Nanos,
    totals: Summary,
    gaps: Gaps,
}

/// A late wake-up with its explanation.
pub struct Late {
    /// The thread that was late.
    pub pid: u32,
    /// When it ran, on `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// Why it was late.
    pub explanations: Explanations,
}

impl FlightRecorder {
    /// Watches from now on for wake-ups later than `above`.
    pub fn start(watched: &Watched, above: Nanos, machine: &Machine) -> Result<FlightRecorder> {
        let (process, watch) = tasks::find(watched)?;
        let (names, no_symbols) = names();
        let recorder =
            Recorder::start_with(&watch, above, Detail::Sparse).map_err(|e| refused(&e))?;
        Ok(FlightRecorder {
            recorder,
            process,
            circumstances: circumstances(machine),
            names,
            no_symbols: no_symbols.map(|why| format!("functions can't be named: {why}")),
            above,
            began: clock::now(),
            totals: Summary::default(),
            gaps: Gaps::default(),
        })
    }

    /// Explains the late wake-ups since the last call, and watches new threads of the process.
    pub fn read(&mut self, take: &mut dyn FnMut(Late)) -> Result<()> {
        for _ in 0..READS {
            let mut windows = Vec::new();
            let mut keep = |window: Window| windows.push(window);
            let more = self.recorder.read(Nanos(0), &mut keep).map_err(recorder_failed)?;
            for window in windows.into_iter().filter(Window::is_reported) {
                if window.latency() >= self.above {
                    take(self.explain(window));
                }
            }
            if !more {
                break;
            }
        }
        let Some(process) = &mut self.process else { return Ok(()) };
        let threads = process.new_threads(self.began);
        threads.into_iter().try_for_each(|id| self.recorder.watch(id)).map_err(recorder_failed)
    }

    /// Whether the process that is watched has ended.
    pub fn is_over(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.ended_after.is_some())
    }

    /// The sums since the start.
    pub fn explanations(&self) -> Explanations {
        let losses = self.recorder.losses();
        let mut missing = self.gaps.sentences(&self.recorder);
        missing.extend(self.no_symbols.clone());
        let explained = Explained {
            above: self.above,
            cost: cost(&self.recorder),
            counted: self.recorder.counted(),
            lost: losses.windows + losses.unreadable + losses.events_missed,
            missing,
            ..self.totals.explained()
        };
        Explanations { explained, worst: self.totals.worst().to_vec() }
    }

    fn explain(&mut self, window: Window) -> Late {
        let (pid, torn) = (window.task.pid, window.torn);
        let mut late = LateWakeUp::from_window(window, self.began);
        let explanation = late.explain(&self.circumstances);
        late.window = None;
        let mut summary = Summary::default();
        summary.add(late.sample(), &explanation, &self.names);
        self.totals.add(late.sample(), &explanation, &self.names);
        self.gaps.torn += u64::from(torn);
        let torn = torn.then(|| "not all events before it were recorded".to_owned());
        let explained = Explained {
            above: self.above,
            missing: torn.into_iter().chain(self.no_symbols.clone()).collect(),
            ..summary.explained()
        };
        let explanations = Explanations { explained, worst: summary.worst().to_vec() };
        Late { pid, at: late.at, explanations }
    }
}
