//! Monitor of the measuring threads: their progress, their CPUs, and whether they have stalled.

use super::Rig;
use super::coordination::Coordination;
use super::keeping::Running;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::Failure;
use latlab_sys::clock_watch::ClockWatch;
use latlab_sys::root::Root;
use latlab_sys::signal::Event;
use latlab_sys::{clock, cpu};
use std::sync::Arc;

/// State of the monitor while a probe runs.
pub(super) struct Monitor<'a> {
    coordination: &'a Coordination,
    running: &'a Running<'a>,
    /// CPUs and histogram of each sampler.
    histograms: &'a [(String, Arc<AtomicHistogram>)],
    threads: usize,
    began: Nanos,
    /// Samples of the warm-up are not counted, so a stall is only detected after it.
    warm_up: Nanos,
    /// Number of samples of each sampler, and when it last changed.
    progress: Vec<(u64, Nanos)>,
    /// Whether all samplers have been set up.
    set_up: bool,
    /// When a sampler was first told to stop.
    stopping: Option<Nanos>,
}

impl Rig<'_> {
    /// Waits until all threads have finished. Meanwhile it shows their progress, passes on requests
    /// to stop, and checks that their CPUs are online and that samples are taken.
    pub(super) fn monitor(&mut self, monitor: &mut Monitor<'_>) {
        const WHILE_STOPPING: Nanos = Nanos::from_millis(20);
        let (coordination, running) = (monitor.coordination, monitor.running);
        let (probe, pacing) = (running.probe, running.pacing);
        while coordination.finished() < monitor.threads {
            let pace = match pacing.timeout() {
                _ if coordination.is_stopping() => WHILE_STOPPING,
                None => self.watch.pace(),
                Some(timeout) => self.watch.pace().min(timeout),
            };
            if self.signals.wait(pace) == Event::End {
                self.interrupted = true;
                coordination.stop_all();
            }
            self.stop_on_offline_cpus(coordination, running.cpu_sets);
            if let Some(timeout) = pacing.timeout() {
                monitor.fail_if_stalled(probe, timeout);
            }
            coordination.interrupt_stopped_threads();
            if self.clock.as_mut().is_some_and(ClockWatch::was_set) {
                coordination.interrupt_samplers();
            }
            monitor.demote_slow_to_stop();
            let elapsed = clock::now() - monitor.began;
            let total = self.conditions.estimate(pacing, elapsed, monitor.fewest_samples());
            self.watch.update(elapsed, total);
            if let Some(observer) = &self.observer {
                self.watch.causes(elapsed, &mut || observer.so_far().map(|all| all.explained));
            }
            self.keep_so_far(running);
        }
    }

    /// Stops the samplers whose CPUs went offline: the kernel moves their threads, which would then
    /// measure another CPU.
    fn stop_on_offline_cpus(&mut self, coordination: &Coordination, cpu_sets: &[CpuList]) {
        let online = cpu::online(&Root::default());
        for (index, cpus) in cpu_sets.iter().enumerate() {
            if !self.note_lost(cpus, &online).is_empty() {
                coordination.stop(index);
            }
        }
    }
}

impl<'a> Monitor<'a> {
    pub(super) fn new(
        coordination: &'a Coordination,
        running: &'a Running<'a>,
        histograms: &'a [(String, Arc<AtomicHistogram>)],
        threads: usize,
        warm_up: Nanos,
    ) -> Monitor<'a> {
        let began = clock::now();
        let progress = vec![(0, began); histograms.len()];
        let (set_up, stopping) = (false, None);
        Monitor {
            coordination,
            running,
            histograms,
            threads,
            began,
            warm_up,
            progress,
            set_up,
            stopping,
        }
    }

    /// Returns the number of samples of the sampler that has the fewest.
    fn fewest_samples(&self) -> u64 {
        self.histograms.iter().map(|(_, tally)| tally.recorded()).min().unwrap_or(0)
    }

    /// Demotes threads that have not stopped within a second after the order to stop.
    fn demote_slow_to_stop(&mut self) {
        const PATIENCE: Nanos = Nanos::from_secs(1);
        if !self.coordination.is_stopping() {
            self.stopping = None;
            return;
        }
        let now = clock::now();
        if now - *self.stopping.get_or_insert(now) > PATIENCE
            && let Ok(everywhere) = cpu::allowed()
        {
            self.coordination.demote_stopped_threads(&everywhere);
        }
    }

    /// Fails a probe if one of its samplers has recorded nothing for `timeout`. Before a thread is
    /// set up it is an ordinary task, which waits for the CPU on a busy machine, so the timeout is
    /// longer then.
    fn fail_if_stalled(&mut self, probe: &str, timeout: Nanos) {
        const SET_UP: u64 = 12;
        let now = clock::now();
        if !self.set_up && self.coordination.is_set_up() {
            self.set_up = true;
            let since = now + self.warm_up;
            self.progress.iter_mut().for_each(|progress| progress.1 = since);
        }
        let (timeout, why) = if self.set_up {
            (timeout, "a wake-up was lost, or a task of the probe is dead or never runs")
        } else {
            (Nanos(timeout.0.saturating_mul(SET_UP)), "its thread never got the CPU")
        };
        let samplers = self.histograms.iter().zip(&mut self.progress).enumerate();
        for (index, ((cpus, tally), progress)) in samplers {
            let recorded = tally.recorded();
            // A finished sampler has nothing more to record.
            if recorded != progress.0 || self.coordination.is_finished(index) {
                *progress = (recorded, now);
            }
            if now - progress.1 > timeout && !self.coordination.is_stopped(index) {
                let what = format!("{probe} on CPU {cpus}: no sample for {timeout}: {why}");
                self.coordination.fail(Failure::failed(what));
            }
        }
    }
}
