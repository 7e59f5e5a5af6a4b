//! Rights: what a command does not need of the capabilities that latlab was started with is dropped.

use crate::failure::{Result, failed};
use latlab_core::plan::Plan;
use latlab_sys::capabilities::{self, Purpose};

/// For commands that measure or change this machine. They also fetch kernels.
pub(super) const HERE: &[Purpose] = &[Purpose::Files, Purpose::Packages, Purpose::Measuring];

/// For commands that work on other machines and in guests.
pub(super) const ELSEWHERE: &[Purpose] = &[Purpose::Files, Purpose::Packages];

/// Drops all capabilities but those for these purposes.
pub(super) fn keep(purposes: &[Purpose]) -> Result<()> {
    capabilities::keep(purposes).map_err(|e| failed("capabilities can't be dropped", e))
}

/// Drops what carrying out these plans does not need. A program that the user named keeps all.
pub(super) fn keep_for(plans: &[&Plan], is_native: bool) -> Result<()> {
    match is_native {
        true if plans.iter().any(|plan| plan.starts_programs()) => Ok(()),
        true => keep(HERE),
        false => keep(ELSEWHERE),
    }
}
