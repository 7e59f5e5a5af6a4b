//! Guests: real kernels in QEMU, each started for one job and gone when it is done.

mod archive;
mod cell;
mod debugger;
mod driver;
mod facts;
mod init;
mod known;
mod kvm;
mod laboratory;
mod library;
mod microscope;
mod module;
mod orders;
mod qemu;
mod symbols;

pub(crate) use cell::Program;
pub(crate) use facts::Facts;
pub(crate) use init::{is_init, serve};
pub(crate) use known::this_program;
pub(crate) use kvm::Accel;
pub(crate) use laboratory::{basis, exec, run};
pub(crate) use microscope::explain;

use latlab_core::machine::TimeDomain;

/// What the time of a guest is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// Its instructions: one is one nanosecond, and what is idle takes no time to wait for.
    Instructions,
    /// The time on the wall.
    Wall(Accel),
}

impl Time {
    fn domain(self) -> TimeDomain {
        match self {
            Time::Instructions => TimeDomain::Instructions,
            Time::Wall(_) => TimeDomain::Virtualized,
        }
    }
}
