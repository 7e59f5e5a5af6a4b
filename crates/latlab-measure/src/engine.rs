//! The engine: carries out a plan on this machine. It is the only module that brings together
//! probes, loads, scans, explaining and adapting.

mod environment;
mod outcome;
mod place;
mod prepared;
mod probes;
mod results;
mod scans;
mod unfinished;
mod usable;

pub use outcome::Outcome;
pub use prepared::Prepared;
pub use usable::check_cpus;

use crate::probe::Probe;
use crate::rig::Rig;
use environment::Environment;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::TimeDomain;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Result};
use latlab_part::part::Built;
use latlab_part::progress::Watch;
use latlab_sys::guard::Guard;
use latlab_sys::root::Root;
use latlab_sys::signal::Signals;
use latlab_sys::{clock, cpu};
use place::Housekeeping;
use results::{Measured, Results};

/// Carries out `plan` on this machine, whose clock is of this kind. A plan that names no CPUs uses
/// all that are allowed.
pub fn run(
    plan: &Prepared,
    time_domain: TimeDomain,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<Outcome> {
    let online = cpu::online(&Root::default());
    let plan = &plan.on_cpus(usable::cpus(&plan.plan().cpus, &online)?);
    usable::check(plan, &online)?;
    let mut warnings = Vec::new();
    warnings.extend(usable::without_models(plan, time_domain));
    let probes = usable::probes(plan, &mut warnings)?;
    let started = clock::wall_clock();
    let everywhere = cpu::allowed().context("the CPUs can't be listed")?;
    let _housekeeping = Housekeeping::move_to(&plan.plan().housekeeping)?;
    let mended = Guard::recover(&Root::default());
    warnings.extend(mended.iter().map(|text| Warning::new(WarningCode::Mended, text)));
    // If there is no record, only the failure can report these sentences.
    let environment = Environment::set_up(plan, time_domain, signals, &mut warnings)
        .map_err(|failure| failure.followed_by(&mended))?;
    let measured = measure(plan, &probes, &environment, started, everywhere, signals, watch);
    let measured = match measured {
        Ok(measured) => measured,
        Err(failure) => return Err(environment.abandon(failure).followed_by(&mended)),
    };
    let aftermath = environment.restore();
    Ok(Results { started, warnings, measured, aftermath }.outcome(plan.plan()))
}

/// Runs the scans, then the probes. `everywhere` are the CPUs that this process could use when the
/// run started.
fn measure<'a>(
    plan: &'a Prepared,
    probes: &[Built<dyn Probe>],
    environment: &Environment,
    started: Nanos,
    everywhere: CpuList,
    signals: &'a Signals,
    watch: &'a mut dyn Watch,
) -> Result<Measured<'a>> {
    let member = place::join_cgroup(plan.plan())?;
    let (scanned, scan_failure) = scans::run(plan, signals, watch)?;
    let keeps = watch.keeps();
    let mut rig = Rig::new(plan.plan(), everywhere, signals, watch);
    rig.keeping = keeps.then(|| unfinished::keeping(plan.plan(), started, environment));
    let (probe_failure, explanations) =
        probes::run(plan.plan(), &environment.machine, probes, &mut rig)?;
    drop(member);
    let failure = scan_failure.or(probe_failure);
    Ok(Measured { scanned, rig, explanations, failure })
}
