//! IRQ threads that no real-time task needs become SCHED_OTHER.

use super::{Active, Mechanism};
use latlab_core::time::Nanos;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{self as mechanism, demote};
use latlab_part::part::{About, Describe};

/// Makes IRQ threads that no real-time task needs SCHED_OTHER while real-time tasks exist.
///
/// Algorithm 2 of Seo et al. 2009, where an interrupt is urgent only if a real-time task waits for
/// it. It needs transparent or selective, which find out which task needs which thread. Each new
/// real-time task is observed for five seconds, in which all IRQ threads have their own priorities.
/// Softirq threads keep theirs, as they also run timers. The cost: if a task first waits for an
/// interrupt later than that, its first wake-up may have to wait for SCHED_OTHER tasks; from then
/// on the thread is known.
#[derive(Debug, clap::Args)]
pub(super) struct Demote;

/// Time for which a real-time task is observed.
const LEARNING: Nanos = Nanos::from_secs(5);

impl Describe for Demote {
    const ABOUT: About = About {
        name: "demote",
        summary: "IRQ threads that no real-time task needs become SCHED_OTHER",
    };
}

impl Mechanism for Demote {
    const ACTIVE: Active = Active::Never;

    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(demote::Demote::after(LEARNING))
    }
}
