//! `native`: this machine.

use super::{Target, in_turn};
use latlab_core::machine::Machine;
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::Session;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::machine;
use latlab_sys::root::Root;

pub(super) struct Native;

impl Describe for Native {
    const ABOUT: About = About { name: "native", summary: "this machine" };
}

impl Target for Native {
    fn run(&self, plans: &[Prepared], session: &mut Session<'_>) -> Vec<Result<Outcome>> {
        in_turn(plans, session, |plan, session| {
            (session.here)(plan, session.signals, session.watch)
        })
    }

    fn running(&self, name: &str, session: &mut Session<'_>) -> Result<Option<Machine>> {
        self.machine(name, session).map(Some)
    }

    fn machine(&self, _name: &str, _session: &mut Session<'_>) -> Result<Machine> {
        Ok(machine::read(&Root::default()))
    }
}
