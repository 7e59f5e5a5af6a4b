//! Records of a run that has not ended, in case it never does.

use super::environment::Environment;
use super::results::{TOOL, distributions, with_causes};
use crate::rig::Keeping;
use latlab_core::plan::Plan;
use latlab_core::record::{Record, Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_sys::clock;

/// Makes records of the results so far. `started` is the wall-clock time of the start of the run.
pub(super) fn keeping<'a>(
    plan: &'a Plan,
    started: Nanos,
    environment: &Environment,
) -> Keeping<'a> {
    let (machine, loads, began) =
        (environment.machine.clone(), environment.load_names(), clock::now());
    Keeping::with(move |measured, explanations| {
        let text = format!(
            "the run had not ended when this was written, {} after it began: the work of loads and \
             the changes of knobs are missing",
            clock::now() - began
        );
        let mut warnings = vec![Warning::new(WarningCode::Unfinished, text)];
        let (series, worst) = distributions(measured, &loads, &mut warnings);
        let (worst, explained) = with_causes(worst, explanations.cloned());
        let record = Record::new(TOOL, started, plan.clone(), machine.clone());
        Record { series, worst, explained, warnings, ..record }
    })
}
