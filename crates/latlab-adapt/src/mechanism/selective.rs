//! Interrupts that real-time tasks request have priority over all others.

use super::{Active, Mechanism};
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{self as mechanism, selective};
use latlab_part::part::{About, Describe};

/// Gives the IRQ threads of the device groups that real-time tasks have requested the priority
/// of those tasks; all other IRQ threads are SCHED_OTHER during that time.
///
/// Section 3.3 of Seo et al. 2009. A process requests groups of devices (NETWORK, AUDIO, …), which
/// the configuration describes; the request counts while the process has a real-time task. No
/// requested thread gets a priority below its original one. Without a request it raises and demotes
/// no thread; for mode it counts all the same as a mechanism that knows which threads are needed.
/// The cost: an interrupt that nobody has requested competes with SCHED_OTHER tasks.
#[derive(Debug, clap::Args)]
pub(super) struct Selective;

impl Describe for Selective {
    const ABOUT: About = About {
        name: "selective",
        summary: "requested IRQ threads get real-time priority, all others SCHED_OTHER",
    };
}

impl Mechanism for Selective {
    const ACTIVE: Active = Active::InDaemon;

    fn pure(told: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(selective::Selective::of(told.groups.clone()))
    }
}
