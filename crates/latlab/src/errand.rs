//! An errand: how plans are to be carried out, apart from what they are.

use crate::engine::Outcome;
use crate::failure::{Failure, Result};
use crate::guest::Accel;
use crate::kernel::Progress;
use crate::message::Stream;
use crate::rig::Watch;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_sys::signal::{Event, Signals};

/// Carries a plan out on the machine that latlab runs on.
pub(crate) type Here = fn(&Plan, &Signals, &mut dyn Watch) -> Result<Outcome>;

/// Takes what a program on a target writes.
pub(crate) type Put<'a> = dyn FnMut(Stream, &[u8]) -> Result<()> + 'a;

/// Takes the record of a plan, by its place among all, as soon as it is there.
pub(crate) type Keep<'a> = dyn FnMut(usize, &Record) + 'a;

/// What a target needs besides plans; nothing of it changes what comes out.
pub(crate) struct Errand<'a> {
    /// Carries a plan out on this machine.
    pub(crate) here: Here,
    /// The requests to end.
    pub(crate) signals: &'a Signals,
    /// Who looks on.
    pub(crate) watch: &'a mut dyn Watch,
    /// Who is told of kernels that are fetched.
    pub(crate) progress: &'a mut dyn Progress,
    /// Who takes records before all are there.
    pub(crate) keep: Option<&'a mut Keep<'a>>,
    /// How many guests may run at the same time.
    pub(crate) jobs: usize,
    /// Whether to measure what is known already.
    pub(crate) fresh: bool,
    /// What is to carry out the instructions of a virtual machine, where that matters to the user.
    pub(crate) accel: Option<Accel>,
    /// How long a plan or a program may take on the wall; each target has its own idea where
    /// there is none.
    pub(crate) limit: Option<Nanos>,
    /// Whether the user has asked for the end: what has not begun is not to begin.
    pub(crate) ended: bool,
}

impl Errand<'_> {
    /// Lets so much time pass at most. Whether a request to end came meanwhile.
    pub(crate) fn pause(&mut self, at_most: Nanos) -> bool {
        let asked = self.signals.wait(at_most) == Event::End;
        self.ended |= asked;
        asked
    }

    /// Hands on what came of the plan at this place. What the user has ended early is the last.
    pub(crate) fn came(&mut self, place: usize, outcome: &Result<Outcome>) {
        let Ok(outcome) = outcome else { return };
        self.ended |= outcome.record.warnings.iter().any(|one| one.code == "interrupted");
        if let Some(keep) = &mut self.keep {
            keep(place, &outcome.record);
        }
    }

    /// Refuses to begin anything once the user has asked for the end.
    pub(crate) fn go_on(&self, target: &str) -> Result<()> {
        if self.ended {
            let why = format!("{target}: ended before it had begun");
            return Err(Failure::Failed(why));
        }
        Ok(())
    }
}
