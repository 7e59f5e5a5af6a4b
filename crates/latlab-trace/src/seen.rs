//! Which events a trace has, and what can be said with them.

use crate::event::{What, is_vector};

/// The kinds of events that were seen.
#[expect(clippy::struct_excessive_bools, reason = "each is a kind of event")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) switches: bool,
    pub(crate) wakings: bool,
    pub(crate) wakeups: bool,
    migrations: bool,
    interrupts: bool,
    vectors: bool,
    softirqs: bool,
    timer_starts: bool,
    timers: bool,
    stacks: bool,
    pub(crate) timerlat: bool,
    noise: bool,
}

impl Seen {
    /// An event is seen.
    pub(crate) fn add(&mut self, event: &str, what: &What<'_>) {
        match what {
            What::Switch { .. } => self.switches = true,
            What::Waking { .. } => self.wakings = true,
            What::Queued { .. } => self.wakeups = true,
            What::Migrated { .. } => self.migrations = true,
            What::Interrupt { .. } | What::InterruptEnd if is_vector(event) => self.vectors = true,
            What::Interrupt { name: Some("arch_timer"), .. } => {
                (self.interrupts, self.vectors) = (true, true);
            }
            What::Interrupt { .. } | What::InterruptEnd => self.interrupts = true,
            What::Softirq(_) | What::SoftirqEnd => self.softirqs = true,
            What::TimerStarted { .. } => self.timer_starts = true,
            What::Timer { .. } => self.timers = true,
            What::Stack => self.stacks = true,
            What::Timerlat { .. } => self.timerlat = true,
            What::Noise { .. } => self.noise = true,
            _ => {}
        }
    }

    /// Whether interrupts or softirqs may have run without an event.
    pub(crate) fn lacks_interrupts(&self) -> bool {
        !(self.noise || self.interrupts && self.vectors && self.softirqs)
    }

    /// Whether a woken task may have been moved without an event.
    pub(crate) fn lacks_moves(&self) -> bool {
        !self.migrations
    }

    /// Whether the expiry of timers is known.
    fn has_expiry(&self) -> bool {
        self.timerlat || self.timer_starts && self.timers
    }

    /// The level that the events reach: 1 wake-ups and context switches, 2 also interrupts and softirqs, 3 also the
    /// expiry of timers, 4 also stacks.
    pub(crate) fn level(&self) -> u32 {
        let parts = [!self.lacks_interrupts(), self.has_expiry(), self.stacks];
        1 + u32::try_from(parts.iter().take_while(|has| **has).count()).unwrap_or(0)
    }

    /// What the missing events cost, a sentence each.
    pub(crate) fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        let interrupts = [
            ("irq_handler", self.interrupts),
            ("irq_vectors (or ipi)", self.vectors),
            ("softirq", self.softirqs),
        ];
        if self.lacks_interrupts() {
            let missing = interrupts.iter().filter(|(_, seen)| !seen).map(|(name, _)| *name);
            limits.push(format!(
                "no {} events in the trace: interrupts and softirqs can't be told from the task they run on, and the \
                 time of tasks of lower priority stays unexplained",
                missing.collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.has_expiry() {
            limits.push(
                "no hrtimer_start and hrtimer_expire_entry events in the trace: latencies begin at the wake-up, and the \
                 lateness of timers is not in them"
                    .to_owned(),
            );
        }
        if !self.stacks {
            limits.push("no stacks in the trace: functions are not named".to_owned());
        }
        limits
    }
}
