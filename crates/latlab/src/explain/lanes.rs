//! The wake-ups of a probe: each of its samples, and what the kernel saw of it.

use super::so_far::SoFar;
use super::summing::{Explanations, Sum};
use super::{Late, lost, start};
use crate::failure::Result;
use crate::rig::Observer;
use latlab_bpf::{Recorder, Watch};
use latlab_core::explain::Window;
use latlab_core::explain::pairing::Pairing;
use latlab_core::explain::threshold::{self, Asked};
use latlab_core::feed::Feed;
use latlab_core::histogram::Histogram;
use latlab_core::machine::Machine;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;
use latlab_sys::{clock, sched};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those who measure, and the recorder that watches them.
pub(crate) struct Lanes {
    recorder: Arc<Mutex<Recorder>>,
    measuring: Mutex<HashMap<u32, Measuring>>,
    asked: Option<Nanos>,
    before: Nanos,
    so_far: SoFar,
}

/// A measuring thread.
struct Measuring {
    probe: &'static str,
    cpu: u32,
    feed: Arc<Feed>,
    pairing: Pairing,
    seen: Histogram,
}

/// How long the kernel's windows are waited for at a time.
const PATIENCE: Nanos = Nanos::from_millis(20);
/// By then the window of a sample has come: the task has gone to sleep again.
const SETTLED: Nanos = Nanos::from_millis(500);

impl Observer for Lanes {
    fn joins(&self, probe: &'static str, cpu: u32, thread: u32) -> Result<Arc<Feed>> {
        lock(&self.recorder).watch(thread).map_err(lost)?;
        let feed = Arc::new(Feed::new());
        let (pairing, seen) = (Pairing::default(), Histogram::new());
        let measuring = Measuring { probe, cpu, feed: Arc::clone(&feed), pairing, seen };
        lock(&self.measuring).insert(thread, measuring);
        Ok(feed)
    }

    fn so_far(&self) -> Option<Explained> {
        self.so_far.ask()
    }
}

impl Lanes {
    /// Explains the samples that `measure` tells of, those above `asked` or else the worst. Which
    /// may be among these is known from `before` at first.
    pub(crate) fn explain<T>(
        asked: Option<Nanos>,
        before: Nanos,
        machine: &Machine,
        measure: impl FnOnce(Arc<Lanes>) -> T,
    ) -> Result<(T, Result<Explanations>)> {
        let recorder = start(&Watch::Tasks(Vec::new()), asked.unwrap_or(before))?;
        let recorder = Arc::new(Mutex::new(recorder));
        let lanes = Arc::new(Lanes {
            recorder: Arc::clone(&recorder),
            measuring: Mutex::default(),
            asked,
            before,
            so_far: SoFar::default(),
        });
        let ended = AtomicBool::new(false);
        let sum = Sum::new(machine, asked.is_some());
        let (measured, found) = std::thread::scope(|scope| {
            let collecting = scope.spawn(|| {
                // Without the right to it, more is lost where loads leave little of the CPU, and that
                // is counted.
                let _ = sched::step_forward();
                lanes.collect(sum, &ended)
            });
            // Whatever becomes of the measurement, the collector is not to wait for more of it.
            let end = End(&ended);
            let measured = measure(Arc::clone(&lanes));
            drop(end);
            (measured, collecting.join())
        });
        let found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let explanations = found.map(|(sum, highest)| {
            let seen = lanes.seen();
            // What was not above the highest at its time was not kept.
            let above = threshold::late(asked, &seen).max(highest);
            let mut explanations = sum.finish(seen.count(), above, &lock(&recorder));
            let measuring = lock(&lanes.measuring);
            explanations.lost_samples(measuring.values().map(|lane| lane.feed.lost()).sum());
            explanations
        });
        Ok((measured, explanations))
    }

    /// How many samples were heard of.
    fn count(&self) -> u64 {
        lock(&self.measuring).values().map(|lane| lane.seen.count()).sum()
    }

    fn seen(&self) -> Histogram {
        let mut all = Histogram::new();
        lock(&self.measuring).values().for_each(|lane| all.add(&lane.seen));
        all
    }

    /// What may be late in the end, as far as can be told by now.
    fn suspicious(&self) -> Nanos {
        threshold::suspicious(self.asked, &self.seen(), self.before)
    }

    /// Until it has ended and nothing is left. What was late, and the highest latency that was not.
    fn collect(&self, mut sum: Sum, ended: &AtomicBool) -> Result<(Sum, Nanos)> {
        let mut when = Asked::default();
        let mut suspicious = self.suspicious();
        let (mut highest, mut set, mut until) = (suspicious, suspicious, Nanos(0));
        loop {
            let (last, now) = (ended.load(SeqCst), clock::now());
            // Windows take long to read, above all where loads leave little of the CPU: before that
            // the kernel is told which it need not hand over any more.
            lock(&self.measuring).values_mut().for_each(Measuring::listen);
            if self.asked.is_none() && when.again(now, self.count()) {
                suspicious = self.suspicious();
            }
            let above = suspicious.max(sum.above());
            if above != set {
                lock(&self.recorder).set_above(above).map_err(lost)?;
            }
            (set, highest) = (above, highest.max(above));
            let mut windows = Vec::new();
            let more = lock(&self.recorder)
                .read(PATIENCE, &mut |window| windows.push(window))
                .map_err(lost)?;
            // What is read comes in the order in which tasks went to sleep again. While there is more of
            // it, samples are judged as far as it has been read: else those that wait would pile up.
            let read = windows.last().map_or(Nanos(0), |window| window.out);
            until = match (more, last) {
                (true, _) => until.max(read - SETTLED),
                (false, true) => Nanos::MAX,
                (false, false) => now - SETTLED,
            };
            self.sort(windows);
            for lane in lock(&self.measuring).values_mut() {
                lane.late(above, until).for_each(|late| sum.add(late));
            }
            self.so_far.answer(|| {
                let seen = self.seen();
                // As in the end: what was not above the highest at its time was not kept.
                sum.so_far(seen.count(), threshold::late(self.asked, &seen).max(highest))
            });
            if last && !more {
                return Ok((sum, highest));
            }
        }
    }

    /// Gives the windows to those they are of.
    fn sort(&self, windows: Vec<Window>) {
        let mut lanes = lock(&self.measuring);
        for window in windows {
            if let Some(lane) = lanes.get_mut(&window.task.pid) {
                lane.pairing.window(window);
            }
        }
    }
}

/// Says that it has ended, however it does.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

impl Measuring {
    fn listen(&mut self) {
        let (seen, pairing) = (&mut self.seen, &mut self.pairing);
        self.feed.take(|at, latency| {
            seen.record(latency);
            pairing.sample(at, latency);
        });
    }

    fn late(&mut self, above: Nanos, until: Nanos) -> impl Iterator<Item = Late> {
        let (probe, cpu, origin) = (self.probe.to_owned(), self.cpu, self.feed.origin());
        self.pairing.pairs(above, until).into_iter().map(move |pair| Late {
            probe: probe.clone(),
            cpu,
            at: pair.at,
            origin,
            latency: pair.latency,
            window: pair.window,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
