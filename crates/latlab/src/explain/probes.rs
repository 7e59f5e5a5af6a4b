//! Explaining the samples of probes: each sample is paired with the wake-up that the recorder saw.

use super::live::LiveSummary;
use super::summary::{LastEvents, Summarizer};
use super::{LateWakeUp, recorder_failed};
use crate::failure::{Result, lock};
use crate::rig::Observer;
use latlab_bpf::Recorder;
use latlab_core::explain::Window;
use latlab_core::explain::pairing::Pairing;
use latlab_core::explain::threshold;
use latlab_core::feed::Feed;
use latlab_core::histogram::Histogram;
use latlab_core::record::explained::{Explained, Explanations, History};
use latlab_core::time::Nanos;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

/// The measuring threads, and the recorder that watches them.
pub(crate) struct ProbeExplainer {
    recorder: Recorder,
    /// By thread id.
    threads: Mutex<HashMap<u32, MeasuringThread>>,
    /// The threshold of the user; without one, the worst samples are explained.
    above: Option<Nanos>,
    /// Whether the recorder can't know how late a wake-up was: the interrupt of a device was due
    /// before.
    receives_all: Mutex<bool>,
    live: LiveSummary,
    /// The events before the sample that ended the measurement.
    last: Mutex<Option<LastEvents>>,
}

/// A thread that measures, and its samples.
struct MeasuringThread {
    probe: &'static str,
    cpu: u32,
    feed: Arc<Feed>,
    pairing: Pairing,
    samples: Histogram,
}

/// Longest time that a read waits for windows of the recorder. Each read wakes a CPU on which somebody
/// may measure; the queues of samples hold ten times as much.
const PATIENCE: Nanos = Nanos::from_millis(100);

impl Observer for ProbeExplainer {
    fn add_thread(&self, probe: &'static str, cpu: u32, thread: u32) -> Result<Arc<Feed>> {
        self.recorder.watch(thread).map_err(recorder_failed)?;
        let receives_all = lock(&self.receives_all);
        if *receives_all {
            self.recorder.set_threshold(Nanos(0)).map_err(recorder_failed)?;
        }
        drop(receives_all);
        let feed = Arc::new(Feed::new());
        let (pairing, samples) = (Pairing::default(), Histogram::new());
        let measuring = MeasuringThread { probe, cpu, feed: Arc::clone(&feed), pairing, samples };
        lock(&self.threads).insert(thread, measuring);
        Ok(feed)
    }

    fn receive_all(&self) {
        *lock(&self.receives_all) = true;
    }

    fn so_far(&self) -> Option<Explanations> {
        self.live.take_and_request()
    }
}

impl ProbeExplainer {
    /// An explainer for samples above `above`; without it, for the worst ones.
    pub(super) fn new(recorder: Recorder, above: Option<Nanos>) -> ProbeExplainer {
        ProbeExplainer {
            recorder,
            threads: Mutex::default(),
            above,
            receives_all: Mutex::default(),
            live: LiveSummary::default(),
            last: Mutex::default(),
        }
    }

    /// Keeps the last events of a CPU before a sample, which was taken `until` after counting began.
    pub(crate) fn keep_last_events(&self, cpu: u32, until: Nanos) {
        let threads = lock(&self.threads);
        let origins = threads.values().filter(|thread| thread.cpu == cpu);
        let origin = origins.map(|thread| thread.feed.origin()).max().unwrap_or_default();
        let events = self.recorder.last_events(cpu);
        *lock(&self.last) = Some(LastEvents { cpu, until, origin, events });
    }

    /// The explanations of all samples. Samples up to `kept_above` were not kept.
    pub(super) fn finish(&self, summarizer: Summarizer, kept_above: Nanos) -> Explanations {
        let history = lock(&self.last).take().map(|last| summarizer.history(last));
        let above = self.late_threshold().max(kept_above);
        let mut explanations = summarizer.finish(self.count(), above, &self.recorder);
        let lost = lock(&self.threads).values().map(|one| one.feed.lost()).sum();
        add_lost_samples(&mut explanations.explained, lost);
        add_history(&mut explanations.explained, history);
        explanations
    }

    /// Number of samples received.
    pub(super) fn count(&self) -> u64 {
        lock(&self.threads).values().map(|thread| thread.samples.count()).sum()
    }

    /// Distribution of all samples received.
    fn samples(&self) -> Histogram {
        let mut all = Histogram::new();
        lock(&self.threads).values().for_each(|thread| all.add(&thread.samples));
        all
    }

    /// Threshold above which a sample is late, as far as known now.
    pub(super) fn late_threshold(&self) -> Nanos {
        self.above.unwrap_or_else(|| threshold::late_above(&self.samples()))
    }

    /// Threshold above which a sample may turn out to be late in the end, as far as known now.
    pub(super) fn suspicious_threshold(&self) -> Nanos {
        self.above.unwrap_or_else(|| threshold::watch_above(&self.samples()))
    }

    /// Whether the threshold depends on the samples.
    pub(super) fn has_moving_threshold(&self) -> bool {
        self.above.is_none()
    }

    /// Receives the new samples of all threads.
    pub(super) fn receive_samples(&self) {
        lock(&self.threads).values_mut().for_each(MeasuringThread::receive_samples);
    }

    /// Tells the recorder to drop wake-ups that are not later than `above`, if it can know.
    pub(super) fn set_recorder_threshold(&self, above: Nanos) -> Result<()> {
        let receives_all = lock(&self.receives_all);
        let above = if *receives_all { Nanos(0) } else { above };
        self.recorder.set_threshold(above).map_err(recorder_failed)
    }

    /// Reads windows of the recorder, and whether there are more.
    pub(super) fn read_windows(&self) -> Result<(Vec<Window>, bool)> {
        let mut windows = Vec::new();
        let more = self.recorder.read(PATIENCE, &mut |window| windows.push(window));
        Ok((windows, more.map_err(recorder_failed)?))
    }

    /// Hands each window to the pairing of its thread.
    pub(super) fn assign(&self, windows: Vec<Window>) {
        let mut threads = lock(&self.threads);
        for window in windows {
            if let Some(thread) = threads.get_mut(&window.task.pid) {
                thread.pairing.window(window);
            }
        }
    }

    /// Takes the samples up to the time `until` that are later than `above`.
    pub(super) fn take_late(&self, above: Nanos, until: Nanos) -> Vec<LateWakeUp> {
        let mut threads = lock(&self.threads);
        threads.values_mut().flat_map(|thread| thread.take_late(above, until)).collect()
    }

    /// The summary for the live view.
    pub(super) fn live(&self) -> &LiveSummary {
        &self.live
    }
}

/// Adds the number of samples of probes that were lost.
fn add_lost_samples(explained: &mut Explained, count: u64) {
    explained.lost += count;
    let lost = format!("{count} samples lost: they came faster than they were read");
    explained.missing.extend((count > 0).then_some(lost));
}

/// Adds what happened before the sample that ended the run, or why that is not known.
fn add_history(explained: &mut Explained, history: Option<io::Result<History>>) {
    match history {
        Some(Ok(history)) => explained.history = Some(history),
        Some(Err(e)) => {
            explained.missing.push(format!("the last events could not be read: {e}"));
        }
        None => {}
    }
}

impl MeasuringThread {
    fn receive_samples(&mut self) {
        let (samples, pairing) = (&mut self.samples, &mut self.pairing);
        self.feed.take(|at, latency| {
            samples.record(latency);
            pairing.sample(at, latency);
        });
    }

    fn take_late(&mut self, above: Nanos, until: Nanos) -> Vec<LateWakeUp> {
        let (cpu, origin) = (self.cpu, self.feed.origin());
        let pairs = self.pairing.pairs(above, until).into_iter();
        let late = pairs.map(|pair| LateWakeUp {
            name: self.probe.to_owned(),
            cpu,
            at: pair.at,
            origin,
            latency: pair.latency,
            window: pair.window,
        });
        late.collect()
    }
}
