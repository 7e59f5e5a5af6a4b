//! The outcome of a run: its record, and whether the run was what its plan asked for.

use latlab_core::record::{Record, Warning};
use latlab_part::failure::{Failure, FailureKind, Result};

/// The outcome of a run that has a record.
pub struct Outcome {
    /// What was measured.
    pub record: Record,
    /// What failed after something had been measured, or else the limit that was exceeded.
    pub verdict: Option<Failure>,
}

impl Outcome {
    /// Returns why the command does not succeed: the verdict, or else that the run was ended early.
    pub fn failure(&self) -> Option<Failure> {
        self.verdict.clone().or_else(|| self.cut_short())
    }

    /// Returns the warnings of the record, except for the warning that repeats the failure.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        let failure = self.failure().map(|failure| failure.to_string());
        self.record.warnings.iter().filter(move |warning| failure.as_ref() != Some(&warning.text))
    }

    /// Fails unless the run measured all that its plan asks for, under all of its loads, and restored
    /// the machine. A limit that was exceeded is a result.
    pub fn check_whole(&self) -> Result<()> {
        match &self.verdict {
            Some(failure) if failure.kind != FailureKind::Worse => Err(failure.clone()),
            _ => self.cut_short().or_else(|| self.lost_part()).map_or(Ok(()), Err),
        }
    }

    /// Returns the record, if the outcome passes [`Outcome::check_whole`].
    pub fn whole(self) -> Result<Record> {
        self.check_whole().map(|()| self.record)
    }

    fn cut_short(&self) -> Option<Failure> {
        self.record.cut_short().map(|warning| Failure::cut_short(warning.text.clone()))
    }

    fn lost_part(&self) -> Option<Failure> {
        self.record.lost_part().map(|warning| Failure::failed(warning.text.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::cpulist::CpuList;
    use latlab_core::machine::Machine;
    use latlab_core::plan::{Length, Plan};
    use latlab_core::record::WarningCode::{self, CpuOffline, FailedAbove, Interrupted, LoadEnded};
    use latlab_core::time::Nanos;

    /// An outcome with these warnings, each a code and a text.
    fn outcome(warnings: &[(WarningCode, &str)], verdict: Option<Failure>) -> Outcome {
        let plan = Plan::bare("native", CpuList::default(), Length::Count(1));
        let warnings = warnings.iter().map(|(code, text)| Warning::new(*code, *text)).collect();
        let record = Record::new("latlab", Nanos(0), plan, Machine::default());
        Outcome { record: Record { warnings, ..record }, verdict }
    }

    fn worse() -> Failure {
        Failure::worse("above 1 us")
    }

    #[test]
    fn run_that_failed_or_was_ended_early_is_not_whole() {
        let why = |one: Outcome| one.whole().map(drop).map_err(|failure| failure.exit_code());
        let code = |code: u8| Err(std::process::ExitCode::from(code));
        let ended = [(Interrupted, "ended early")];
        assert_eq!(why(outcome(&[], None)), Ok(()));
        assert_eq!(why(outcome(&[], Some(worse()))), Ok(()), "an exceeded limit is a result");
        assert_eq!(why(outcome(&ended, None)), code(4));
        assert_eq!(why(outcome(&ended, Some(worse()))), code(4));
        let failed = || Some(Failure::failed("a probe failed"));
        assert_eq!(why(outcome(&[], failed())), code(2));
        let unrestored = Failure::not_restored(&["ksm (EIO)".to_owned()]);
        assert_eq!(why(outcome(&ended, unrestored)), code(2));
    }

    #[test]
    fn run_that_lost_a_load_or_a_cpu_is_a_result_but_not_whole() {
        for lost in [(LoadEnded, "the load fork ended"), (CpuOffline, "CPU 1 went offline")] {
            let run = outcome(&[lost], None);
            assert_eq!(run.failure(), None);
            assert_eq!(run.check_whole(), Err(Failure::failed(lost.1)));
            let ended = outcome(&[lost, (Interrupted, "ended early")], None);
            assert_eq!(ended.check_whole(), Err(Failure::cut_short("ended early")));
        }
    }

    #[test]
    fn only_the_warning_that_is_the_failure_is_left_out() {
        let all = [(FailedAbove, "above 1 us"), (Interrupted, "ended early")];
        let texts = |verdict| {
            let outcome = outcome(&all, verdict);
            outcome.warnings().map(|warning| warning.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(texts(Some(worse())), ["ended early"]);
        assert_eq!(texts(None), ["above 1 us"]);
        let unrestored = Failure::not_restored(&["ksm (EIO)".to_owned()]);
        assert_eq!(texts(unrestored), ["above 1 us", "ended early"]);
    }
}
