//! The collector: pairs samples with recorded wake-ups, and explains the late ones, in a thread of
//! its own.

use super::probes::{ProbeExplainer, Subject};
use super::start_recorder;
use super::summary::Summarizer;
use latlab_bpf::{Detail, Watch};
use latlab_core::explain::Window;
use latlab_core::explain::threshold::Recheck;
use latlab_core::machine::Machine;
use latlab_core::record::explained::Explanations;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Result};
use latlab_sys::{clock, memory, sched};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread::Builder;

/// Longest time from a sample until its window can be read: by then the task has gone to sleep
/// again.
const SETTLED: Nanos = Nanos::from_millis(500);

/// Memory that the thread that explains reserves. In two hours under hackbench on a busy machine its heap
/// grew by up to 7.3 MiB (docs/results/torture.md).
const HEAP: Bytes = Bytes(8 << 20);

impl ProbeExplainer {
    /// Explains the samples of the probes that `measure` runs. Returns the result of `measure` even if
    /// explaining failed.
    pub fn explain<T>(
        subject: Subject,
        machine: &Machine,
        measure: impl FnOnce(Arc<ProbeExplainer>) -> T,
    ) -> Result<(T, Result<Explanations>)> {
        let above = subject.above;
        let detail = if subject.only_loops { Detail::Running } else { Detail::Full };
        let tasks = Watch::Tasks(Vec::new());
        let recorder = start_recorder(&tasks, above.unwrap_or_default(), detail)?;
        let probes = Arc::new(ProbeExplainer::new(recorder, subject, machine));
        let summarizer = Summarizer::new(machine, above.is_some());
        let ended = AtomicBool::new(false);
        let (measured, collected) = std::thread::scope(|scope| {
            let (reserving, reserved) = mpsc::channel::<()>();
            let collect = || {
                // Without permission for this, more is lost under load, which is counted.
                let _ = sched::set_nice(-10);
                memory::reserve_heap(HEAP);
                drop(reserving);
                Collector::new(&probes, summarizer).run(&ended)
            };
            let thread = Builder::new().name("latlab:explain".to_owned());
            let collecting = thread.spawn_scoped(scope, collect);
            let collecting = collecting.context("a thread could not be started")?;
            // The thread drops the sender once its heap is reserved: an error is the signal.
            let _ = reserved.recv();
            // The collector ends even if `measure` panics.
            let end = SetOnDrop(&ended);
            let measured = measure(Arc::clone(&probes));
            drop(end);
            Ok((measured, collecting.join()))
        })?;
        let collected = collected.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let explanations =
            collected.map(|(summarizer, kept_above)| probes.finish(summarizer, kept_above));
        Ok((measured, explanations))
    }
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Collects the late samples of probes.
pub(super) struct Collector<'a> {
    probes: &'a ProbeExplainer,
    summarizer: Summarizer,
    thresholds: Thresholds,
    /// Samples up to this time can be paired: their windows have been read.
    complete_until: Nanos,
}

/// Latencies up to which samples are dropped.
struct Thresholds {
    /// When the threshold was last computed.
    computed: Recheck,
    /// Samples above this may turn out to be late in the end.
    suspicious: Nanos,
    /// The threshold that the recorder has.
    recorder: Nanos,
    /// The highest threshold that the recorder has had.
    highest: Nanos,
}

impl<'a> Collector<'a> {
    pub(super) fn new(probes: &'a ProbeExplainer, summarizer: Summarizer) -> Collector<'a> {
        let suspicious = probes.suspicious_threshold();
        let thresholds = Thresholds {
            computed: Recheck::default(),
            suspicious,
            recorder: suspicious,
            highest: suspicious,
        };
        Collector { probes, summarizer, thresholds, complete_until: Nanos(0) }
    }

    /// Collects until the measurement has `ended` and all windows are read. Returns the late
    /// samples and the latency up to which samples were dropped.
    pub(super) fn run(mut self, ended: &AtomicBool) -> Result<(Summarizer, Nanos)> {
        loop {
            // Read before the samples, so that the last step gets all of them.
            let last = ended.load(SeqCst);
            let more = self.step(last)?;
            if last && !more {
                return Ok((self.summarizer, self.thresholds.highest));
            }
        }
    }

    /// Receives samples and windows, and explains the complete ones. Returns whether there are more
    /// windows.
    fn step(&mut self, last: bool) -> Result<bool> {
        let now = clock::now();
        self.probes.receive_samples();
        // Before windows are read, which takes long under load: the recorder then drops windows
        // that are not needed.
        self.update_thresholds(now)?;
        let (windows, more) = self.probes.read_windows()?;
        self.complete_until = match (more, last) {
            (true, _) => self.complete_until.max(completed_by(&windows)),
            (false, true) => Nanos::MAX,
            (false, false) => now - SETTLED,
        };
        self.probes.assign(windows);
        for late in self.probes.take_late(self.thresholds.recorder, self.complete_until) {
            self.summarizer.add(late);
        }
        for late in self.probes.take_late_gaps(self.thresholds.recorder, last)? {
            self.summarizer.add(late);
        }
        self.probes.live().publish(|| {
            let above = self.probes.late_threshold().max(self.thresholds.highest);
            self.summarizer.interim(self.probes.count(), above)
        });
        Ok(more)
    }

    fn update_thresholds(&mut self, now: Nanos) -> Result<()> {
        let thresholds = &mut self.thresholds;
        if self.probes.has_moving_threshold()
            && thresholds.computed.is_due(now, self.probes.count())
        {
            thresholds.suspicious = self.probes.suspicious_threshold();
        }
        let above = thresholds.suspicious.max(self.summarizer.above());
        if above != thresholds.recorder {
            self.probes.set_recorder_threshold(above)?;
        }
        thresholds.recorder = above;
        thresholds.highest = thresholds.highest.max(above);
        Ok(())
    }
}

/// Time up to which samples are complete while more windows wait to be read. Windows come in the
/// order in which their tasks went to sleep.
fn completed_by(windows: &[Window]) -> Nanos {
    windows.last().map_or(Nanos(0), |window| window.out) - SETTLED
}
