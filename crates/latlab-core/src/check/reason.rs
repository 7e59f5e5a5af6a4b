//! Why cycles took their time: the parts of each, and their sums by cause.

use super::cycle::{Finished, Part, What};
use super::event::StackId;
use super::report::describe;
use super::rule::Rule;
use super::wake_up::Charged;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// A part of a cycle. Its place in the cycle may contain other parts; their time is not its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CyclePart {
    /// When it began, from when the cycle was due.
    pub from: Nanos,
    /// From its begin to its end.
    pub length: Nanos,
    /// Its time without the parts within it.
    pub own: Nanos,
    /// The cause: before the thread ran, those of `latlab explain`, `previous-cycle` or
    /// `unexplained`; in the cycle `preempted`, `throttled`, `blocked`, `kernel-lock`, `fault`,
    /// `system-call`, `interrupt`, `softirq` or `program`.
    pub cause: String,
    /// Whether the thread was awaiting the CPU after it had slept.
    pub waking: bool,
    /// The task, interrupt, system call or lock.
    pub culprit: String,
    /// The kernel's function that delayed a waking, or the user's function in the cycle.
    pub place: Option<String>,
    /// The rule that it breached.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<Rule>,
}

/// What took the time of several cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// As in [`CyclePart`].
    pub cause: String,
    /// As in [`CyclePart`].
    pub waking: bool,
    /// As in [`CyclePart`].
    pub culprit: String,
    /// As in [`CyclePart`].
    pub place: Option<String>,
    /// Number of cycles in which it took time.
    pub count: u64,
    /// Sum of that time. For the program, the running time beyond the median of cycles in time.
    pub total: Nanos,
    /// The longest time in a cycle.
    pub longest: Nanos,
}

/// The name of the user's function on a stack.
pub(super) type PlaceOf<'a> = dyn FnMut(StackId) -> Option<String> + 'a;

/// The parts of a cycle: that until it ran, those of the program, and all others. The own times add
/// up to the response time.
pub(super) fn parts(finished: &Finished, place_of: &mut PlaceOf<'_>) -> Vec<CyclePart> {
    let cycle = &finished.cycle;
    let (latency, response) = (finished.latency(), finished.response());
    let before = cycle.waited - cycle.due;
    let mut all = vec![
        whole(Nanos(0), before, "previous-cycle"),
        whole(before, latency - before, "unexplained"),
        whole(latency, response - latency, "program"),
    ];
    let locks: Vec<&Charged> = finished.wake_ups.iter().flat_map(|one| &one.locks).collect();
    all.extend(cycle.parts.iter().map(|part| of_part(part, cycle.due, &locks, place_of)));
    for part in &cycle.parts {
        deduct(&mut all[..3], part.from - cycle.due, part.own);
    }
    for wake_up in &finished.wake_ups {
        // One that the thread was awake by before its wait says nothing about the waking.
        let charges = wake_up.charges.iter().filter(|_| wake_up.ran >= cycle.waited);
        let charges = charges.map(|charged| (charged, true));
        let interrupts = wake_up.interrupts.iter().map(|charged| (charged, false));
        for (charged, waking) in charges.chain(interrupts) {
            if charged.from >= cycle.waited && charged.from + charged.length <= finished.end {
                let new = of_charge(charged, cycle.due, waking);
                deduct(&mut all, new.from, new.own);
                all.push(new);
            }
        }
    }
    all.retain(|part| part.own > Nanos(0) || part.rule.is_some());
    all
}

fn whole(from: Nanos, length: Nanos, cause: &str) -> CyclePart {
    CyclePart {
        from,
        length,
        own: length,
        cause: cause.to_owned(),
        waking: cause != "program",
        culprit: String::new(),
        place: None,
        rule: None,
    }
}

/// Takes time from the shortest part that contains a moment.
fn deduct(parts: &mut [CyclePart], moment: Nanos, time: Nanos) {
    let around = |part: &&mut CyclePart| part.from <= moment && moment < part.from + part.length;
    if let Some(part) = parts.iter_mut().filter(around).min_by_key(|part| part.length) {
        part.own = part.own - time;
    }
}

fn of_charge(charged: &Charged, due: Nanos, waking: bool) -> CyclePart {
    CyclePart {
        from: charged.from - due,
        length: charged.length,
        own: charged.length,
        cause: charged.cause.to_owned(),
        waking,
        culprit: charged.culprit.clone(),
        place: charged.function.clone(),
        rule: None,
    }
}

fn of_part(part: &Part, due: Nanos, locks: &[&Charged], place_of: &mut PlaceOf<'_>) -> CyclePart {
    let lock =
        locks.iter().find(|lock| lock.from <= part.from && part.from < lock.from + lock.length);
    let (cause, culprit) = match (&part.what, lock) {
        (What::Blocked(..) | What::KernelLock, Some(lock)) => ("kernel-lock", of_lock(lock)),
        (What::Preempted(by), _) => ("preempted", describe(*by)),
        (What::Throttled(by), _) => ("throttled", describe(*by)),
        (What::Blocked(place, None), _) => ("blocked", place.clone()),
        (What::Blocked(place, Some(by)), _) => {
            ("blocked", format!("{place}, ended by {}", describe(*by)))
        }
        (What::KernelLock, None) => ("kernel-lock", "a spinlock of the kernel".to_owned()),
        (What::Fault(subject), _) => ("fault", subject.clone()),
        (What::Call(subject), _) => ("system-call", subject.clone()),
    };
    CyclePart {
        from: part.from - due,
        length: part.to - part.from,
        own: part.own,
        cause: cause.to_owned(),
        waking: false,
        culprit,
        place: part.stack.and_then(place_of),
        rule: part.rule,
    }
}

/// Names a lock of the kernel, its holder, and the function that called for it.
fn of_lock(lock: &Charged) -> String {
    let caller = lock.function.iter().map(|function| format!(", called from {function}"));
    format!("{}{}", lock.culprit, caller.collect::<String>())
}

/// Sums the parts of cycles by cause, the longest first. `usual` is the running time that the
/// program needs in each.
pub(super) fn reasons(
    cycles: &[Finished],
    usual: Nanos,
    place_of: &mut PlaceOf<'_>,
) -> Vec<Reason> {
    let mut all: Vec<Reason> = Vec::new();
    for reason in cycles.iter().flat_map(|cycle| of_cycle(cycle, usual, place_of)) {
        match all.iter_mut().find(|known| known.is_like(&reason)) {
            Some(known) => {
                known.count += 1;
                known.total = known.total + reason.total;
                known.longest = known.longest.max(reason.longest);
            }
            None => all.push(reason),
        }
    }
    all.sort_by_key(|reason| std::cmp::Reverse(reason.total));
    all
}

/// The parts of a cycle, each cause once.
fn of_cycle(cycle: &Finished, usual: Nanos, place_of: &mut PlaceOf<'_>) -> Vec<Reason> {
    let mut all: Vec<Reason> = Vec::new();
    for part in parts(cycle, place_of) {
        let time = if part.cause == "program" { part.own - usual } else { part.own };
        let new = Reason { total: time, longest: time, ..part.reason() };
        match all.iter_mut().find(|known| known.is_like(&new)) {
            Some(known) => {
                known.total = known.total + time;
                known.longest = known.total;
            }
            None => all.push(new),
        }
    }
    all.retain(|reason| reason.total > Nanos(0));
    all
}

impl CyclePart {
    /// The part alone as a reason.
    pub fn reason(&self) -> Reason {
        let (cause, culprit, place) =
            (self.cause.clone(), self.culprit.clone(), self.place.clone());
        let (waking, own) = (self.waking, self.own);
        Reason { cause, waking, culprit, place, count: 1, total: own, longest: own }
    }
}

impl Reason {
    /// Whether it has the same cause and culprit.
    fn is_like(&self, other: &Reason) -> bool {
        (&self.cause, self.waking, &self.culprit, &self.place)
            == (&other.cause, other.waking, &other.culprit, &other.place)
    }
}
