//! The apparatus of a probe: one pinned thread on each CPU, and the lanes that it records on.
//!
//! What happens between two samples is in [`Lane`] and is short: no allocation, no lock, no
//! formatting, no system call but the probe's own.

mod lane;
mod scheduling;

pub(crate) use lane::{Lane, record_cost};
pub(crate) use scheduling::{Phase, Scheduling};

use crate::failure::{Failure, Result, failed};
use lane::{Conditions, Finished};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::Plan;
use latlab_core::record::Schedule;
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::sched;
use latlab_sys::signal::{self, Event, Signals};
use latlab_sys::{clock, cpu, memory};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};

/// The two ends of a latency, in words.
pub(crate) type Span = (&'static str, &'static str);

/// Who looks on while a probe measures.
pub(crate) trait Watch {
    /// A probe begins on these lanes; it will take about `total`.
    fn begin(&mut self, probe: &str, lanes: &[(u32, Arc<Tally>)], total: Nanos);
    /// Time has passed.
    fn update(&mut self, elapsed: Nanos);
    /// The probe has ended.
    fn end(&mut self);
    /// How often to call `update`; also how long it may take to see that a CPU is gone.
    fn pace(&self) -> Nanos;
}

/// What measured on one CPU, and what came out.
pub(crate) struct Measured {
    pub(crate) probe: &'static str,
    pub(crate) spans: Vec<Span>,
    pub(crate) interval: Nanos,
    pub(crate) cpu: u32,
    pub(crate) schedule: Schedule,
    pub(crate) lane: Finished,
}

/// Everything a probe needs to measure, and what it has measured.
pub(crate) struct Rig<'a> {
    cpus: CpuList,
    conditions: Conditions,
    signals: &'a Signals,
    watch: &'a mut dyn Watch,
    /// What each CPU gave, probe by probe.
    pub(crate) measured: Vec<Measured>,
    /// CPUs that went offline under a probe.
    pub(crate) lost: CpuList,
    /// Whether the user ended it early.
    pub(crate) interrupted: bool,
}

/// What the threads of one probe and the thread that watches them share.
struct Shared {
    stop: Vec<AtomicBool>,
    thread_ids: Vec<AtomicI32>,
    finished: AtomicUsize,
    start: AtomicU64,
    ready: Barrier,
    failure: Mutex<Option<Failure>>,
}

impl<'a> Rig<'a> {
    /// The apparatus for `plan`.
    pub(crate) fn new(plan: &Plan, signals: &'a Signals, watch: &'a mut dyn Watch) -> Rig<'a> {
        let limit = plan.stop_above.unwrap_or(Nanos::MAX);
        Rig {
            cpus: plan.cpus.clone(),
            conditions: Conditions { length: plan.length, warm_up: plan.warm_up, limit },
            signals,
            watch,
            measured: Vec::new(),
            lost: CpuList::default(),
            interrupted: false,
        }
    }

    /// Whether nothing more is to be measured.
    pub(crate) fn is_over(&self) -> bool {
        self.interrupted || self.measured.iter().any(|m| m.lane.tripped.is_some())
    }

    /// Runs `body` on a thread of its own on each CPU, all starting together, and keeps what
    /// their lanes recorded: one series for each span.
    pub(crate) fn on_each_cpu<F>(
        &mut self,
        probe: &'static str,
        spans: &[Span],
        interval: Nanos,
        scheduling: &Scheduling,
        body: F,
    ) -> Result<()>
    where
        F: Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
    {
        let cpus: Vec<u32> = self.cpus.iter().collect();
        let shared = Shared::new(cpus.len());
        let lanes: Vec<Lane<'_>> = (0..cpus.len())
            .map(|place| Lane::new(place, spans.len(), interval, self.conditions, &shared.stop))
            .collect();
        let views: Vec<_> = cpus.iter().copied().zip(lanes.iter().map(Lane::view)).collect();
        let total = self.conditions.about(interval);
        let (shared_, body, watched) = (&shared, &body, self);
        let finished = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (cpu, lane) in cpus.iter().copied().zip(lanes) {
                let thread = std::thread::Builder::new()
                    .name(format!("{probe}/{cpu}"))
                    .stack_size(512 * 1024)
                    .spawn_scoped(scope, move || {
                        measure(lane, cpu, interval, scheduling, shared_, body)
                    })
                    .map_err(|e| failed("a thread could not be started", e))?;
                threads.push(thread);
            }
            watched.watch.begin(probe, &views, total);
            watched.look_on(shared_, &cpus);
            watched.watch.end();
            let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(|_| Failure::Failed(format!("{probe} panicked; nothing is left changed")))
        })?;
        if let Some(failure) = shared.failure.into_inner().unwrap_or(None) {
            return Err(failure);
        }
        let finished = finished.into_iter().flatten();
        watched.measured.extend(cpus.iter().zip(finished).map(|(cpu, (schedule, lane))| {
            Measured { probe, spans: spans.to_vec(), interval, cpu: *cpu, schedule, lane }
        }));
        Ok(())
    }

    /// Waits until all threads have finished; meanwhile shows what they do, passes requests to
    /// end on to them, and sees whether their CPUs are still there.
    fn look_on(&mut self, shared: &Shared, cpus: &[u32]) {
        const URGENT: Nanos = Nanos::from_millis(20);
        let begin = clock::now();
        while shared.finished.load(SeqCst) < cpus.len() {
            let stopping = shared.stop.iter().any(|stop| stop.load(SeqCst));
            let pace = if stopping { URGENT } else { self.watch.pace() };
            if self.signals.wait(pace) == Event::End {
                self.interrupted = true;
                shared.stop_all();
            }
            self.look_for_lost_cpus(shared, cpus);
            shared.nudge_the_stopped();
            self.watch.update(clock::now() - begin);
        }
    }

    /// A thread whose CPU goes offline is moved by the kernel, and what it measures from then on
    /// is another CPU's: it is stopped.
    fn look_for_lost_cpus(&mut self, shared: &Shared, cpus: &[u32]) {
        let online = cpu::online(&Root::default());
        let gone: CpuList = cpus.iter().copied().filter(|cpu| !online.contains(*cpu)).collect();
        if online.is_empty() || gone.is_empty() {
            return;
        }
        for (cpu, stop) in cpus.iter().zip(&shared.stop) {
            if gone.contains(*cpu) {
                stop.store(true, SeqCst);
            }
        }
        self.lost = gone;
    }
}

impl Shared {
    fn new(lanes: usize) -> Shared {
        Shared {
            stop: (0..lanes).map(|_| AtomicBool::new(false)).collect(),
            thread_ids: (0..lanes).map(|_| AtomicI32::new(0)).collect(),
            finished: AtomicUsize::new(0),
            start: AtomicU64::new(0),
            ready: Barrier::new(lanes),
            failure: Mutex::new(None),
        }
    }

    fn stop_all(&self) {
        self.stop.iter().for_each(|stop| stop.store(true, SeqCst));
    }

    /// Interrupts the sleep of threads that are to stop. One that is about to sleep misses it, so
    /// this is done again and again.
    fn nudge_the_stopped(&self) {
        for (stop, thread) in self.stop.iter().zip(&self.thread_ids) {
            let thread = thread.load(SeqCst);
            if stop.load(SeqCst) && thread != 0 {
                signal::nudge(thread);
            }
        }
    }

    fn fail(&self, failure: Failure) {
        let mut first = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert(failure);
    }

    fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
    }
}

/// Says that a thread is done, however it ends: a panic must not leave the watcher waiting.
struct Done<'a>(&'a Shared, usize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.thread_ids[self.1].store(0, SeqCst);
        self.0.finished.fetch_add(1, SeqCst);
        signal::tell();
    }
}

/// The life of a measuring thread. None if it, or another, could not be set up.
fn measure<F>(
    mut lane: Lane<'_>,
    cpu: u32,
    interval: Nanos,
    scheduling: &Scheduling,
    shared: &Shared,
    body: &F,
) -> Option<(Schedule, Finished)>
where
    F: Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
{
    let place = lane.place();
    let _done = Done(shared, place);
    memory::touch_stack();
    let schedule =
        scheduling::set_up(cpu, interval, scheduling).map_err(|failure| shared.fail(failure)).ok();
    if shared.ready.wait().is_leader() {
        let soon = clock::now() + Nanos::from_millis(5);
        shared.start.store(soon.0, SeqCst);
    }
    shared.ready.wait();
    if shared.has_failed() {
        return None;
    }
    shared.thread_ids[place].store(sched::thread_id(), SeqCst);
    lane.prepare(Nanos(shared.start.load(SeqCst)));
    if let Err(error) = body(&mut lane) {
        shared.fail(failed(&format!("measuring on CPU {cpu}"), error));
    }
    Some((schedule?, lane.finish()))
}
