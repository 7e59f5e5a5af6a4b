//! The time of a guest: the unit that its clock counts.

use crate::session::Accel;
use latlab_core::machine::TimeDomain;

/// The environment variable of programs in a guest that has the word of its [`TimeDomain`].
pub(super) const VARIABLE: &str = "LATLAB_TIME_DOMAIN";

/// The time of this machine, which may be a guest that runs latlab as a program.
pub(crate) fn time_domain() -> TimeDomain {
    let word = std::env::var(VARIABLE).unwrap_or_default();
    let guests = [TimeDomain::Instructions, TimeDomain::Virtualized];
    guests.into_iter().find(|domain| domain.word() == word).unwrap_or_default()
}

/// The unit that the clock of a guest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestTime {
    /// Executed instructions, one nanosecond each; idle time is skipped.
    Instructions,
    /// Wall-clock time of the host.
    Wall(Accel),
}

impl GuestTime {
    pub(super) fn domain(self) -> TimeDomain {
        match self {
            GuestTime::Instructions => TimeDomain::Instructions,
            GuestTime::Wall(_) => TimeDomain::Virtualized,
        }
    }
}
