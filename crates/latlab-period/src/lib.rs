//! Periods that hold: a real-time loop without drift, whose lateness can be watched.
//!
//! ```no_run
//! use core::time::Duration;
//! use latlab_period::{Period, Policy, Settings};
//!
//! let settings = Settings::every(Duration::from_millis(1));
//! let mut period = Period::start(&Settings { policy: Policy::Fifo(80), ..settings })?;
//! while let Ok(missed) = period.wait() {
//!     // One cycle. `missed` periods were skipped since the last one.
//! }
//! # Ok::<(), latlab_period::Refused>(())
//! ```
//!
//! It stands alone, with the C library only, so that any program can use it: it does not use std,
//! and has the system calls, and so the `unsafe`, that it needs. Between two periods it allocates
//! nothing, takes no lock and formats nothing.

#![no_std]

#[cfg(test)]
extern crate std;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("latlab-period is for 64-bit Linux");

mod c;
mod interrupts;
mod mark;
mod period;
mod settings;
mod spin;
mod statistics;

pub use interrupts::prioritize;
pub use mark::{Part, begin, end};
pub use period::{Period, Stopped};
pub use settings::{OnOverrun, Policy, Refused, Settings};
pub use statistics::Summary;

/// The library for C has no std, whose panic handler would print. Nothing here panics by intent.
#[cfg(feature = "c")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: abort ends the process and takes nothing.
    unsafe { libc::abort() }
}
