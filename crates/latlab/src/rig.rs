//! The apparatus of a probe: one pinned thread on each CPU, and the lanes that it records on.
//!
//! What happens between two samples is in [`Lane`] and is short: no allocation, no lock, no
//! formatting, no system call but the probe's own.

mod conditions;
mod cost;
mod crowd;
mod lane;
mod life;
mod looking;
mod meeting;
mod observing;
mod partner;
mod scheduling;
#[cfg(test)]
mod tests;

pub(crate) use conditions::Rhythm;
pub(crate) use cost::Cost;
pub(crate) use lane::{Lane, Share, record_cost};
pub(crate) use observing::Observer;
pub(crate) use partner::Partner;
pub(crate) use scheduling::{Phase, Scheduling, Tasks};

use crate::failure::{Result, failed};
use conditions::Conditions;
use lane::Finished;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::Plan;
use latlab_core::record::explained::Explained;
use latlab_core::record::{Figure, Schedule, Warning};
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use latlab_sys::signal::Signals;
use life::live;
use looking::Looking;
use meeting::Meeting;
use std::io;
use std::sync::Arc;

/// The two ends of a latency, in words.
pub(crate) type Span = (&'static str, &'static str);

/// Who looks on while a probe measures.
pub(crate) trait Watch {
    /// A probe begins on these lanes, each with its CPUs.
    fn begin(&mut self, probe: &str, lanes: &[(String, Arc<Tally>)]);
    /// So much time has passed, out of about `total`.
    fn update(&mut self, elapsed: Nanos, total: Nanos);
    /// The probe has ended.
    fn end(&mut self);
    /// What goes on besides measuring, in a few words; each takes the place of the one before.
    fn note(&mut self, text: &str);
    /// One of several guests has measured: so many are done, of so many.
    fn done(&mut self, _done: usize, _total: usize) {}
    /// What made wake-ups late may be asked for, of `so_far`: that costs, so who does not show it
    /// does not ask.
    fn causes(&mut self, _elapsed: Nanos, _so_far: &mut dyn FnMut() -> Option<Explained>) {}
    /// How often to call `update`; also how long it may take to see that a CPU is gone.
    fn pace(&self) -> Nanos;
}

/// What measured on one CPU, or on several together, and what came out.
pub(crate) struct Measured {
    pub(crate) probe: &'static str,
    pub(crate) spans: Vec<Span>,
    pub(crate) rhythm: Rhythm,
    pub(crate) cpus: CpuList,
    pub(crate) schedule: Schedule,
    pub(crate) lane: Finished,
}

impl Measured {
    /// The CPU, or the first of several.
    pub(crate) fn first_cpu(&self) -> u32 {
        self.cpus.iter().next().unwrap_or_default()
    }
}

/// Everything a probe needs to measure, and what it has measured.
pub(crate) struct Rig<'a> {
    cpus: CpuList,
    conditions: Conditions,
    signals: &'a Signals,
    watch: &'a mut dyn Watch,
    /// Who is told of each sample.
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// What each CPU gave, probe by probe.
    pub(crate) measured: Vec<Measured>,
    /// What probes found that is no distribution.
    pub(crate) figures: Vec<Figure>,
    /// What the reader of their results must know.
    pub(crate) warnings: Vec<Warning>,
    /// CPUs that went offline under a probe.
    pub(crate) lost: CpuList,
    /// Whether the user ended it early.
    pub(crate) interrupted: bool,
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
            observer: None,
            measured: Vec::new(),
            figures: Vec::new(),
            warnings: Vec::new(),
            lost: CpuList::default(),
            interrupted: false,
        }
    }

    /// Whether nothing more is to be measured.
    pub(crate) fn is_over(&self) -> bool {
        self.interrupted || self.measured.iter().any(|m| m.lane.tripped.is_some())
    }

    /// The CPUs under test.
    pub(crate) fn cpus(&self) -> &CpuList {
        &self.cpus
    }

    /// Keeps a single value that a probe found.
    pub(crate) fn figure(&mut self, probe: &str, name: &str, value: f64, unit: &str) {
        self.figures.push(Figure {
            probe: probe.to_owned(),
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            load: Vec::new(),
            profile: None,
        });
    }

    /// Measures with `part` several times, of which each takes its share of what was asked for.
    pub(crate) fn in_parts<P>(
        &mut self,
        parts: impl ExactSizeIterator<Item = P>,
        mut part: impl FnMut(&mut Self, P) -> Result<()>,
    ) -> Result<()> {
        let whole = self.conditions;
        self.conditions.length = whole.share(parts.len() as u64);
        let mut ended = Ok(());
        for each in parts {
            ended = part(self, each);
            if ended.is_err() || self.is_over() {
                break;
            }
        }
        self.conditions = whole;
        ended
    }

    /// Runs `body` on a thread of its own on each CPU, all starting together, and keeps what
    /// their lanes recorded: one series for each span.
    pub(crate) fn on_each_cpu<F>(
        &mut self,
        probe: &'static str,
        spans: &[Span],
        rhythm: Rhythm,
        scheduling: &Scheduling,
        body: F,
    ) -> Result<()>
    where
        F: Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
    {
        let each: Vec<CpuList> = self.cpus.iter().map(|cpu| CpuList::from_iter([cpu])).collect();
        self.on_each_of(&each, probe, spans, rhythm, scheduling, body)
    }

    /// Runs `body` on one thread that may use all the CPUs.
    pub(crate) fn on_all_cpus<F>(
        &mut self,
        probe: &'static str,
        spans: &[Span],
        rhythm: Rhythm,
        scheduling: &Scheduling,
        body: F,
    ) -> Result<()>
    where
        F: Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
    {
        let all = self.cpus.clone();
        self.on_each_of(std::slice::from_ref(&all), probe, spans, rhythm, scheduling, body)
    }

    /// Runs `body` on a thread of its own for each of these sets of CPUs.
    pub(crate) fn on_each_of<F>(
        &mut self,
        places: &[CpuList],
        probe: &'static str,
        spans: &[Span],
        rhythm: Rhythm,
        scheduling: &Scheduling,
        body: F,
    ) -> Result<()>
    where
        F: Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
    {
        let meeting = Meeting::of(places.len());
        let interval = rhythm.interval();
        let lanes: Vec<Lane<'_>> = (0..places.len())
            .map(|place| Lane::new(place, spans.len(), interval, self.conditions, &meeting))
            .collect();
        let views: Vec<(String, Arc<Tally>)> =
            places.iter().map(CpuList::to_string).zip(lanes.iter().map(Lane::view)).collect();
        let observer = self.observer.clone();
        let finished = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (cpus, lane) in places.iter().zip(lanes) {
                let (meeting, body) = (&meeting, &body);
                let observer = observer.as_deref().map(|observer| (observer, probe));
                let life = move || live(lane, cpus, interval, scheduling, observer, meeting, body);
                // The kernel keeps fifteen letters of it.
                let short = probe.rsplit('.').next().unwrap_or(probe);
                let thread = std::thread::Builder::new().name(format!("{short}/{cpus}"));
                match thread.stack_size(512 * 1024).spawn_scoped(scope, life) {
                    Ok(thread) => threads.push(thread),
                    Err(e) => meeting.fail(failed("a thread could not be started", e)),
                }
            }
            self.watch.begin(probe, &views);
            let warm_up = self.conditions.warm_up;
            let mut looking = Looking::on(&meeting, places, &views, threads.len(), warm_up);
            self.look_on(probe, &mut looking, rhythm);
            self.watch.end();
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Vec<_>>()
        });
        let failure = meeting.into_failure();
        // A lane on which nothing came is no result of a probe that failed.
        let is_result = |lane: &Finished| failure.is_none() || lane.first().recorded() > 0;
        let finished = finished.into_iter().flatten().filter(|(_, _, lane)| is_result(lane));
        self.measured.extend(finished.map(|(cpus, schedule, lane)| {
            let spans = spans.to_vec();
            Measured { probe, spans, rhythm, cpus, schedule, lane }
        }));
        failure.map_or(Ok(()), Err)
    }
}
