//! Studies on other targets: the kernels that cells model, and whether a machine runs one of them.

use super::StudyFile;
use latlab_core::machine::Machine;
use latlab_lab::arch::Arch;
use latlab_lab::kernel::{self, Source};
use latlab_lab::profile::{self, Profile};
use latlab_part::failure::{Failure, Result};

/// Repetitions of each cell on another target. They take turns with the repetitions of other cells,
/// so that the state of the machine is the same for all. `compare` needs this many.
const REPETITIONS: u32 = 6;

/// Where a profile sets how a `PREEMPT_RT` kernel preempts `SCHED_OTHER` tasks.
const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";

/// The kernel that a cell models, as far as a machine without guests can run it: its properties in
/// words, in the order of [`properties`]. None where its profile does not determine one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn([Option<String>; 6]);

impl StandIn {
    fn of(profile: &Profile) -> StandIn {
        let has = |wanted: &str| profile.cmdline.split_whitespace().any(|word| word == wanted);
        let mut parameters = profile.cmdline.split_whitespace();
        let given = parameters.find_map(|parameter| parameter.strip_prefix("preempt="));
        let preempt = given.or(match &profile.kernel {
            Source::Build(name) if name == "monolithic" => Some("none"),
            Source::Build(name) if name == "preemptible" => Some("full"),
            Source::Package(name) if name.contains("-rt-") => Some("rt"),
            _ => None,
        });
        StandIn([
            release_of(profile),
            preempt.map(model),
            profile.files.get(PREEMPT).map(|ordinary| preemption_of_ordinary_tasks(ordinary)),
            Some(timers(has("highres=off"))),
            Some(handlers(has("threadirqs") || preempt == Some("rt"))),
            Some(points(has("preemption_points=on"))),
        ])
    }

    /// Refuses a machine that runs another kind of kernel.
    pub fn check(&self, machine: &Machine) -> Result<()> {
        let mut properties = self.0.iter().zip(properties(machine));
        let other = properties.find_map(|(wanted, here)| {
            let wanted = wanted.as_ref().filter(|wanted| **wanted != here)?;
            Some(format!("it is a kernel with {wanted}, and here is one with {here}"))
        });
        other.map_or(Ok(()), |why| Err(Failure::other_kernel(why)))
    }
}

/// The properties of a machine's kernel.
fn properties(machine: &Machine) -> [String; 6] {
    let flag = |name: &str| machine.boot_parameter(name).is_some();
    let preempt = machine.preempt.as_deref().unwrap_or("unknown");
    let (major, minor) = machine.kernel_version().unwrap_or_default();
    [
        release(&format!("{major}.{minor}"), Arch::own().debian),
        model(preempt),
        // A kernel without lazy preemption does not show it.
        preemption_of_ordinary_tasks(machine.preempt_ordinary.as_deref().unwrap_or("full")),
        timers(machine.timer_resolution_ns.is_some_and(|resolution| resolution > 1)),
        handlers(flag("threadirqs") || preempt == "rt"),
        points(machine.boot_parameter("preemption_points") == Some("on")),
    ]
}

/// The release that a profile stands for, if it does. An image of the user's can't be recognized on
/// another machine.
fn release_of(profile: &Profile) -> Option<String> {
    match &profile.kernel {
        Source::Package(name) if profile.release => {
            let series = name.strip_prefix("linux-image-")?.split('-').next()?;
            Some(release(series, Arch::of_package(name).debian))
        }
        Source::Image(_) | Source::Added(_) => Some("an image of its own".to_owned()),
        Source::Package(_) | Source::Build(_) => None,
    }
}

fn release(series: &str, arch: &str) -> String {
    format!("the release {series} for {arch}")
}

fn model(preempt: &str) -> String {
    format!("preempt={preempt}")
}

fn preemption_of_ordinary_tasks(model: &str) -> String {
    format!("{model} preemption of ordinary tasks")
}

fn timers(ticks: bool) -> String {
    let timers = if ticks { "timers at ticks" } else { "high-resolution timers" };
    timers.to_owned()
}

fn handlers(threaded: bool) -> String {
    let handlers = if threaded { "threaded interrupts" } else { "interrupts without threads" };
    handlers.to_owned()
}

fn points(on: bool) -> String {
    let points = if on { "latlab's preemption points" } else { "no preemption points of latlab" };
    points.to_owned()
}

impl StudyFile {
    /// Moves all cells to another target: to `native` or `ssh:HOST`, which run one kernel, or to
    /// `vm:`, where each keeps its profile. Cells are repeated, and take turns. The `why` of a
    /// claim was found on the study's own targets: it begins with these words once they are others.
    pub fn move_to(&mut self, target: &str) -> Result<()> {
        let to_guests = target == "vm:";
        if !to_guests && target != "native" && !target.starts_with("ssh:") {
            return Err(Failure::failed(format!(
                "--on {target}: a study can be moved to native, ssh:HOST, or vm: (each cell's own \
                 profile in wall-clock time)"
            )));
        }
        self.study.moved_to = Some(target.to_owned());
        let mut is_moved = false;
        for cell in &mut self.study.cells {
            let terms = &mut cell.terms;
            terms.repeat = terms.repeat.max(Some(REPETITIONS));
            let Some(on) = &mut terms.on else { continue };
            let profile = on.text.strip_prefix("lab:").or(on.text.strip_prefix("vm:"));
            let Some(profile) = profile.map(str::to_owned) else {
                if on.text != target {
                    let text = &on.text;
                    return Err(Failure::failed(format!(
                        "--on {target}: the cell {} is for {text}, which is no profile",
                        cell.label
                    )));
                }
                continue;
            };
            if to_guests {
                let moved = format!("vm:{profile}");
                is_moved |= on.text != moved;
                on.text = moved;
            } else {
                is_moved = true;
                let profile = profile::find(&profile, &kernel::added()?)?;
                self.stand_ins.push(StandIn::of(&profile));
                target.clone_into(&mut on.text);
            }
        }
        if is_moved {
            let explained =
                self.study.claims.iter_mut().filter(|claim| !claim.why.is_empty() && !claim.gone);
            explained.for_each(|claim| claim.why.insert_str(0, "on the study's own targets: "));
        }
        match self.stand_ins.len() {
            0 => Ok(()),
            number if number == self.study.cells.len() => Ok(()),
            _ => Err(Failure::failed(format!("--on {target}: not all cells have a profile"))),
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

    /// The kernel of a machine with this release and preemption model.
    fn machine(kernel: &str, preempt: &str, cmdline: &str) -> Machine {
        Machine {
            kernel: kernel.to_owned(),
            preempt: Some(preempt.to_owned()),
            cmdline: cmdline.to_owned(),
            timer_resolution_ns: Some(1),
            ..Machine::default()
        }
    }

    fn fits(profile: &str, machine: &Machine) -> bool {
        StandIn::of(&profile::find(profile, &[]).unwrap()).check(machine).is_ok()
    }

    #[test]
    fn one_kernel_does_not_stand_for_several() {
        let host = Arch::own().debian;
        let plain = machine("6.12.117-x", "voluntary", "");
        let of_host = |name: &str| format!("{name}@{host}");
        assert!(fits(&of_host("v6.12"), &plain));
        assert!(!fits(&of_host("v6.1"), &plain) && !fits(&of_host("v6.12-rt"), &plain));
        let other = if host == "amd64" { "arm64" } else { "amd64" };
        assert!(!fits(&format!("v6.12@{other}"), &plain));
        let full = machine("6.12.117-x", "full", "");
        assert!(fits("lock-keeping", &full) && fits("preemptible-hr", &full));
        assert!(!fits("lock-breaking", &full) && !fits("threadirqs", &full));
        let threaded = machine("6.12.117-x", "full", "quiet threadirqs");
        assert!(fits("threadirqs", &threaded) && !fits("preemptible-hr", &threaded));
        let points = machine("6.12.117-preemptible", "full", "preemption_points=on");
        assert!(fits("lock-breaking", &points) && !fits("lock-keeping", &points));
        let rt = machine("6.18.1", "rt", "");
        assert!(fits("rt", &rt) && !fits("rt-lazy", &rt));
        let lazy = Machine { preempt_ordinary: Some("lazy".to_owned()), ..rt };
        assert!(!fits("rt", &lazy) && fits("rt-lazy", &lazy));
    }

    #[test]
    fn cell_of_another_machine_is_not_moved() {
        let text = "title = 'T'\npaper = 'P'\nredoes = 'x'\n\
            plan = { probes = ['cyclic'], on = 'native', for = '1s' }\n\
            axis = [{ name = 'host', each = [{ label = 'a' }] }]\n\
            figure = [{ name = 'worst', probe = 'cyclic', take = 'max' }]\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        latlab_sys::file::write_atomically(&path, text.as_bytes()).unwrap();
        let mut file = study::find(path.to_str().unwrap()).unwrap();
        file.move_to("native").unwrap();
        for target in ["ssh:host", "vm:"] {
            let refused = file.move_to(target).unwrap_err().to_string();
            assert!(refused.contains("the cell a is for native"), "{refused}");
        }
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

    #[test]
    fn cause_of_a_claim_that_differs_names_where_it_was_found() {
        let own = study::find("rabbits-latency").unwrap();
        let mut moved = study::find("rabbits-latency").unwrap();
        moved.move_to("vm:").unwrap();
        let causes = own.study.claims.iter().zip(&moved.study.claims);
        let known: Vec<_> = causes.filter(|(own, _)| !own.why.is_empty() && !own.gone).collect();
        assert!(!known.is_empty());
        for (own, moved) in known {
            assert_eq!(moved.why, format!("on the study's own targets: {}", own.why));
        }
    }
}
