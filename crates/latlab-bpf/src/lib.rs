//! BPF programs: a flight recorder of late wake-ups, and the wakers of real-time tasks.
//!
//! The recorder's programs run on tracepoints. They write events to a ring buffer per CPU, in
//! kernel memory, that keeps the newest ones without a reader. When a watched task that ran late is
//! switched out again, the events around its wake-up are passed to user space as a
//! [`Window`](latlab_core::explain::Window). [`wakers`] finds the IRQ threads that wake
//! real-time tasks. This is the only crate that uses libbpf.
#![forbid(unsafe_code)]

mod check;
mod counting;
#[doc(hidden)]
pub mod fuzz;
mod kernel;
mod layout;
mod object;
mod recorder;
mod refusal;
pub mod wakers;

pub use check::{Checker, Observe, Observed, UserStack};
pub use object::ProgramCost;
pub use recorder::{Detail, Latest, Losses, Recorder, Watch};
pub use refusal::RecorderError;
