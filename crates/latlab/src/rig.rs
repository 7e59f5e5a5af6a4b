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
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
    /// What goes on besides measuring, in a few words; each takes the place of the one before.
    fn note(&mut self, text: &str);
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
    gathering: Mutex<Gathering>,
    changed: Condvar,
}

/// Who has come to the start.
#[derive(Default)]
struct Gathering {
    arrived: usize,
    start: Nanos,
    /// What kept somebody from coming; then nobody starts.
    failure: Option<Failure>,
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
        let finished = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (cpu, lane) in cpus.iter().copied().zip(lanes) {
                let (shared, body) = (&shared, &body);
                let life = move || measure(lane, cpu, interval, scheduling, shared, body);
                let thread = std::thread::Builder::new().name(format!("{probe}/{cpu}"));
                match thread.stack_size(512 * 1024).spawn_scoped(scope, life) {
                    Ok(thread) => threads.push(thread),
                    Err(e) => shared.fail(failed("a thread could not be started", e)),
                }
            }
            self.watch.begin(probe, &views, total);
            self.look_on(&shared, &cpus, threads.len());
            self.watch.end();
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Vec<_>>()
        });
        let finished = finished.into_iter().flatten();
        self.measured.extend(finished.map(|(cpu, schedule, lane)| {
            let spans = spans.to_vec();
            Measured { probe, spans, interval, cpu, schedule, lane }
        }));
        shared.into_failure().map_or(Ok(()), Err)
    }

    /// Waits until all threads have finished; meanwhile shows what they do, passes requests to
    /// end on to them, and sees whether their CPUs are still there.
    fn look_on(&mut self, shared: &Shared, cpus: &[u32], threads: usize) {
        const URGENT: Nanos = Nanos::from_millis(20);
        let begin = clock::now();
        while shared.finished.load(SeqCst) < threads {
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
        self.lost = self.lost.iter().chain(gone.iter()).collect();
    }
}

impl Shared {
    fn new(lanes: usize) -> Shared {
        Shared {
            stop: (0..lanes).map(|_| AtomicBool::new(false)).collect(),
            thread_ids: (0..lanes).map(|_| AtomicI32::new(0)).collect(),
            finished: AtomicUsize::new(0),
            gathering: Mutex::default(),
            changed: Condvar::new(),
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

    fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all threads are set up. When they start; none if one could not be.
    fn gather(&self) -> Option<Nanos> {
        let lanes = self.stop.len();
        let mut gathering = self.gathering();
        gathering.arrived += 1;
        if gathering.arrived == lanes {
            gathering.start = clock::now() + Nanos::from_millis(5);
            self.changed.notify_all();
        }
        while gathering.arrived < lanes && gathering.failure.is_none() {
            gathering = self.changed.wait(gathering).unwrap_or_else(PoisonError::into_inner);
        }
        gathering.failure.is_none().then_some(gathering.start)
    }

    /// Says why the probe can't go on. The first reason counts.
    fn fail(&self, failure: Failure) {
        self.gathering().failure.get_or_insert(failure);
        self.changed.notify_all();
        self.stop_all();
    }

    fn into_failure(self) -> Option<Failure> {
        self.gathering.into_inner().unwrap_or_else(PoisonError::into_inner).failure
    }
}

/// Says that a thread is done, however it ends: a panic must leave nobody waiting.
struct Done<'a>(&'a Shared, usize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a measuring thread panicked; what was changed is given back";
            self.0.fail(Failure::Failed(why.to_owned()));
        }
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
) -> Option<(u32, Schedule, Finished)>
where
    F: Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
{
    let place = lane.place();
    let _done = Done(shared, place);
    memory::touch_stack();
    let schedule = scheduling::set_up(cpu, interval, scheduling)
        .map_err(|failure| shared.fail(failure))
        .ok()?;
    let start = shared.gather()?;
    shared.thread_ids[place].store(sched::thread_id(), SeqCst);
    lane.prepare(start);
    if let Err(error) = body(&mut lane) {
        shared.fail(failed(&format!("measuring on CPU {cpu}"), error));
    }
    Some((cpu, schedule, lane.finish()))
}
