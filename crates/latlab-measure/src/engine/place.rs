//! The place of latlab itself while it measures: the CPUs of its other threads, and its control
//! group.

use latlab_core::cpulist::CpuList;
use latlab_core::plan::Plan;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::cgroup::{self, Member};
use latlab_sys::cpu;
use std::path::Path;

/// The calling thread on its housekeeping CPUs, with the threads that it starts. Dropping this moves
/// it back.
pub(super) struct Housekeeping {
    before: Option<CpuList>,
}

impl Housekeeping {
    /// Moves the calling thread to these CPUs. Without any it stays where it is.
    pub(super) fn move_to(cpus: &CpuList) -> Result<Housekeeping> {
        if cpus.is_empty() {
            return Ok(Housekeeping { before: None });
        }
        let refused = |e| failed(&format!("--housekeeping {cpus}"), e);
        let before = cpu::allowed().map_err(refused)?;
        cpu::pin(cpus).map_err(refused)?;
        Ok(Housekeeping { before: Some(before) })
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        // A CPU that has gone offline meanwhile stays out.
        let _ = self.before.as_ref().map(cpu::pin);
    }
}

/// Joins the plan's control group, if it has one. Loads have been started before and stay outside.
/// Dropping the result leaves it.
pub(super) fn join_cgroup(plan: &Plan) -> Result<Option<Member>> {
    let join = |folder: &String| {
        let why = |e| Failure::unsupported(format!("--cgroup {folder} can't be joined: {e}"));
        cgroup::join(Path::new(folder)).map_err(why)
    };
    plan.cgroup.as_ref().map(join).transpose()
}
