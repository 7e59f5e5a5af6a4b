//! Explaining the samples of probes: each sample is paired with the wake-up that the recorder saw.

use super::live::LiveSummary;
use super::running::Events;
use super::summary::{LastEvents, Summarizer};
use super::{LateWakeUp, recorder_failed};
use crate::rig::Observer;
use latlab_bpf::Recorder;
use latlab_core::explain::Window;
use latlab_core::explain::names::Names;
use latlab_core::explain::pairing::Pairing;
use latlab_core::explain::threshold;
use latlab_core::feed::Feed;
use latlab_core::histogram::Histogram;
use latlab_core::machine::{Machine, TimeDomain};
use latlab_core::record::explained::{Explained, Explanations, History};
use latlab_core::record::running::RunningThread;
use latlab_core::time::Nanos;
use latlab_part::failure::{Result, lock};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};

/// What is to be explained of a run's probes.
pub struct Subject {
    /// The threshold of the user; without one, the worst samples are explained.
    pub above: Option<Nanos>,
    /// The probes whose samples are gaps of busy loops, not wake-ups.
    pub loops: Vec<String>,
    /// Whether there are no others.
    pub only_loops: bool,
}

/// The measuring threads, and the recorder that watches them.
pub struct ProbeExplainer {
    recorder: Recorder,
    /// By thread id.
    threads: Mutex<HashMap<u32, MeasuringThread>>,
    subject: Subject,
    /// Recorded events of busy loops.
    loops: Mutex<Events>,
    /// Longest time around the events in a gap that the ways into the kernel and out of it take.
    most_around: Nanos,
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
    /// Of a busy loop, the gaps that are not explained yet: their ends and lengths.
    gaps: Option<VecDeque<(Nanos, Nanos)>>,
    samples: Histogram,
}

/// Longest time that a read waits for windows of the recorder. Each read wakes a CPU on which somebody
/// may measure; the queues of samples hold ten times as much.
const PATIENCE: Nanos = Nanos::from_millis(100);

/// The same as [`ProbeExplainer::most_around`] where a clock runs: as long as the kernel may take from an
/// interrupt to the task that it woke.
const AROUND: Nanos = Nanos::from_micros(10);

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
        let is_loop = self.subject.loops.iter().any(|name| name == probe);
        let (gaps, to_us) = (is_loop.then(VecDeque::new), Arc::clone(&feed));
        let measuring = MeasuringThread { probe, cpu, feed: to_us, pairing, gaps, samples };
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
    /// An explainer for these samples.
    pub(super) fn new(recorder: Recorder, subject: Subject, machine: &Machine) -> ProbeExplainer {
        // In instruction time nothing but the kernel takes time between two events.
        let is_exact = machine.time_domain == TimeDomain::Instructions;
        ProbeExplainer {
            recorder,
            threads: Mutex::default(),
            subject,
            loops: Mutex::default(),
            most_around: if is_exact { Nanos::MAX } else { AROUND },
            receives_all: Mutex::default(),
            live: LiveSummary::default(),
            last: Mutex::default(),
        }
    }

    /// Keeps the last events of a CPU before a sample, which was taken `until` after counting began.
    pub fn keep_last_events(&self, cpu: u32, until: Nanos) {
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
        let running = self.running(summarizer.names());
        let mut explanations = summarizer.finish(self.count(), above, &self.recorder);
        let lost = lock(&self.threads).values().map(|one| one.feed.lost()).sum();
        add_lost_samples(&mut explanations.explained, lost);
        add_history(&mut explanations.explained, history);
        explanations.explained.missing.extend(lock(&self.loops).missing());
        explanations.explained.running = running;
        explanations
    }

    /// The accounts of busy loops.
    fn running(&self, names: &Names) -> Vec<RunningThread> {
        let (threads, events) = (lock(&self.threads), lock(&self.loops));
        let loops = threads.iter().filter(|(_, thread)| thread.gaps.is_some());
        let account = |(pid, thread): (&u32, &MeasuringThread)| {
            let account = events.account.thread(*pid, names)?;
            Some((thread.cpu, RunningThread { name: thread.probe.to_owned(), ..account }))
        };
        let mut all: Vec<_> = loops.filter_map(account).collect();
        all.sort_by_key(|(cpu, _)| *cpu);
        all.into_iter().map(|(_, account)| account).collect()
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
        self.subject.above.unwrap_or_else(|| threshold::late_above(&self.samples()))
    }

    /// Threshold above which a sample may turn out to be late in the end, as far as known now.
    pub(super) fn suspicious_threshold(&self) -> Nanos {
        self.subject.above.unwrap_or_else(|| threshold::watch_above(&self.samples()))
    }

    /// Whether the threshold depends on the samples.
    pub(super) fn has_moving_threshold(&self) -> bool {
        self.subject.above.is_none()
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
            let thread = threads.get_mut(&window.task.pid);
            if let Some(thread) = thread.filter(|thread| thread.gaps.is_none()) {
                thread.pairing.window(window);
            }
        }
    }

    /// Takes the samples up to the time `until` that are later than `above`.
    pub(super) fn take_late(&self, above: Nanos, until: Nanos) -> Vec<LateWakeUp> {
        let mut threads = lock(&self.threads);
        threads.values_mut().flat_map(|thread| thread.take_late(above, until)).collect()
    }

    /// Explains the gaps of busy loops whose events have been read, or all gaps if the loops have
    /// `ended`. Takes the gaps that are longer than `above`.
    pub(super) fn take_late_gaps(&self, above: Nanos, ended: bool) -> Result<Vec<LateWakeUp>> {
        let (mut threads, mut events) = (lock(&self.threads), lock(&self.loops));
        let cpus: BTreeSet<u32> = threads
            .values()
            .filter(|thread| thread.gaps.is_some())
            .map(|thread| thread.cpu)
            .collect();
        for (pid, thread) in threads.iter().filter(|(_, thread)| thread.gaps.is_some()) {
            let origin = thread.feed.origin();
            if origin > Nanos(0) && !events.account.is_watched(*pid) {
                events.account.watch_loop(*pid, thread.cpu, origin);
            }
        }
        events.read(&self.recorder, cpus.into_iter(), ended)?;
        let mut late = Vec::new();
        for (pid, thread) in threads.iter_mut() {
            late.extend(thread.take_late_gaps(*pid, &mut events, (above, self.most_around)));
        }
        Ok(late)
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
        let (samples, pairing, gaps) = (&mut self.samples, &mut self.pairing, &mut self.gaps);
        self.feed.take(|at, latency| {
            samples.record(latency);
            match gaps {
                Some(gaps) => gaps.push_back((at, latency)),
                None => pairing.sample(at, latency),
            }
        });
    }

    fn take_late_gaps(
        &mut self,
        pid: u32,
        events: &mut Events,
        (above, most_around): (Nanos, Nanos),
    ) -> Vec<LateWakeUp> {
        let Some(gaps) = &mut self.gaps else { return Vec::new() };
        let mut late = Vec::new();
        while let Some((at, latency)) = gaps.pop_front_if(|(at, _)| *at <= events.until) {
            let gap = events.account.gap(pid, at, latency, most_around);
            if latency > above {
                late.push(LateWakeUp {
                    name: self.probe.to_owned(),
                    cpu: self.cpu,
                    at,
                    origin: self.feed.origin(),
                    latency,
                    window: None,
                    gap: Some(gap),
                });
            }
        }
        late
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
            gap: None,
        });
        late.collect()
    }
}
