//! One guest: its initramfs, its QEMU process, and latlab as its init process.

mod archive;
pub(super) mod calibration;
mod cell;
mod debugger;
mod driver;
mod init;
mod kallsyms;
mod library;
mod module;
mod orders;
mod plugin;
mod qemu;
mod time;

pub(crate) use cell::Program;
pub(super) use cell::{Boot, Cell};
pub(super) use driver::is_driver_needed;
pub(crate) use init::{is_init, serve};
pub(super) use orders::{Job, PROGRAM};
pub(super) use plugin::Plugin;
pub(super) use qemu::{Guest, arguments, version};
pub(crate) use time::GuestTime;
