//! The wake-ups of a probe: each of its samples, and what the kernel saw of it.

use super::summing::{Explanations, Extent};
use super::{Late, lost, start};
use crate::failure::Result;
use crate::rig::Observer;
use latlab_bpf::{Recorder, Watch};
use latlab_core::explain::Window;
use latlab_core::explain::pairing::Pairing;
use latlab_core::explain::threshold;
use latlab_core::feed::Feed;
use latlab_core::histogram::Histogram;
use latlab_core::machine::Machine;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those who measure, and the recorder that watches them.
pub(crate) struct Lanes {
    recorder: Arc<Mutex<Recorder>>,
    measuring: Mutex<HashMap<u32, Measuring>>,
    asked: Option<Nanos>,
    before: Nanos,
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
}

impl Lanes {
    /// Explains the samples that `measure` tells of, those above `asked` or else the worst. Which
    /// may be among these is known from `before` at first.
    pub(crate) fn explain<T>(
        asked: Option<Nanos>,
        before: Nanos,
        machine: &Machine,
        measure: impl FnOnce(Arc<Lanes>) -> T,
    ) -> Result<(T, Explanations)> {
        let recorder = start(&Watch::Tasks(Vec::new()), asked.unwrap_or(before))?;
        let recorder = Arc::new(Mutex::new(recorder));
        let lanes = Arc::new(Lanes {
            recorder: Arc::clone(&recorder),
            measuring: Mutex::default(),
            asked,
            before,
        });
        let ended = AtomicBool::new(false);
        let (measured, late) = std::thread::scope(|scope| {
            let collecting = scope.spawn(|| lanes.collect(&ended));
            let measured = measure(Arc::clone(&lanes));
            ended.store(true, SeqCst);
            (measured, collecting.join())
        });
        let mut late = late.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let seen = lanes.seen();
        let above = threshold::late(asked, &seen);
        late.retain(|late| late.latency > above);
        let lost = lock(&lanes.measuring).values().map(|lane| lane.feed.lost()).sum();
        let extent = Extent { wake_ups: seen.count(), above, lost };
        Ok((measured, Explanations::of(&late, &extent, &lock(&recorder), machine)))
    }

    fn seen(&self) -> Histogram {
        let mut all = Histogram::new();
        lock(&self.measuring).values().for_each(|lane| all.add(&lane.seen));
        all
    }

    /// Until it has ended and nothing is left.
    fn collect(&self, ended: &AtomicBool) -> Result<Vec<Late>> {
        let mut late = Vec::new();
        loop {
            let last = ended.load(SeqCst);
            let until = if last { Nanos::MAX } else { clock::now() - SETTLED };
            let mut windows = Vec::new();
            lock(&self.recorder)
                .read(PATIENCE, &mut |window| windows.push(window))
                .map_err(lost)?;
            self.sort(windows);
            let above = threshold::suspicious(self.asked, &self.seen(), self.before);
            lock(&self.recorder).set_above(above).map_err(lost)?;
            for lane in lock(&self.measuring).values_mut() {
                lane.listen();
                late.extend(lane.late(above, until));
            }
            if last {
                return Ok(late);
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
