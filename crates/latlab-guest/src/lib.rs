//! The init process of the laboratory's guests: it prepares the guest as ordered, carries out one job, and
//! sends the answer. The formats that the laboratory writes and a guest reads are here too:
//! [`orders`] and [`archive`].
//!
//! Everything that a guest measures with is in this crate and below it: figures of the laboratory change
//! with its program only.
#![forbid(unsafe_code)]

pub mod archive;
mod calibration;
pub mod disk;
mod init;
mod kallsyms;
pub mod orders;

pub use init::{is_init, serve};
