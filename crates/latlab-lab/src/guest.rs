//! One guest: its initramfs, and its QEMU process.

pub(super) mod calibration;
mod cell;
pub mod debugger;
mod disk;
mod driver;
mod launch;
pub mod library;
mod machine;
pub mod module;
mod output;
mod plugin;
mod program;
mod qcow2;
mod qemu;
mod start;
mod time;

pub use cell::Program;
pub(super) use cell::{Boot, Cell};
pub(super) use driver::is_driver_needed;
pub use latlab_guest::orders::Variables;
pub(super) use latlab_guest::orders::{Job, PROGRAM};
pub(super) use launch::Start;
pub(super) use machine::{arguments, stops, version};
pub(super) use plugin::{Plugin, Sections};
pub(super) use program::check as check_program;
pub(super) use qemu::{Guest, Launched};
pub use time::GuestTime;
