//! The laboratory: real kernels in QEMU, one guest per cell.
#![forbid(unsafe_code)]

mod accel;
mod answer;
pub mod arch;
mod bound;
pub mod cache;
mod cells;
pub mod guest;
pub mod kernel;
mod microscope;
mod pool;
mod prepare;
pub mod profile;
mod run;
mod seal;
pub mod snapshot;
mod symbols;
mod unpack;

pub use accel::choose as choose_accel;
pub use bound::observe;
pub use cache::program_digest;
pub use guest::{GuestTime, Program, Variables};
pub use microscope::explain;
pub use run::{command, exec, fingerprint, run};
