//! Interrupts that real-time tasks ask for go first, the others wait.

use super::Mechanism;
use crate::registry::About;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{self, selective};

/// The interrupt threads of the device groups that real-time tasks have asked for get the priority
/// of those tasks; all others are ordinary tasks meanwhile.
///
/// Section 3.3 of Seo et al. 2009. A process asks for groups of devices (NETWORK, AUDIO, …), which
/// the configuration describes; what it asks for counts while it has a real-time task. No thread
/// gets less than it was found with by being asked for. Without such a request nothing is done. It
/// costs others: an interrupt that nobody asked for waits for ordinary tasks.
#[derive(Debug, clap::Args)]
pub(super) struct Selective;

impl Mechanism for Selective {
    const ABOUT: About = About {
        name: "selective",
        summary: "interrupts that real-time tasks have asked for go first, the others wait",
    };
    const DEFAULT: bool = false;

    fn pure(told: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(selective::Selective::of(told.groups.clone()))
    }
}
