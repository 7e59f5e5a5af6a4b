//! The verdict on explained wake-ups: their leading causes, each with a remedy.

use super::answer::{Subject, answer};
use super::host::probably_host;
use super::running;
use crate::cause::Cause;
use crate::record::Record;
use crate::record::explained::{Explained, Share};
use crate::time::Nanos;

/// Most lines of the verdict.
const LINES: usize = 3;

/// Least share of a cause after the first, in percent.
pub(super) const LEAST: u64 = 5;

/// The verdict's name for unexplained time.
const UNEXPLAINED: &str = "unexplained";

/// A leading cause of late wake-ups, and the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadingCause {
    /// Its name.
    pub cause: String,
    /// Its share of the late time, in percent.
    pub percent: u64,
    /// What it was on this machine, as a clause.
    pub what: String,
    /// What to do against it, as a clause.
    pub remedy: String,
    /// Whether it is probably the host's, which no setting of this machine changes.
    pub hosted: bool,
}

/// Returns the leading causes of the late wake-ups of a record, the largest first. At most three;
/// none where nothing was late or nothing was explained.
pub fn leading(record: &Record) -> Vec<LeadingCause> {
    let Some(explained) = &record.explained else { return Vec::new() };
    let mut sums = sums(explained);
    sums.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
    let percent = |total: Nanos| {
        let share = u128::from(total.0) * 200 / u128::from(explained.total.0.max(1));
        u64::try_from(share.div_ceil(2)).unwrap_or(100)
    };
    let large = sums.into_iter().map(|(cause, total)| (cause, percent(total)));
    let large = large.enumerate().filter(|(place, (_, share))| *place == 0 || *share >= LEAST);
    let causes = large.take(LINES).map(|(_, (cause, percent))| {
        let subject = subject(record, explained, cause);
        let (what, remedy) = match subject.largest {
            largest if running::is_of_gaps(explained) && subject.hosted.is_none() => {
                lost(largest, cause, record)
            }
            _ => answer(cause, &subject),
        };
        let hosted = subject.hosted.is_some();
        LeadingCause { cause: cause.to_owned(), percent, what, remedy, hosted }
    });
    causes.collect()
}

/// Returns the leading causes as lines such as `64 % the host of this virtual machine: on the host,
/// pin the virtual CPUs to dedicated CPUs`.
pub fn leading_causes(record: &Record) -> Vec<String> {
    let line = |LeadingCause { percent, what, remedy, .. }| format!("{percent} % {what}: {remedy}");
    leading(record).into_iter().map(line).collect()
}

/// The answer to a cause of gaps in a busy loop, which has no period and never waits to be woken.
fn lost(largest: Option<&Share>, cause: &str, record: &Record) -> (String, String) {
    let culprit = largest.map_or("", |share| &share.culprit);
    let function = largest.and_then(|share| share.function.as_deref());
    let realtime = record.series.first().is_some_and(|series| series.schedule.policy != "other");
    running::answer(cause, (culprit, function, None), realtime, &record.machine)
}

/// The time of each cause, and that without one.
fn sums(explained: &Explained) -> Vec<(&str, Nanos)> {
    let mut sums: Vec<(&str, Nanos)> = Vec::new();
    for share in &explained.causes {
        match sums.iter_mut().find(|(cause, _)| *cause == share.cause) {
            Some((_, sum)) => *sum = *sum + share.total,
            None => sums.push((&share.cause, share.total)),
        }
    }
    sums.push((UNEXPLAINED, explained.unexplained));
    sums.retain(|(_, total)| *total > Nanos(0));
    sums
}

/// The largest share of a cause, and whether a large part of its time is probably the host's.
fn subject<'a>(record: &'a Record, explained: &'a Explained, cause: &str) -> Subject<'a> {
    let of_cause = || explained.causes.iter().filter(move |share| share.cause == cause);
    let suspect = |share: &&Share| {
        probably_host(record, cause, &share.culprit, share.worst).map(|why| (share.worst, why))
    };
    let suspects: Vec<_> = of_cause().filter_map(|share| suspect(&share)).collect();
    let hosted = suspects.iter().fold(Nanos(0), |sum, (worst, _)| sum + *worst);
    let all = of_cause().fold(Nanos(0), |sum, share| sum + share.total);
    let longest = suspects.into_iter().max_by_key(|(worst, _)| *worst);
    Subject {
        machine: &record.machine,
        largest: of_cause().max_by_key(|share| share.total),
        hosted: longest.filter(|_| hosted.0 >= all.0.div_ceil(4)),
        policy: record.series.first().map(|series| &series.schedule),
    }
}

/// Returns what the function of a non-preemptible section means where kernel code is not
/// preemptible. None on other machines, and without such sections.
pub fn note_on_functions(record: &Record) -> Option<String> {
    let sections = record.explained.iter().flat_map(|explained| &explained.causes);
    let named = |share: &Share| share.cause == Cause::NonPreemptible && share.function.is_some();
    let model = record.machine.preempt.as_deref().unwrap_or_default();
    (record.machine.runs_to_scheduling_point() && { sections }.any(named)).then(|| {
        format!(
            "preempt={model}: the function of a non-preemptible section is where the interrupt \
             found the CPU, or where the task was switched out at last. It is not to blame: any \
             kernel code runs to its next scheduling point."
        )
    })
}
