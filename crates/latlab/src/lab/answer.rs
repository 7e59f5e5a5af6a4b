//! The answer of a cell, and the outcome made from it.

use crate::engine::Outcome;
use crate::failure::{Failure, Result};
use crate::message::Message;
use latlab_core::plan::Plan;
use latlab_core::record::{Record, Warning};

/// The last message of a guest, with what the host knows about the guest.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) target: String,
    /// The digest of everything the answer depends on, except the job.
    pub(super) fingerprint: String,
    pub(super) last: Message,
    /// Lines in which the guest's kernel reported a fault.
    pub(super) complaints: Vec<String>,
    /// The recording of the plugin; empty without one.
    pub(super) trace: String,
}

impl Answer {
    /// The outcome of `plan`; fails where the guest sent no record.
    pub(super) fn outcome(self, plan: &Plan) -> Result<Outcome> {
        let Message::Record { mut record, verdict } = self.last else {
            return Err(self.unexpected());
        };
        record.fingerprint = Some(self.fingerprint);
        let profile = plan.target.split_once(':').map(|(_, profile)| profile.to_owned());
        set_profile(&mut record, profile.as_ref());
        let warning =
            |line| Warning::new("kernel-complained", format!("the guest's kernel: {line}"));
        record.warnings.extend(self.complaints.into_iter().map(warning));
        Ok(Outcome { record: *record, verdict })
    }

    /// Fails unless a program has exited with 0.
    pub(super) fn exited(self) -> Result<()> {
        if matches!(self.last, Message::Exited(0)) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The failure that the guest reported, or a failure because its answer is of the wrong kind.
    pub(super) fn unexpected(self) -> Failure {
        match self.last {
            Message::Failed(failure) => failure.about(&self.target),
            other => Failure::Failed(format!("{}: the guest answered {other:?}", self.target)),
        }
    }
}

fn set_profile(record: &mut Record, profile: Option<&String>) {
    for series in &mut record.series {
        series.profile = profile.cloned();
    }
    for scan in &mut record.scans {
        scan.profile = profile.cloned();
    }
    for figure in &mut record.figures {
        figure.profile = profile.cloned();
    }
}
