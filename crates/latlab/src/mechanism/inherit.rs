//! Interrupt threads inherit the priority of who waits for them.

use super::Mechanism;
use crate::registry::About;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{self, inherit};

/// An interrupt thread that real-time tasks need has the highest priority among them.
///
/// Section 3.5 of Seo et al. 2009: a task of a priority between an interrupt's thread and the task
/// that waits for the interrupt keeps both waiting, for as long as it likes. The thread is lowered
/// again with the last task, and never below what it was found with. Whom tasks need is found out by
/// transparent or selective, one of which it needs beside it.
#[derive(Debug, clap::Args)]
pub(super) struct Inherit;

impl Mechanism for Inherit {
    const ABOUT: About = About {
        name: "inherit",
        summary: "interrupt threads get the priority of the real-time tasks that need them",
    };

    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(inherit::Inherit)
    }
}
