//! IRQ threads inherit the priority of the real-time tasks that need them.

use super::Mechanism;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{self as mechanism, inherit};
use latlab_part::part::{About, Describe};

/// Gives an IRQ thread the highest priority of the real-time tasks that need it.
///
/// Section 3.5 of Seo et al. 2009. It avoids priority inversion: a task with a priority between
/// that of an IRQ thread and that of the task that waits for the interrupt would delay both
/// without bound. The priority is lowered again with the last task that needs the thread, and never
/// below its original value. It needs transparent or selective, which find out which task needs
/// which thread.
#[derive(Debug, clap::Args)]
pub(super) struct Inherit;

impl Describe for Inherit {
    const ABOUT: About = About {
        name: "inherit",
        summary: "IRQ threads inherit the priority of real-time tasks that need them",
    };
}

impl Mechanism for Inherit {
    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(inherit::Inherit)
    }
}
