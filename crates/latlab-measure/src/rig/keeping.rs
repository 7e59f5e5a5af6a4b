//! Records of what was measured so far, once a minute: a run that is killed loses a minute.

use super::sampler::Interim;
use super::{Pacing, ProbeResults, Rig, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::record::Record;
use latlab_core::record::explained::Explanations;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use std::sync::Arc;

/// The interval of records.
const INTERVAL: Nanos = Nanos::from_secs(60);

/// Makes a record of results that are not complete, and of the explanations so far.
type MakeRecord<'a> = dyn Fn(&[&ProbeResults], Option<&Explanations>) -> Record + 'a;

/// Makes records of results that are not complete.
pub struct Keeping<'a> {
    record: Box<MakeRecord<'a>>,
    /// When samplers and observer are asked for their next results.
    next: Nanos,
    /// Whether they have been asked.
    asked: bool,
    /// The latest explanations.
    explanations: Option<Explanations>,
}

impl<'a> Keeping<'a> {
    /// Makes records with `record`, the first one in a minute.
    pub fn with(
        record: impl Fn(&[&ProbeResults], Option<&Explanations>) -> Record + 'a,
    ) -> Keeping<'a> {
        let next = clock::now() + INTERVAL;
        Keeping { record: Box::new(record), next, asked: false, explanations: None }
    }

    /// A record of explanations of tasks that belong to no probe, once a minute.
    pub fn explained(&mut self, so_far: impl FnOnce() -> Explanations) -> Option<Record> {
        self.is_due().then(|| (self.record)(&[], Some(&so_far())))
    }

    fn is_due(&mut self) -> bool {
        let now = clock::now();
        let is_due = now >= self.next;
        if is_due {
            self.next = now + INTERVAL;
        }
        is_due
    }
}

/// The running probe, and the copies that its samplers make.
pub(super) struct Running<'a> {
    pub(super) probe: &'static str,
    pub(super) spans: &'a [Span],
    pub(super) pacing: Pacing,
    /// The CPUs of each sampler.
    pub(super) cpu_sets: &'a [CpuList],
    pub(super) interims: Vec<Arc<Interim>>,
}

impl Running<'_> {
    /// The results so far, of samplers that have any.
    fn results(&self) -> Vec<ProbeResults> {
        let copies = self.interims.iter().map(|interim| interim.latest().clone());
        let copies = self.cpu_sets.iter().zip(copies);
        copies
            .filter(|(_, recording)| recording.first().recorded() > 0)
            .map(|(cpus, recording)| ProbeResults {
                probe: self.probe,
                spans: self.spans.to_vec(),
                pacing: self.pacing,
                cpus: cpus.clone(),
                recording,
            })
            .collect()
    }
}

impl Rig<'_> {
    /// Hands a record of all results so far to the watch, once a minute: asks the samplers for
    /// copies, and takes these once all have made theirs, or after another minute.
    pub(super) fn keep_so_far(&mut self, running: &Running<'_>) {
        let Some(keeping) = self.keeping.as_mut() else { return };
        let is_answered = keeping.asked && !running.interims.iter().any(|one| one.is_wanted());
        if !keeping.is_due() && !is_answered {
            return;
        }
        let asked = std::mem::take(&mut keeping.asked);
        // The answer to the previous call, which asked for it.
        let latest = self.observer.as_ref().and_then(|observer| observer.so_far());
        keeping.explanations = latest.or(keeping.explanations.take());
        if !asked {
            running.interims.iter().for_each(|interim| interim.want());
            keeping.asked = true;
            return;
        }
        let current = running.results();
        let all: Vec<&ProbeResults> = self.measured.iter().chain(&current).collect();
        if !all.is_empty() {
            self.watch.keep(&(keeping.record)(&all, keeping.explanations.as_ref()));
        }
    }
}
