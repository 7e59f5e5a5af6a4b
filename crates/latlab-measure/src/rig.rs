//! The measuring threads of a probe: one pinned thread per CPU, each with a sampler.
//!
//! The code between two samples is in [`Sampler`] and is short: no allocation, no lock, no
//! formatting, no system call but the probe's own.

mod conditions;
mod coordination;
mod cost;
mod keeping;
mod life;
mod monitor;
mod observer;
mod runnable_tasks;
mod sampler;
mod scheduling;
mod second_task;
#[cfg(test)]
mod tests;

pub use conditions::Pacing;
pub use cost::{Cost, record_cost};
pub use keeping::Keeping;
pub use observer::Observer;
pub use sampler::{Sampler, Share};
pub use scheduling::{Phase, Scheduling, TaskScheduling};
pub use second_task::SecondTask;

use conditions::Conditions;
use coordination::Coordination;
use keeping::Running;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::Plan;
use latlab_core::record::{Figure, Warning};
use latlab_core::time::Nanos;
use latlab_part::failure::{Result, failed};
use latlab_part::progress::Watch;
use latlab_sys::clock_watch::ClockWatch;
use latlab_sys::cpu::{self, Affinity};
use latlab_sys::root::Root;
use latlab_sys::signal::Signals;
use life::run_thread;
use monitor::Monitor;
use sampler::Recording;
use std::io;
use std::sync::Arc;

/// The two events between which a latency is measured, in words.
pub type Span = (&'static str, &'static str);

/// Results of one measuring thread of a probe, on one CPU or on several CPUs together.
pub struct ProbeResults {
    /// The name of the probe.
    pub probe: &'static str,
    /// The events between which it measures.
    pub spans: Vec<Span>,
    /// When its samples begin.
    pub pacing: Pacing,
    /// The CPUs of the thread.
    pub cpus: CpuList,
    /// What it recorded.
    pub recording: Recording,
}

impl ProbeResults {
    /// Returns the CPU, or the first of several.
    pub fn first_cpu(&self) -> u32 {
        self.cpus.iter().next().unwrap_or_default()
    }
}

/// Everything a probe needs to measure, and the results of the probes so far.
pub struct Rig<'a> {
    cpus: CpuList,
    /// The CPUs that measuring threads may use until they are pinned.
    everywhere: CpuList,
    conditions: Conditions,
    signals: &'a Signals,
    watch: &'a mut dyn Watch,
    /// Receives each sample while it is measured.
    pub observer: Option<Arc<dyn Observer>>,
    /// Watches the clock of the samples, where it can be set: a thread that sleeps is interrupted then.
    pub clock: Option<ClockWatch>,
    /// Makes a record of the results so far, once a minute.
    pub keeping: Option<Keeping<'a>>,
    /// Results of each measuring thread, probe by probe.
    pub measured: Vec<ProbeResults>,
    /// Single values that probes found.
    pub figures: Vec<Figure>,
    /// Warnings for the reader of the results.
    pub warnings: Vec<Warning>,
    /// CPUs that went offline during a measurement.
    pub lost: CpuList,
    /// Whether the user ended the measurement early.
    pub interrupted: bool,
}

impl<'a> Rig<'a> {
    /// Returns the rig for `plan`. Until measuring threads are pinned they may use the CPUs
    /// `everywhere`.
    pub fn new(
        plan: &Plan,
        everywhere: CpuList,
        signals: &'a Signals,
        watch: &'a mut dyn Watch,
    ) -> Rig<'a> {
        let limit = plan.stop_above.unwrap_or(Nanos::MAX);
        Rig {
            cpus: plan.cpus.clone(),
            everywhere,
            conditions: Conditions {
                length: plan.length,
                warm_up: plan.warm_up,
                limit,
                brief: false,
            },
            signals,
            watch,
            observer: None,
            clock: None,
            keeping: None,
            measured: Vec::new(),
            figures: Vec::new(),
            warnings: Vec::new(),
            lost: CpuList::default(),
            interrupted: false,
        }
    }

    /// The CPU and the time of the first sample above the limit, which ended the measurement.
    pub fn tripped(&self) -> Option<(u32, Nanos)> {
        let tripped = self.measured.iter().filter_map(|one| {
            let late = one.recording.tripped?.late;
            Some((one.first_cpu(), late.at))
        });
        tripped.min_by_key(|(_, at)| *at)
    }

    /// Whether the user or a sample above the limit has ended the measurement.
    pub fn is_over(&self) -> bool {
        self.interrupted || self.measured.iter().any(|m| m.recording.tripped.is_some())
    }

    /// The measured CPUs.
    pub fn cpus(&self) -> &CpuList {
        &self.cpus
    }

    /// Adds a single value that a probe found.
    pub fn add_figure(&mut self, probe: &str, name: &str, value: f64, unit: &str) {
        self.figures.push(Figure {
            probe: probe.to_owned(),
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            load: Vec::new(),
            profile: None,
        });
    }

    /// Calls `measure` for each step, with an equal share of the run's length.
    pub fn for_each_step<S>(
        &mut self,
        steps: impl ExactSizeIterator<Item = S>,
        mut measure: impl FnMut(&mut Self, S) -> Result<()>,
    ) -> Result<()> {
        let whole = self.conditions;
        self.conditions.length = whole.share(steps.len() as u64);
        let mut ended = Ok(());
        for step in steps {
            ended = measure(self, step);
            if ended.is_err() || self.is_over() {
                break;
            }
        }
        self.conditions = whole;
        ended
    }

    /// Runs `body` on one thread per CPU that is still online, all started together, and keeps what
    /// their samplers recorded: one series for each span.
    pub fn on_each_cpu<F>(
        &mut self,
        probe: &'static str,
        spans: &[Span],
        pacing: Pacing,
        scheduling: &Scheduling,
        body: F,
    ) -> Result<()>
    where
        F: Fn(&mut Sampler<'_>) -> io::Result<()> + Sync,
    {
        let cpus = self.online_cpus(probe)?;
        let each: Vec<CpuList> = cpus.iter().map(|cpu| CpuList::from_iter([cpu])).collect();
        self.on_cpu_sets(&each, probe, spans, pacing, scheduling, body)
    }

    /// The measured CPUs that are still online; the others are lost. Fails if none is left.
    fn online_cpus(&mut self, probe: &str) -> Result<CpuList> {
        let gone = self.note_lost(&self.cpus.clone(), &cpu::online(&Root::default()));
        let left = self.cpus.minus(&gone);
        if left.is_empty() {
            let why = format!("CPU {gone} went offline before it was measured");
            return Err(failed(probe, why));
        }
        Ok(left)
    }

    /// Adds the `cpus` that are not `online` to the lost CPUs, and returns them.
    fn note_lost(&mut self, cpus: &CpuList, online: &CpuList) -> CpuList {
        // It could not be read.
        if online.is_empty() {
            return CpuList::default();
        }
        let gone = cpus.minus(online);
        self.lost = self.lost.iter().chain(gone.iter()).collect();
        gone
    }

    /// Runs `body` on one thread that may use all measured CPUs.
    pub fn on_all_cpus<F>(
        &mut self,
        probe: &'static str,
        spans: &[Span],
        pacing: Pacing,
        scheduling: &Scheduling,
        body: F,
    ) -> Result<()>
    where
        F: Fn(&mut Sampler<'_>) -> io::Result<()> + Sync,
    {
        let all = self.cpus.clone();
        self.on_cpu_sets(std::slice::from_ref(&all), probe, spans, pacing, scheduling, body)
    }

    /// Runs `body` on one thread for each of these sets of CPUs.
    pub fn on_cpu_sets<F>(
        &mut self,
        cpu_sets: &[CpuList],
        probe: &'static str,
        spans: &[Span],
        pacing: Pacing,
        scheduling: &Scheduling,
        body: F,
    ) -> Result<()>
    where
        F: Fn(&mut Sampler<'_>) -> io::Result<()> + Sync,
    {
        let conditions = self.conditions.of(probe, pacing)?;
        let coordination = Coordination::new(cpu_sets.len());
        let interval = pacing.interval();
        let samplers: Vec<Sampler<'_>> = (0..cpu_sets.len())
            .map(|index| Sampler::new(index, spans.len(), interval, conditions, &coordination))
            .collect();
        let histograms: Vec<(String, Arc<AtomicHistogram>)> = cpu_sets
            .iter()
            .map(CpuList::to_string)
            .zip(samplers.iter().map(Sampler::shared_histogram))
            .collect();
        let running = Running {
            probe,
            spans,
            pacing,
            cpu_sets,
            interims: samplers.iter().map(Sampler::interim).collect(),
        };
        let observer = self.observer.clone();
        if let (Pacing::External { .. }, Some(observer)) = (pacing, &observer) {
            observer.receive_all();
        }
        let everywhere = Affinity::to(&self.everywhere);
        let finished = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (cpus, sampler) in cpu_sets.iter().zip(samplers) {
                let (coordination, body, everywhere) = (&coordination, &body, &everywhere);
                let observer = observer.as_deref().map(|observer| (observer, probe));
                let run = move || {
                    // A deadline task must not have the affinity of the thread that starts it.
                    let _ = everywhere.take();
                    run_thread(sampler, cpus, interval, scheduling, observer, coordination, body)
                };
                // The kernel keeps 15 characters of a thread's name.
                let short = probe.rsplit('.').next().unwrap_or(probe);
                let thread = std::thread::Builder::new().name(format!("{short}/{cpus}"));
                match thread.stack_size(512 * 1024).spawn_scoped(scope, run) {
                    Ok(thread) => threads.push(thread),
                    Err(e) => coordination.fail(failed("a thread could not be started", e)),
                }
            }
            self.watch.begin(probe, &histograms);
            let warm_up = self.conditions.warm_up;
            let mut monitor =
                Monitor::new(&coordination, &running, &histograms, threads.len(), warm_up);
            self.monitor(&mut monitor);
            self.watch.end();
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Vec<_>>()
        });
        let failure = coordination.into_failure();
        // Where the probe failed, a sampler without samples is not a result.
        let is_result = |one: &Recording| failure.is_none() || one.first().recorded() > 0;
        let finished = finished.into_iter().flatten().filter(|(_, one)| is_result(one));
        self.measured.extend(finished.map(|(cpus, recording)| {
            let spans = spans.to_vec();
            ProbeResults { probe, spans, pacing, cpus, recording }
        }));
        failure.map_or(Ok(()), Err)
    }
}
