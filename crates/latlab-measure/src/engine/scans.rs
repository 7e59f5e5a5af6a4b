//! The scans of a plan, one after another.

use super::Prepared;
use crate::scan::{self, Scanned};
use latlab_part::failure::{Failure, Result};
use latlab_part::progress::Watch;
use latlab_sys::signal::Signals;

/// Scans each call on the last of the CPUs: the first handles most of the interrupts. A failure
/// after something was measured is returned along with the results, not instead of them.
pub(super) fn run(
    plan: &Prepared,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<(Vec<Scanned>, Option<Failure>)> {
    let cpu = plan.plan().cpus.iter().last().unwrap_or_default();
    let mut scanned: Vec<Scanned> = Vec::new();
    for (scan, call) in &plan.scans {
        match scan::run(scan, &**call, cpu, signals, watch) {
            Ok(one) if one.scan.points.is_empty() => {
                let Some(last) = scanned.last_mut() else {
                    let why = "ended before anything was measured";
                    return Err(Failure::cut_short(why));
                };
                last.interrupted = true;
            }
            Ok(mut one) => {
                let failure = one.failure.take();
                scanned.push(one);
                if failure.is_some() {
                    return Ok((scanned, failure));
                }
            }
            Err(failure) if scanned.is_empty() => return Err(failure),
            Err(failure) => return Ok((scanned, Some(failure))),
        }
        if scanned.last().is_some_and(|last| last.interrupted) {
            break;
        }
    }
    Ok((scanned, None))
}
