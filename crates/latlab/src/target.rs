//! Targets: machines that carry out plans.

pub mod doctor;
mod lab;
mod native;
pub mod ssh;
mod vm;

use latlab_core::machine::Machine;
use latlab_core::suggest;
use latlab_lab::{Program, program_digest};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::{Output, Session};
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};

/// Every target, in the order `latlab list targets` shows them.
pub static TARGETS: &[Entry] =
    &[entry(&native::Native), entry(&lab::Lab), entry(&vm::Vm), entry(&ssh::Ssh)];

/// One line of the table of targets.
pub struct Entry {
    /// Its name and summary.
    pub about: About,
    target: &'static dyn Target,
}

const fn entry<T: Target + Describe>(target: &'static T) -> Entry {
    Entry { about: T::ABOUT, target }
}

/// A machine that carries out plans: this one, a guest, another one over ssh.
pub trait Target: Sync {
    /// Carries out `plans`, all for targets of this kind. Returns one outcome for each, in order.
    fn run(&self, plans: &[Prepared], session: &mut Session<'_>) -> Vec<Result<Outcome>>;

    /// The digest of everything that a record of `plan` depends on besides the plan; a record with
    /// another fingerprint is outdated. By default it is the digest of this program, because
    /// latlab does not choose the kernel.
    fn fingerprint(&self, _plan: &Prepared, _session: &mut Session<'_>) -> Result<String> {
        program_digest()
    }

    /// The kernel that it runs now. None if it boots the kernel that a plan names: the fingerprint
    /// covers that.
    fn running(&self, _name: &str, _session: &mut Session<'_>) -> Result<Option<Machine>> {
        Ok(None)
    }

    /// The state of the target `name`, which its own doctor reads.
    fn machine(&self, name: &str, session: &mut Session<'_>) -> Result<Machine> {
        doctor::ask(self, name, session)
    }

    /// Carries out `plan` and explains its late wake-ups: with the kernel's own tracing, unless the
    /// target has better means.
    fn explain(&self, plan: &Prepared, session: &mut Session<'_>) -> Result<Outcome> {
        let outcome = self.run(std::slice::from_ref(plan), session).pop();
        outcome.expect("one plan has one outcome")
    }

    /// Starts a program on the target `name`; `output` receives its output. Returns its exit code.
    fn exec(
        &self,
        name: &str,
        _program: &Program,
        _session: &mut Session<'_>,
        _output: &mut Output<'_>,
    ) -> Result<u8> {
        Err(Failure::unsupported(format!("{name} can't start programs: lab: and vm: targets can")))
    }

    /// Runs latlab on the target `name` with these words; `output` receives what it writes. Returns its
    /// exit code.
    fn command(
        &self,
        name: &str,
        _words: Vec<String>,
        _session: &mut Session<'_>,
        _output: &mut Output<'_>,
    ) -> Result<u8> {
        Err(Failure::unsupported(format!("{name} is this machine: leave --on out")))
    }
}

/// Carries out one plan after another: two at once would disturb each other.
fn in_turn(
    plans: &[Prepared],
    session: &mut Session<'_>,
    mut carry_out: impl FnMut(&Prepared, &mut Session<'_>) -> Result<Outcome>,
) -> Vec<Result<Outcome>> {
    let outcomes = plans.iter().enumerate().map(|(index, plan)| {
        session.check_not_ended(&plan.plan().target)?;
        let outcome = carry_out(plan, session);
        session.finished(index, &outcome);
        if plans.len() > 1 {
            session.watch.done(index + 1, plans.len());
        }
        outcome
    });
    outcomes.collect()
}

/// Returns the kind of a target: its name without the profile or host.
pub fn kind(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

/// The target of this name: `native`, `lab:PROFILE`, …
pub fn find(name: &str) -> Result<&'static dyn Target> {
    let kind = kind(name);
    let entry = TARGETS.iter().find(|entry| entry.about.name == kind);
    entry.map(|entry| entry.target).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|entry| entry.about.name).collect();
        let hint = suggest::hint(kind, &names);
        Failure::failed(format!("there is no target '{name}': {hint}"))
    })
}
