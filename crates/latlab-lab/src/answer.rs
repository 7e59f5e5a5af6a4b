//! The answer of a cell, and the outcome made from it.

use latlab_core::machine::TimeDomain;
use latlab_core::path::Misses;
use latlab_core::record::{Figure, Record, Warning, WarningCode};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::message::Message;
use latlab_part::failure::{Failure, Result};

/// The last message of a guest, with what the host knows about the guest.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) target: String,
    /// Time domain of the guest.
    pub(super) time_domain: TimeDomain,
    /// The digest of everything the answer depends on, except the job.
    pub(super) fingerprint: String,
    pub(super) last: Message,
    /// Lines in which the guest's kernel reported a fault.
    pub(super) complaints: Vec<String>,
    /// The misses of modelled caches and TLBs, where they are counted.
    pub(super) misses: Vec<Misses>,
    /// The recording of the plugin; empty without one.
    pub(super) trace: String,
    /// Reason why the guest lacked the test driver, where parts may be left out.
    pub(super) no_driver: Option<String>,
}

impl Answer {
    /// The outcome of `plan`; fails where the guest sent no record of it.
    pub(super) fn outcome(self, plan: &Prepared) -> Result<Outcome> {
        let origin = self.last.check_origin(Some(plan.plan()), self.time_domain);
        origin.map_err(|failure| failure.about(&self.target))?;
        let Message::Record { mut record, verdict } = self.last else {
            return Err(self.unexpected());
        };
        record.fingerprint = Some(self.fingerprint);
        if let Some(probe) = plan.modelled() {
            add_misses(&mut record, probe, &self.misses);
        }
        let profile = plan.plan().target.split_once(':').map(|(_, profile)| profile.to_owned());
        set_profile(&mut record, profile.as_ref());
        let warning = |line| {
            Warning::new(WarningCode::KernelComplained, format!("the guest's kernel: {line}"))
        };
        record.warnings.extend(self.complaints.into_iter().map(warning));
        let skipped = |why| format!("the test driver was left out: {why}");
        let skipped = self.no_driver.map(|why| Warning::new(WarningCode::Skipped, skipped(why)));
        record.warnings.extend(skipped);
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
            other => Failure::failed(format!("{}: the guest answered {other:?}", self.target)),
        }
    }
}

/// Adds the misses, each as the mean of all repetitions, to the figures of the probe for which they
/// were counted.
fn add_misses(record: &mut Record, probe: &str, misses: &[Misses]) {
    let series = record.series.iter().find(|series| series.probe == probe);
    let Some(load) = series.map(|series| series.load.clone()) else { return };
    let figure = |(name, value): (&str, f64)| Figure {
        probe: probe.to_owned(),
        name: name.to_owned(),
        value,
        unit: "per repetition".to_owned(),
        load: load.clone(),
        profile: None,
    };
    record.figures.extend(Misses::means(misses).into_iter().map(figure));
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

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::cpulist::CpuList;
    use latlab_core::machine::Machine;
    use latlab_core::plan::{Length, Plan};
    use latlab_core::time::Nanos;

    fn plan(target: &str) -> Plan {
        Plan::bare(target, CpuList::default(), Length::Count(1))
    }

    /// An answer to this plan, without results.
    fn answer(plan: &Plan) -> Answer {
        let record = Record::new("latlab", Nanos(0), plan.clone(), Machine::default());
        Answer {
            target: "lab:bare".to_owned(),
            time_domain: TimeDomain::Silicon,
            fingerprint: "0a".to_owned(),
            last: Message::Record { record: Box::new(record), verdict: None },
            complaints: Vec::new(),
            misses: Vec::new(),
            trace: String::new(),
            no_driver: None,
        }
    }

    #[test]
    fn answer_to_another_plan_or_in_another_time_domain_is_refused() {
        let sent = Prepared::of(&plan("lab:bare")).unwrap();
        let said = |answer: Answer| answer.outcome(&sent).err().unwrap().to_string();
        let other = answer(&plan("lab:mine"));
        assert!(said(other).starts_with("lab:bare: the target sent an invalid message"));
        let time_domain = TimeDomain::Instructions;
        let other = Answer { time_domain, ..answer(&plan("lab:bare")) };
        assert!(said(other).contains("the time domain silicon instead of instructions"));
    }

    #[test]
    fn outcome_says_why_the_guest_lacked_the_test_driver() {
        let plan = plan("lab:bare");
        let warnings = |no_driver: Option<&str>| {
            let answer = Answer { no_driver: no_driver.map(str::to_owned), ..answer(&plan) };
            let outcome = answer.outcome(&Prepared::of(&plan).unwrap()).unwrap();
            outcome.record.warnings
        };
        let skipped =
            Warning::new(WarningCode::Skipped, "the test driver was left out: no headers");
        assert_eq!(warnings(Some("no headers")), [skipped]);
        assert!(warnings(None).is_empty());
    }
}
