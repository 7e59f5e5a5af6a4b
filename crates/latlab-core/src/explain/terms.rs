//! The three terms of a latency (Abeni et al. 2002): timer resolution, non-preemptible sections and
//! scheduling.

use crate::cause::Cause;
use crate::time::Nanos;
use std::fmt::{self, Write as _};

/// A term of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The timer expired late: its resolution and slack.
    TimerResolution,
    /// The kernel could not be preempted: sections of system calls, interrupts and softirqs.
    NonPreemptible,
    /// Another task had the CPU, or the task was being switched to.
    Scheduling,
}

impl Term {
    /// Returns the term that a cause belongs to; none for causes outside of the kernel's reaction,
    /// such as the host, an idle state, or the task itself.
    pub fn of(cause: &str) -> Option<Term> {
        match Cause::named(cause) {
            Some(Cause::TimerResolution) => Some(Term::TimerResolution),
            Some(
                Cause::NonPreemptible
                | Cause::InterruptsOff
                | Cause::Interrupt
                | Cause::Softirq
                | Cause::TimerCallbacks,
            ) => Some(Term::NonPreemptible),
            Some(
                Cause::HigherPriority
                | Cause::EqualPriority
                | Cause::InterruptThread
                | Cause::Migration
                | Cause::Throttled
                | Cause::Dispatch,
            ) => Some(Term::Scheduling),
            _ => None,
        }
    }
}

/// A latency, or a sum of latencies, divided into its terms. They add up to it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Timer resolution.
    pub timer: Nanos,
    /// Non-preemptible sections.
    pub section: Nanos,
    /// Scheduling.
    pub scheduling: Nanos,
    /// The rest: other causes, and what is unexplained.
    pub other: Nanos,
}

impl Terms {
    /// Divides a latency by the terms of the causes that it is charged to. `unexplained` is the rest of it.
    pub fn of(
        charges: impl IntoIterator<Item = (Option<Term>, Nanos)>,
        unexplained: Nanos,
    ) -> Terms {
        let mut terms = Terms { other: unexplained, ..Terms::default() };
        for (term, time) in charges {
            let sum = match term {
                Some(Term::TimerResolution) => &mut terms.timer,
                Some(Term::NonPreemptible) => &mut terms.section,
                Some(Term::Scheduling) => &mut terms.scheduling,
                None => &mut terms.other,
            };
            *sum = *sum + time;
        }
        terms
    }

    /// Returns the terms as a sum, with times shown by `shown`; the rest only if there is any.
    pub fn sum(&self, shown: impl Fn(Nanos) -> String) -> String {
        let mut sum = format!(
            "{} timer resolution + {} non-preemptible + {} scheduling",
            shown(self.timer),
            shown(self.section),
            shown(self.scheduling)
        );
        if self.other > Nanos(0) {
            let _ = write!(sum, " + {} other", shown(self.other));
        }
        sum
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sum(|time| time.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_add_up_to_the_latency() {
        let charges = [
            ("timer-resolution", Nanos(1_000)),
            (Cause::NonPreemptible.name(), Nanos(40_000)),
            ("softirq", Nanos(2_000)),
            (Cause::HigherPriority.name(), Nanos(500)),
            ("dispatch", Nanos(1_500)),
            ("host", Nanos(30)),
        ];
        let terms = Terms::of(charges.map(|(cause, time)| (Term::of(cause), time)), Nanos(70));
        let all = terms.timer + terms.section + terms.scheduling + terms.other;
        assert_eq!(all, charges.iter().fold(Nanos(70), |sum, (_, time)| sum + *time));
        assert_eq!(
            terms.to_string(),
            "1 us timer resolution + 42 us non-preemptible + 2 us scheduling + 100 ns other"
        );
        let exact = Terms::of([(Term::of("dispatch"), Nanos(9))], Nanos(0)).to_string();
        assert_eq!(exact, "0 ns timer resolution + 0 ns non-preemptible + 9 ns scheduling");
    }
}
