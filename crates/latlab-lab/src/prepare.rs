//! Preparation of the cell for a plan or a program: profile, kernel, test driver and calibration.

use super::cells::ask;
use super::guest::{self, Cell, GuestTime, Job, Plugin, Program, calibration};
use super::kernel::{self, Kernel};
use super::profile::{self, Profile};
use latlab_measure::engine::Prepared;
use latlab_measure::message::{Calibration, Message};
use latlab_measure::session::Session;
use latlab_part::failure::{Failure, FailureKind, Result};
use latlab_part::part::needs::Needs;
use latlab_part::progress::Progress;
use std::path::PathBuf;

/// The cell that carries out a plan.
pub(super) fn plan(plan: &Prepared, time: GuestTime, session: &mut Session<'_>) -> Result<Cell> {
    let (target, needs) = (&plan.plan().target, plan.needs());
    let programs = needs.commands.iter().map(|words| Program::of_command(words, &plan.plan().with));
    let programs = programs.collect::<Result<Vec<_>>>()?;
    let job = Job::Run(Box::new(plan.plan().clone()));
    let cell = cell(target, time, job, needs, session)?;
    let cell = programs.iter().try_fold(cell, with_program)?;
    let plugin = match time {
        GuestTime::Instructions if cell.needs.models => Some(models(&cell, session)?),
        _ => None,
    };
    Ok(Cell { expected: plan.duration(), plugin, ..cell })
}

/// The plugin that counts the misses of modelled caches and TLBs.
fn models(cell: &Cell, session: &mut Session<'_>) -> Result<Plugin> {
    let why = "caches and TLBs are modelled for one CPU only";
    check_plugin(&cell.target, &cell.profile, &cell.kernel, why, "")?;
    Ok(Plugin {
        library: plugin(session)?,
        misses: true,
        samples: vec![],
        faults: vec![],
        preempt_count: None,
        sections: None,
    })
}

/// The library of the plugin.
pub(super) fn plugin(session: &mut Session<'_>) -> Result<PathBuf> {
    kernel::plugin(&mut Fetching::new(session))
}

/// Refuses guests whose instructions the plugin does not know (`remedy` follows), and guests with
/// several CPUs, for the reason `one`.
pub(super) fn check_plugin(
    target: &str,
    profile: &Profile,
    kernel: &Kernel,
    one: &str,
    remedy: &str,
) -> Result<()> {
    if !kernel.arch.has_microscope {
        let why = format!("the plugin does not know the instructions of {}", kernel.arch.title);
        return Err(Failure::unsupported(format!("{target}: {why}{remedy}")));
    }
    let cpus = profile.cpus;
    if cpus == 1 {
        return Ok(());
    }
    let why = format!("its guest has {cpus} CPUs, and {one}: use a profile with cpus = 1");
    Err(Failure::unsupported(format!("{target}: {why}")))
}

/// The cell that runs latlab with these words.
pub(super) fn command(
    target: &str,
    words: Vec<String>,
    time: GuestTime,
    session: &mut Session<'_>,
) -> Result<Cell> {
    cell(target, time, Job::command(words), Needs::default(), session)
}

/// The cell that starts a program.
pub(super) fn program(
    target: &str,
    program: &Program,
    time: GuestTime,
    session: &mut Session<'_>,
) -> Result<Cell> {
    let cell = cell(target, time, program.job(), Needs::default(), session)?;
    Ok(Cell { expected: program.expected(), ..with_program(cell, program)? })
}

/// The cell with the files that a program needs.
fn with_program(cell: Cell, program: &Program) -> Result<Cell> {
    let files = program.files(cell.kernel.arch, |named| cell.check_files(named))?;
    let links = program.links();
    // Libraries, too, may lie anywhere.
    files.iter().chain(&links).try_for_each(|(place, _)| cell.check_place(place))?;
    let mut all = (cell.files.clone(), cell.links.clone());
    all.0.extend(files);
    all.1.extend(links);
    for paths in [&mut all.0, &mut all.1] {
        paths.sort();
        paths.dedup();
    }
    Ok(Cell { files: all.0, links: all.1, ..cell })
}

fn cell(
    target: &str,
    time: GuestTime,
    job: Job,
    needs: Needs,
    session: &mut Session<'_>,
) -> Result<Cell> {
    let (profile, kernel) = kernel(target, session)?;
    let (driver, no_driver) = driver(&profile, &kernel, &job, &needs, session)?;
    let timer = match time {
        GuestTime::Instructions => calibration(target, &kernel, session)?.apic_timer,
        GuestTime::Wall(_) => None,
    };
    let cell = Cell::of(target, profile, kernel, time, job);
    Ok(Cell { timer, needs, driver, no_driver, ..cell })
}

/// The profile that `target` names, and its kernel.
pub(super) fn kernel(target: &str, session: &mut Session<'_>) -> Result<(Profile, Kernel)> {
    session.check_not_ended(target)?;
    let (kind, name) = target.split_once(':').unwrap_or((target, ""));
    if name.is_empty() {
        let why = format!("{target} names no profile: write {kind}:NAME (latlab list profiles)");
        return Err(Failure::failed(why));
    }
    let profile = profile::find(name, &kernel::added()?)?;
    if let Some(arch) = profile.arch {
        // Before its kernel is fetched.
        guest::check_program(arch.0)?;
    }
    session.watch.note("");
    let kernel = kernel::ready(&profile.kernel, &mut Fetching::new(session))?;
    if let Some(wanted) = profile.arch.map(|arch| arch.0).filter(|arch| *arch != kernel.arch) {
        let (name, of, other) = (&kernel.name, wanted.title, kernel.arch.title);
        let why = format!("{target}: the profile is for {of}, and its kernel {name} for {other}");
        return Err(Failure::failed(why));
    }
    Ok((profile, kernel))
}

/// Progress of a fetch or a build. It also informs the session when the user ends it.
struct Fetching<'a> {
    progress: &'a mut dyn Progress,
    ended: &'a mut bool,
}

impl<'a> Fetching<'a> {
    fn new(session: &'a mut Session<'_>) -> Fetching<'a> {
        Fetching { progress: &mut *session.progress, ended: &mut session.ended }
    }
}

impl Progress for Fetching<'_> {
    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }
    fn at(&mut self, done: u64, total: u64) {
        self.progress.at(done, total);
    }
    fn pause(&mut self) -> bool {
        *self.ended |= self.progress.pause();
        *self.ended
    }
}

/// The test driver where the job needs it; where parts may be left out, otherwise the reason why
/// it is missing.
fn driver(
    profile: &Profile,
    kernel: &Kernel,
    job: &Job,
    needs: &Needs,
    session: &mut Session<'_>,
) -> Result<(Option<PathBuf>, Option<String>)> {
    if !guest::is_driver_needed(profile, job, needs) {
        return Ok((None, None));
    }
    match kernel::driver(kernel, &mut Fetching::new(session)) {
        Err(failure) if failure.kind == FailureKind::Unsupported && job.may_lack() => {
            Ok((None, Some(failure.text)))
        }
        built => built.map(|driver| (Some(driver), None)),
    }
}

/// The calibration of a kernel; a first boot measures it where none is kept.
fn calibration(target: &str, kernel: &Kernel, session: &mut Session<'_>) -> Result<Calibration> {
    if let Some(calibration) = calibration::kept(kernel) {
        return Ok(calibration);
    }
    session.watch.note(&format!("{} boots for the first time", kernel.name));
    let first = Cell::plain(target, kernel.clone(), GuestTime::Instructions, Job::Calibrate);
    let Message::Calibration(calibration) = ask(first, session)? else {
        return Ok(Calibration::default());
    };
    calibration::keep(calibration, kernel);
    Ok(calibration)
}
