//! Checking whether a program is real-time: its threads are watched while it runs.

mod budget;
mod files;
pub mod image;
mod left;
mod locked;
mod made;
mod mappings;
pub mod marks;
mod peers;
mod silent;
mod stacks;
mod watch;

pub use watch::{Order, Subject, watch};
