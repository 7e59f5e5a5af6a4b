//! The laboratory: real kernels in QEMU, one guest per cell.

mod accel;
mod answer;
pub(crate) mod arch;
mod bound;
pub(crate) mod cache;
mod cells;
pub(crate) mod guest;
pub(crate) mod kernel;
mod microscope;
mod pool;
mod prepare;
pub(crate) mod profile;
mod run;
mod seal;
pub(crate) mod snapshot;
mod symbols;
mod unpack;

pub(crate) use accel::choose as choose_accel;
pub(crate) use bound::observe;
pub(crate) use cache::program_digest;
pub(crate) use guest::{GuestTime, Program, Variables, is_init, serve};
pub(crate) use microscope::explain;
pub(crate) use run::{command, exec, fingerprint, run};
