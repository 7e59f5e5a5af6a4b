//! Two observers of one late wake-up, compared: the recorder in the guest's kernel, which charges causes, and the
//! laboratory's plugin, which sees every instruction.

use crate::cause::Cause;
use crate::machine::Machine;
use crate::path::{IDLE, Off, PROGRAM, Path};
use crate::record::{Charge, Record, Sample};
use crate::time::Nanos;
use std::fmt;

/// Longest time by which the recorder and the plugin may differ: an event is recorded a little
/// after it happens.
pub const TOLERANCE: Nanos = Nanos::from_micros(1);

/// A part of a late wake-up on which the recorder and the plugin disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The latency of the wake-up.
    pub latency: Nanos,
    /// When the part begins, after the moment at which the thread should have run.
    pub from: Nanos,
    /// Its length.
    pub ns: Nanos,
    /// The name of the cause that the recorder charges; none if it charges none.
    pub cause: Option<String>,
    /// What the plugin saw in that time.
    pub seen: &'static str,
}

/// A part of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u64,
    to: u64,
}

/// Returns how many wake-ups of a record both have explained, and where they disagree.
pub fn verify(record: &Record) -> (usize, Vec<Disagreement>) {
    let both = |sample: &&Sample| sample.path.is_some() && sample.unexplained.is_some();
    let both: Vec<&Sample> = record.worst.iter().filter(both).collect();
    let all = both.iter().flat_map(|sample| disagreements(sample, &record.machine)).collect();
    (both.len(), all)
}

fn disagreements(sample: &Sample, machine: &Machine) -> Vec<Disagreement> {
    let Some(path) = &sample.path else { return Vec::new() };
    let seen = Seen::of(path, sample.latency);
    let charges = sample.causes.iter().filter_map(|charge| seen.contradiction(charge, machine));
    charges.chain(seen.overlooked(&sample.causes)).collect()
}

/// What the plugin saw, as parts of the latency.
struct Seen {
    latency: Nanos,
    /// Before the first instruction that was kept.
    unseen: Span,
    interrupts_off: Vec<Span>,
    preemption_off: Vec<Span>,
    /// In programs, or idle.
    elsewhere: Vec<Span>,
}

impl Seen {
    fn of(path: &Path, latency: Nanos) -> Seen {
        let Nanos(start) = path.unseen;
        let held = |what: Off| {
            let sections = path.held.iter().filter(move |held| held.what == what);
            let span =
                |from: Nanos, ns: Nanos| Span { from: start + from.0, to: start + from.0 + ns.0 };
            sections.map(|held| span(held.from, held.ns)).collect()
        };
        let mut at = start;
        let mut elsewhere = Vec::new();
        for step in &path.steps {
            let span = Span { from: at, to: at + step.instructions };
            at = span.to;
            if step.function == PROGRAM || step.function == IDLE {
                elsewhere.push(span);
            }
        }
        Seen {
            latency,
            unseen: Span { from: 0, to: start },
            interrupts_off: held(Off::Interrupts),
            preemption_off: held(Off::Preemption),
            elsewhere,
        }
    }

    /// What the plugin saw instead of this charge's cause, if it is longer than the tolerance.
    fn contradiction(&self, charge: &Charge, machine: &Machine) -> Option<Disagreement> {
        let span = Span { from: charge.from.0, to: charge.from.0 + charge.ns.0 };
        let in_kernel = span.length() - covered(span, &self.elsewhere);
        let (agreed, seen) = match Cause::named(&charge.cause) {
            Some(Cause::InterruptsOff | Cause::Interrupt) => {
                (covered(span, &self.interrupts_off), "interrupts were enabled")
            }
            Some(Cause::NonPreemptible) if !machine.runs_to_scheduling_point() => {
                let off = self.interrupts_off.iter().chain(&self.preemption_off).copied();
                (covered(span, &off.collect::<Vec<_>>()), "the kernel could be preempted")
            }
            Some(Cause::NonPreemptible) => (in_kernel, "the kernel did not run"),
            _ => return None,
        };
        let missing = span.length().saturating_sub(agreed + covered(span, &[self.unseen]));
        (missing > TOLERANCE.0).then(|| Disagreement {
            latency: self.latency,
            from: charge.from,
            ns: Nanos(missing),
            cause: Some(charge.cause.clone()),
            seen,
        })
    }

    /// The time for which interrupts were off when the thread should have run, if the recorder
    /// names another cause. While interrupts are off, nothing but a handler or the idle loop can be
    /// the cause.
    fn overlooked(&self, causes: &[Charge]) -> Option<Disagreement> {
        const POSSIBLE: [Cause; 6] = [
            Cause::InterruptsOff,
            Cause::Interrupt,
            Cause::TimerCallbacks,
            Cause::Softirq,
            Cause::IdleExit,
            Cause::TimerResolution,
        ];
        let first = self.interrupts_off.iter().find(|span| span.from <= self.unseen.to)?;
        let off = Span { from: self.unseen.to, to: first.to };
        let possible =
            causes.iter().filter(|charge| POSSIBLE.iter().any(|one| charge.cause == *one));
        let charged =
            possible.map(|charge| Span { from: charge.from.0, to: charge.from.0 + charge.ns.0 });
        let missing = off.length() - covered(off, &charged.collect::<Vec<_>>());
        (missing > TOLERANCE.0).then(|| {
            let other = causes.iter().find(|charge| {
                !POSSIBLE.iter().any(|one| charge.cause == *one) && charge.from.0 < off.to
            });
            Disagreement {
                latency: self.latency,
                from: Nanos(off.from),
                ns: Nanos(missing),
                cause: other.map(|charge| charge.cause.clone()),
                seen: "interrupts were disabled",
            }
        })
    }
}

impl Span {
    fn length(self) -> u64 {
        self.to - self.from
    }
}

/// How much of a span others cover, which may overlap.
fn covered(span: Span, others: &[Span]) -> u64 {
    let mut others = others.to_vec();
    others.sort_by_key(|other| other.from);
    let (mut sum, mut from) = (0, span.from);
    for other in others {
        let begin = other.from.max(from);
        let end = other.to.min(span.to);
        if end > begin {
            sum += end - begin;
            from = end;
        }
    }
    sum
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disagreement { latency, from, ns, cause, seen } = self;
        let cause = cause.as_deref().unwrap_or("no cause");
        write!(
            f,
            "{latency} late: the recorder charges {cause}, but {seen} for {ns} of it, from {from} on"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{DisabledSection, Step};

    /// A wake-up that was 100 us late: 20 us of a program, then the kernel. Interrupts were off from 20 to 60 us,
    /// preemption from 50 to 90 us.
    fn path() -> Path {
        let step = |function: &str, us: u64| Step {
            function: function.to_owned(),
            instructions: us * 1_000,
            depth: 0,
        };
        let held = |what, from, us| DisabledSection {
            what,
            function: "work".to_owned(),
            from: Nanos::from_micros(from),
            ns: Nanos::from_micros(us),
        };
        Path {
            steps: vec![step(PROGRAM, 20), step("work", 80)],
            held: vec![held(Off::Interrupts, 20, 40), held(Off::Preemption, 50, 40)],
            ..Path::default()
        }
    }

    /// The disagreements of this wake-up, if the recorder charges these causes, each from a microsecond on for
    /// so many.
    fn found(
        path: Path,
        charges: &[(&str, u64, u64)],
        preempt: &str,
    ) -> Vec<(u64, u64, &'static str)> {
        let charge = |(cause, from, us): &(&str, u64, u64)| Charge {
            cause: (*cause).to_owned(),
            from: Nanos::from_micros(*from),
            ns: Nanos::from_micros(*us),
            culprit: String::new(),
            stack: Vec::new(),
        };
        let sample = Sample {
            probe: "cyclic".to_owned(),
            cpu: 0,
            at: Nanos(0),
            latency: Nanos::from_micros(100),
            index: Some(1),
            causes: charges.iter().map(charge).collect(),
            unexplained: Some(Nanos(0)),
            path: Some(path),
        };
        let machine = Machine { preempt: Some(preempt.to_owned()), ..Machine::default() };
        let all = disagreements(&sample, &machine);
        all.iter().map(|one| (one.from.0 / 1_000, one.ns.0 / 1_000, one.seen)).collect()
    }

    #[test]
    fn causes_that_the_plugin_has_seen_are_agreed_on_to_a_microsecond() {
        let causes = [
            (Cause::InterruptsOff.name(), 20, 40),
            (Cause::NonPreemptible.name(), 60, 30),
            ("dispatch", 90, 10),
        ];
        assert_eq!(found(path(), &causes, "full"), []);
        assert_eq!(found(path(), &[(Cause::InterruptsOff.name(), 20, 41)], "full"), []);
        assert_eq!(
            found(path(), &[(Cause::InterruptsOff.name(), 20, 42)], "full"),
            [(20, 2, "interrupts were enabled")]
        );
    }

    #[test]
    fn handlers_run_with_interrupts_disabled() {
        assert_eq!(
            found(path(), &[("interrupt", 60, 10)], "full"),
            [(60, 10, "interrupts were enabled")]
        );
    }

    #[test]
    fn kernel_that_preempts_only_at_scheduling_points_was_running() {
        let late = [(Cause::NonPreemptible.name(), 85, 15)];
        assert_eq!(found(path(), &late, "full"), [(85, 10, "the kernel could be preempted")]);
        assert_eq!(found(path(), &late, "voluntary"), []);
        let early = [(Cause::NonPreemptible.name(), 10, 15)];
        assert_eq!(found(path(), &early, "voluntary"), [(10, 10, "the kernel did not run")]);
    }

    #[test]
    fn time_with_interrupts_disabled_from_the_start_has_a_cause() {
        let mut path = path();
        path.held[0].from = Nanos(0);
        let overlooked = (0, 40, "interrupts were disabled");
        assert_eq!(found(path.clone(), &[], "full"), [overlooked]);
        assert_eq!(
            found(path.clone(), &[(Cause::HigherPriority.name(), 0, 100)], "full"),
            [overlooked]
        );
        let parts = [(Cause::InterruptsOff.name(), 0, 30), (Cause::TimerCallbacks.name(), 30, 10)];
        assert_eq!(found(path.clone(), &parts, "full"), []);
        // What the plugin did not keep is not judged.
        path.unseen = Nanos::from_micros(50);
        assert_eq!(found(path, &[(Cause::InterruptsOff.name(), 0, 90)], "full"), []);
    }

    #[test]
    fn parts_that_overlap_count_once() {
        let spans = [(0, 4), (2, 6), (8, 20)].map(|(from, to)| Span { from, to });
        assert_eq!(covered(Span { from: 1, to: 10 }, &spans), 7);
    }
}
