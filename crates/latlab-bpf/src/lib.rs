//! The flight recorder: what the kernel did before a watched task ran late.
//!
//! Small BPF programs on the kernel's tracepoints note what happens on each CPU, in memory of the
//! kernel that keeps the last events and needs nobody to read it. When a watched task that ran late
//! is switched out again, what happened around its wake-up is handed over as a
//! [`Window`](latlab_core::explain::Window). Beside it, the wakers: which interrupt threads wake
//! real-time tasks. This is the only crate that knows libbpf.
#![forbid(unsafe_code)]

mod counting;
mod kernel;
mod layout;
mod object;
mod recorder;
mod refusal;
pub mod wakers;

pub use object::ProgramCost;
pub use recorder::{Losses, Recorder, Watch};
pub use refusal::RecorderError;
