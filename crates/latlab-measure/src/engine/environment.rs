//! The machine while a plan is carried out: knobs set, mechanisms active, loads running; all of it
//! is undone afterwards.

use super::Prepared;
use super::usable::{self, denied};
use crate::load::{Loads, Placed};
use crate::rig;
use latlab_adapt::{Adapted, Adapting};
use latlab_core::doctor;
use latlab_core::machine::{Machine, SETCAP, TimeDomain};
use latlab_core::plan::Plan;
use latlab_core::record::{Change, Warning, WarningCode, Work};
use latlab_part::failure::{Failure, Result};
use latlab_sys::guard::{Guard, Replaced, Unrestored};
use latlab_sys::machine::counters;
use latlab_sys::memory::{self, Locked};
use latlab_sys::root::Root;
use latlab_sys::signal::Signals;
use latlab_sys::{clock, machine};

/// The machine while a plan is carried out. Dropping it restores the machine.
pub(super) struct Environment {
    // Dropped in this order: loads end before knobs are restored, mechanisms last.
    workers: Loads,
    guard: Guard,
    adapting: Option<Adapting>,
    root: Root,
    pub(super) machine: Machine,
    loads: Vec<Placed>,
}

/// Results that are available once the machine is restored.
pub(super) struct Aftermath {
    pub(super) machine: Machine,
    /// The names of the loads.
    pub(super) loads: Vec<String>,
    pub(super) work: Vec<Work>,
    pub(super) changes: Vec<Change>,
    pub(super) warnings: Vec<Warning>,
    /// What could not be restored.
    pub(super) unrestored: Option<Failure>,
}

impl Environment {
    /// Sets the plan's knobs, reads the machine, and starts mechanisms and loads.
    pub(super) fn set_up(
        plan: &Prepared,
        time_domain: TimeDomain,
        signals: &Signals,
        warnings: &mut Vec<Warning>,
    ) -> Result<Environment> {
        let root = Root::default();
        let adapting = start_adapting(plan.plan())?;
        let mut guard = Guard::new(root.clone());
        match Begun::begin(plan, time_domain, signals, &root, &mut guard, warnings) {
            Ok(Begun { workers, machine, loads }) => {
                Ok(Environment { workers, guard, adapting, root, machine, loads })
            }
            Err(failure) => Err(failure.with_unrestored(undo(guard, adapting).unrestored)),
        }
    }

    /// The names of the loads.
    pub(super) fn load_names(&self) -> Vec<String> {
        self.loads.iter().map(|load| load.name().to_owned()).collect()
    }

    /// Restores the machine after this failure, and adds to it what could not be restored.
    pub(super) fn abandon(self, failure: Failure) -> Failure {
        let Environment { workers, guard, adapting, .. } = self;
        drop(workers);
        failure.with_unrestored(undo(guard, adapting).unrestored)
    }

    /// Ends loads and mechanisms and restores the knobs.
    pub(super) fn restore(self) -> Aftermath {
        memory::unlock_all();
        let loads = self.load_names();
        let (work, ended_early) = self.workers.stop();
        let counters = counters::read(&self.root, &self.machine);
        let happened = counters.disturbances_since(&self.machine.counters);
        let replaced = replaced(self.guard.replaced());
        let Undone { changes, warnings, unrestored } = undo(self.guard, self.adapting);
        let adapted = warnings.into_iter().map(|text| Warning::new(WarningCode::Adapt, text));
        let happened =
            happened.into_iter().map(|text| Warning::new(WarningCode::MachineDisturbed, text));
        Aftermath {
            machine: self.machine,
            loads,
            work,
            changes,
            warnings: adapted.chain(ended_early).chain(happened).chain(replaced).collect(),
            unrestored,
        }
    }
}

/// Warnings that the run did not have its settings all the time.
fn replaced(knobs: Vec<Replaced>) -> impl Iterator<Item = Warning> {
    knobs.into_iter().map(|Replaced { knob, set, path, now }| {
        let text = format!(
            "the run did not have {knob}={set} all the time: another program, or the kernel, has \
             changed {} to {now}",
            path.display()
        );
        Warning::new(WarningCode::SettingChanged, text)
    })
}

/// The changes, which are restored where that was possible.
struct Undone {
    changes: Vec<Change>,
    /// Warnings of the mechanisms.
    warnings: Vec<String>,
    unrestored: Option<Failure>,
}

/// Restores the knobs, then the mechanisms' changes.
fn undo(mut guard: Guard, adapting: Option<Adapting>) -> Undone {
    let mut changes = guard.restore();
    let adapted = adapting.map(Adapting::end);
    let complete = adapted.as_ref().is_none_or(|adapted| adapted.complete);
    let unrestored = unrestored(guard.unrestored(), complete);
    let Adapted { changes: its, warnings, .. } = adapted.unwrap_or_default();
    changes.extend(its);
    Undone { changes, warnings, unrestored }
}

/// The failure to restore these knobs or, unless `complete`, the mechanisms' changes.
fn unrestored(knobs: &[Unrestored], complete: bool) -> Option<Failure> {
    let knobs = knobs.iter().map(ToString::to_string);
    let adapted = (!complete).then(|| "what --adapt has changed".to_owned());
    let all: Vec<String> = knobs.chain(adapted).collect();
    Failure::not_restored(&all)
}

/// The part of an environment that may fail to start once something is changed.
struct Begun {
    workers: Loads,
    machine: Machine,
    loads: Vec<Placed>,
}

impl Begun {
    /// Sets the plan's knobs, reads the machine, and starts loads.
    fn begin(
        plan: &Prepared,
        time_domain: TimeDomain,
        signals: &Signals,
        root: &Root,
        guard: &mut Guard,
        warnings: &mut Vec<Warning>,
    ) -> Result<Begun> {
        set_knobs(plan.plan(), guard)?;
        let machine = Machine { time_domain, ..read_machine(root) };
        warnings.extend(hazards(&machine));
        warnings.extend(idle_states(&machine));
        let loads = usable::loads(plan, &machine, warnings)?;
        usable::guard_changes(guard, &loads)?;
        let workers = Loads::start(&loads, plan.plan().seed, signals)?;
        warnings.extend(lock_memory());
        clock::sleep_for(plan.plan().phase());
        Ok(Begun { workers, machine, loads })
    }
}

/// Lets the plan's mechanisms adapt the machine from now on.
fn start_adapting(plan: &Plan) -> Result<Option<Adapting>> {
    if plan.adapt.is_empty() {
        return Ok(None);
    }
    Adapting::start(&plan.adapt).map(Some)
}

fn set_knobs(plan: &Plan, guard: &mut Guard) -> Result<()> {
    for setting in &plan.settings {
        guard.set(&setting.knob, &setting.value, "asked for with --set").map_err(|e| denied(&e))?;
    }
    Ok(())
}

fn read_machine(root: &Root) -> Machine {
    Machine {
        clock_read_ns: clock::read_cost().0,
        record_ns: rig::record_cost().0,
        ..machine::read(root)
    }
}

/// A warning for every record of a system that is not configured for low latency, so that nobody
/// takes its figures for the kernel's.
fn hazards(machine: &Machine) -> Option<Warning> {
    let findings = doctor::diagnose(machine);
    let severe = findings.iter().filter(|finding| finding.severity.is_severe());
    let codes: Vec<&str> = severe.map(|finding| finding.code.as_str()).collect();
    (!codes.is_empty()).then(|| {
        let codes = codes.join(", ");
        Warning::new(
            WarningCode::Machine,
            format!("this system is not configured for low latency ({codes}): run latlab doctor"),
        )
    })
}

/// A warning that CPUs may enter idle states during the measurement, unlike during one by
/// cyclictest.
fn idle_states(machine: &Machine) -> Option<Warning> {
    // The shallowest states of drivers declare 1 us: a halt or WFI.
    let state = doctor::deepest_idle_state(machine).filter(|state| state.latency_us > 1)?;
    let (name, latency) = (&state.name, state.latency_us);
    Some(Warning::new(
        WarningCode::IdleStates,
        format!(
            "idle CPUs may enter {name} ({latency} us to leave it), which cyclictest prevents by \
             default: compare with --set cpu_dma_latency=0"
        ),
    ))
}

fn lock_memory() -> Option<Warning> {
    match memory::lock_all() {
        Ok(Locked::All) => None,
        Ok(Locked::Present) => Some(Warning::new(
            WarningCode::MemoryPartlyLocked,
            "RLIMIT_MEMLOCK allows locking present memory only; page faults are counted",
        )),
        Err(e) => Some(Warning::new(
            WarningCode::MemoryNotLocked,
            format!(
                "memory could not be locked ({e}), and page faults are counted: raise RLIMIT_MEMLOCK \
                 (ulimit -l), or give latlab CAP_IPC_LOCK: {SETCAP}"
            ),
        )),
    }
}
