//! Long segments that are probably the host's: a virtual CPU stops in the middle of any code.

use crate::cause::Cause;
use crate::machine::{Machine, TimeDomain};
use crate::record::Record;
use crate::time::Nanos;

/// Why a segment is probably the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// How long the culprit usually takes: its mean in the other late wake-ups, if there are any.
    pub usual: Option<Nanos>,
    /// Whether steal time was charged in other segments of the run.
    pub steal_reported: bool,
    /// The hypervisor.
    pub hypervisor: String,
}

/// Shorter segments are taken as they are.
const LONG: Nanos = Nanos::from_millis(1);

/// A section is suspicious from this multiple of its usual length on.
const OUTLIER: u64 = 20;

/// Least number of other wake-ups that show how long a section usually takes.
const KNOWN: u64 = 5;

/// Decides whether a segment of this length, charged to this cause and culprit, is probably the
/// host's: whether the machine is virtual, the segment takes a millisecond or more, and the kernel
/// is not known to take that long.
///
/// Interrupt handlers, timer callbacks and context switches take microseconds: one that takes
/// milliseconds is suspicious unless it always does. Softirqs and non-preemptible sections of a
/// preemptible kernel may be long: they are suspicious only as outliers. Without preemption a
/// section may have any length. In instruction time there is no host.
pub fn probably_host(
    record: &Record,
    cause: &str,
    culprit: &str,
    length: Nanos,
) -> Option<Suspicion> {
    let hypervisor = hypervisor(&record.machine).filter(|_| length >= LONG)?;
    let (others, usual) = others(record, cause, culprit, length);
    let preempt = record.machine.preempt.as_deref();
    let suspicious = match (Cause::named(cause), preempt) {
        (Some(Cause::Interrupt | Cause::TimerCallbacks | Cause::Dispatch), _) => {
            usual.is_none_or(|usual| length.0 >= usual.0.saturating_mul(2))
        }
        (Some(Cause::NonPreemptible), None | Some("none" | "voluntary")) => false,
        (Some(Cause::Softirq | Cause::NonPreemptible), _) => {
            let usual = usual.filter(|_| others >= KNOWN);
            usual.is_some_and(|usual| length.0 >= usual.0.saturating_mul(OUTLIER))
        }
        _ => false,
    };
    let causes = record.explained.iter().flat_map(|explained| &explained.causes);
    let steal_reported = { causes }.any(|share| share.cause == Cause::Host);
    suspicious.then(|| Suspicion { usual, steal_reported, hypervisor: hypervisor.to_owned() })
}

/// Returns the hypervisor whose host may take the CPU.
pub(super) fn hypervisor(machine: &Machine) -> Option<&str> {
    let may = machine.time_domain != TimeDomain::Instructions;
    machine.hypervisor.as_deref().filter(|_| may)
}

/// Returns the number of other late wake-ups with this culprit, and its mean time in them.
fn others(record: &Record, cause: &str, culprit: &str, length: Nanos) -> (u64, Option<Nanos>) {
    let causes = record.explained.iter().flat_map(|explained| &explained.causes);
    let name = culprit.rsplit_once(" (pid ").map_or(culprit, |(name, _)| name);
    let same = causes.filter(|share| share.cause == cause && share.culprit == name);
    let (count, total) = same
        .fold((0, Nanos(0)), |(count, total), share| (count + share.count, total + share.total));
    let others = count.saturating_sub(1);
    (others, (others > 0).then(|| Nanos((total - length).0 / others)))
}

impl Suspicion {
    /// Returns the reason in words: what the culprit usually takes, the hypervisor, the steal time.
    /// `shown` formats times.
    pub fn reason(&self, shown: impl Fn(Nanos) -> String) -> String {
        let usual = match self.usual {
            Some(usual) => format!("usually {}", shown(usual)),
            None => "such code takes microseconds".to_owned(),
        };
        let steal = if self.steal_reported {
            "steal time reported elsewhere"
        } else {
            "no steal time reported"
        };
        format!("{usual}; hypervisor {}; {steal}", self.hypervisor)
    }
}
