//! Drops the capabilities that latlab was started with and a command does not need.

use latlab_core::plan::Plan;
use latlab_part::failure::{Context as _, Result};
use latlab_sys::capabilities::{self, Purpose};

/// For commands that measure or change this machine only.
pub(super) const HERE: &[Purpose] = &[Purpose::Files, Purpose::Measuring];

/// For commands that work on other machines and in guests, whose kernels they fetch.
pub(super) const ELSEWHERE: &[Purpose] = &[Purpose::Files, Purpose::Packages];

/// For commands that do both.
pub(super) const EVERYWHERE: &[Purpose] = &[Purpose::Files, Purpose::Packages, Purpose::Measuring];

/// Drops all capabilities but those for these purposes.
pub(super) fn keep(purposes: &[Purpose]) -> Result<()> {
    capabilities::keep(purposes).context("capabilities can't be dropped")
}

/// Drops the capabilities that none of these plans needs. The flag says whether a plan runs on this
/// machine. If one does, and a plan starts a user's program, all are kept.
pub(super) fn keep_for(plans: &[(&Plan, bool)]) -> Result<()> {
    let here = plans.iter().filter(|(_, is_native)| *is_native).count();
    match here {
        0 => keep(ELSEWHERE),
        _ if plans.iter().any(|(plan, _)| plan.starts_programs()) => Ok(()),
        _ if here == plans.len() => keep(HERE),
        _ => keep(EVERYWHERE),
    }
}
