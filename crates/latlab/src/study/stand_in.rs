//! Studies on other targets: the kernels that cells model, and whether a machine runs one of them.

use super::StudyFile;
use crate::failure::{Failure, Result};
use crate::lab::kernel::{self, Source};
use crate::lab::profile::{self, Profile};
use latlab_core::machine::Machine;

/// Repetitions of each cell on another target. They take turns with those of the other cells, so
/// that the state of the machine is the same for all; compare needs as many.
const REPETITIONS: u32 = 6;

/// The kernel that a cell models, as far as a machine without guests can run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StandIn {
    /// Its preemption model, as machines report it; none if the profile does not determine it.
    preempt: Option<String>,
    /// Whether timers expire only at ticks.
    ticks: bool,
}

impl StandIn {
    fn of(profile: &Profile) -> StandIn {
        let parameters = || profile.cmdline.split_whitespace();
        let given = parameters().find_map(|parameter| parameter.strip_prefix("preempt="));
        let preempt = given.or(match &profile.kernel {
            Source::Build(name) if name == "monolithic" => Some("none"),
            Source::Build(name) if name == "preemptible" => Some("full"),
            Source::Package(name) if name.contains("-rt-") => Some("rt"),
            _ => None,
        });
        let ticks = parameters().any(|parameter| parameter == "highres=off");
        StandIn { preempt: preempt.map(str::to_owned), ticks }
    }

    /// Refuses a machine that runs another kind of kernel.
    pub(crate) fn check(&self, machine: &Machine) -> Result<()> {
        let ticks = machine.timer_resolution_ns.is_some_and(|resolution| resolution > 1);
        let same = self.preempt.is_none() || self.preempt == machine.preempt;
        if same && self.ticks == ticks {
            return Ok(());
        }
        let (here, there) = (words(machine.preempt.as_deref(), ticks), self.words());
        Err(Failure::OtherKernel(format!(
            "it is a kernel with {there}, and here is one with {here}"
        )))
    }

    fn words(&self) -> String {
        words(self.preempt.as_deref(), self.ticks)
    }
}

fn words(preempt: Option<&str>, ticks: bool) -> String {
    let timers = if ticks { "timers at ticks" } else { "high-resolution timers" };
    format!("preempt={}, {timers}", preempt.unwrap_or("unknown"))
}

impl StudyFile {
    /// Moves all cells to another target: to `native` or `ssh:HOST`, which run one kernel, or to
    /// `vm:`, where each keeps its profile. Cells are repeated, and take turns.
    pub(crate) fn move_to(&mut self, target: &str) -> Result<()> {
        let to_guests = target == "vm:";
        if !to_guests && target != "native" && !target.starts_with("ssh:") {
            return Err(Failure::Failed(format!(
                "--on {target}: a study can be moved to native, ssh:HOST, or vm: (each cell's own \
                 profile in wall-clock time)"
            )));
        }
        for cell in &mut self.study.cells {
            let terms = &mut cell.terms;
            terms.repeat = terms.repeat.max(Some(REPETITIONS));
            let Some(on) = &mut terms.on else { continue };
            let profile = on.text.strip_prefix("lab:").or(on.text.strip_prefix("vm:"));
            let Some(profile) = profile.map(str::to_owned) else { continue };
            if to_guests {
                on.text = format!("vm:{profile}");
            } else {
                let profile = profile::find(&profile, &kernel::added()?)?;
                self.stand_ins.push(StandIn::of(&profile));
                target.clone_into(&mut on.text);
            }
        }
        match self.stand_ins.len() {
            0 => Ok(()),
            number if number == self.study.cells.len() => Ok(()),
            _ => Err(Failure::Failed(format!("--on {target}: not all cells have a profile"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study;

    #[test]
    fn cells_on_a_machine_need_its_kind_of_kernel() {
        let mut file = study::find("quick").unwrap();
        file.move_to("native").unwrap();
        let machine = Machine {
            preempt: Some("rt".to_owned()),
            timer_resolution_ns: Some(1),
            ..Machine::default()
        };
        let fits = |one: &StandIn| one.check(&machine).is_ok();
        let fitting: Vec<bool> = file.stand_ins.iter().map(fits).collect();
        assert_eq!(fitting, [false, false, false, false, true, true]);
        let plans = file.plans().unwrap();
        assert!(plans.iter().all(|all| all.len() == 6 && all[0].target == "native"));
        assert_eq!(plans[0], plans[2], "on one kernel, cells that differ in the kernel are equal");
        let refused = file.stand_ins[0].check(&machine).unwrap_err().to_string();
        assert!(refused.contains("preempt=none"), "{refused}");
    }

    #[test]
    fn cells_in_guests_keep_their_kernels() {
        let mut file = study::find("quick").unwrap();
        file.move_to("vm:").unwrap();
        let targets: Vec<String> =
            file.plans().unwrap().iter().map(|plans| plans[0].target.clone()).collect();
        assert_eq!(targets[0], "vm:utime");
        assert!(file.stand_ins.is_empty());
        let refused = file.move_to("lab:rt").unwrap_err().to_string();
        assert!(refused.starts_with("--on lab:rt: a study can be moved to native"), "{refused}");
    }
}
