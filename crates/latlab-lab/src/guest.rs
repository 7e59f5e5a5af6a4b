//! One guest: its initramfs, its QEMU process, and latlab as its init process.

pub mod archive;
pub(super) mod calibration;
mod cell;
pub mod debugger;
mod disk;
mod driver;
mod init;
mod kallsyms;
mod launch;
pub mod library;
mod machine;
pub mod module;
mod orders;
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
pub use init::{is_init, serve};
pub(super) use launch::Start;
pub(super) use machine::{arguments, stops, version};
pub use orders::Variables;
pub(super) use orders::{Job, PROGRAM};
pub(super) use plugin::{Plugin, Sections};
pub(super) use program::find as find_program;
pub(super) use qemu::{Guest, Launched};
pub use time::GuestTime;
