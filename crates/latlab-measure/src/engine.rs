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

use crate::explain;
use crate::probe::Probe;
use crate::rig::Rig;
use crate::scan;
use environment::Environment;
use latlab_adapt as adapt;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::TimeDomain;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part::Built;
use latlab_part::progress::Watch;
use latlab_sys::guard::Guard;
use latlab_sys::root::Root;
use latlab_sys::signal::Signals;
use latlab_sys::{clock, cpu, machine};
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
    let plan = &plan.on_cpus(cpus(&plan.plan().cpus, &online)?);
    place::check(plan.plan(), &online)?;
    let mut warnings = Vec::new();
    // The plugin's cache model covers a whole guest, not one program in it.
    let is_job = time_domain == TimeDomain::Instructions && machine::time_domain() != time_domain;
    if plan.needs().models && !is_job {
        let text = "caches and TLBs are modelled in the laboratory only (lab:PROFILE)";
        warnings.push(Warning::new("not-available", text));
    }
    let probes = usable::probes(plan, &mut warnings)?;
    check(plan)?;
    let started = clock::wall_clock();
    let everywhere = cpu::allowed().context("the CPUs can't be listed")?;
    let _housekeeping = Housekeeping::move_to(&plan.plan().housekeeping)?;
    let mended = Guard::recover(&Root::default());
    warnings.extend(mended.iter().map(|text| Warning::new("mended", text)));
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

/// Refuses scans, explaining and mechanisms that can't work here, before anything is changed.
fn check(plan: &Prepared) -> Result<()> {
    plan.scans.iter().try_for_each(|(scan, call)| scan::check(scan, &**call))?;
    plan.plan().explain.iter().try_for_each(explain::check)?;
    adapt::check(&plan.plan().adapt, &plan.plan().settings)
}

/// The requested CPUs, else all that are online and that this process may use.
fn cpus(wanted: &CpuList, online: &CpuList) -> Result<CpuList> {
    if !wanted.is_empty() {
        return check_cpus(wanted, online).map(|()| wanted.clone());
    }
    let allowed = cpu::allowed().context("the CPUs can't be listed")?;
    Ok(allowed.iter().filter(|cpu| online.is_empty() || online.contains(*cpu)).collect())
}

/// Refuses CPUs that are not online.
pub fn check_cpus(wanted: &CpuList, online: &CpuList) -> Result<()> {
    let missing = wanted.minus(online);
    if wanted.is_empty() {
        return Err(Failure::Failed("--cpus names no CPU".to_owned()));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("CPU {missing} is not online: this machine has {online}")))
}
