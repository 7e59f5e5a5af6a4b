//! Why cycles took their time: the parts of each, and their sums by cause.

use super::cycle::{Finished, Part, What};
use super::event::StackId;
use super::report::{CyclePart, Reason};
use super::wake_up::Charged;
use latlab_core::time::Nanos;

/// The time of the program itself.
const PROGRAM: &str = "program";
/// The time of the program, including page faults of unknown duration.
const PROGRAM_OR_FAULT: &str = "program-or-fault";

fn is_of_program(cause: &str) -> bool {
    cause == PROGRAM || cause == PROGRAM_OR_FAULT
}

/// The name of the user's function on a stack.
pub(super) type PlaceOf<'a> = dyn FnMut(StackId) -> Option<String> + 'a;

/// The parts of a cycle: the part until it ran, the program's parts, and all others. The own times
/// add up to the response time.
pub(super) fn parts(finished: &Finished, place_of: &mut PlaceOf<'_>) -> Vec<CyclePart> {
    let cycle = &finished.cycle;
    let (latency, response) = (finished.latency(), finished.response());
    let before = cycle.waited - cycle.due;
    let program = if cycle.faults_without_end > 0 { PROGRAM_OR_FAULT } else { PROGRAM };
    let mut all = vec![
        whole(Nanos(0), before, "previous-cycle"),
        whole(before, latency - before, "unexplained"),
        whole(latency, response - latency, program),
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
        waking: !is_of_program(cause),
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
        (What::Preempted(by), _) => ("preempted", by.describe()),
        (What::Throttled(by), _) => ("throttled", by.describe()),
        (What::Stopped(by), _) => ("stopped", by.describe()),
        (What::Blocked(place, None), _) => ("blocked", place.clone()),
        (What::Blocked(place, Some(by)), _) => {
            ("blocked", format!("{place}, ended by {}", by.describe()))
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
        let time = if is_of_program(&part.cause) { part.own - usual } else { part.own };
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

impl Reason {
    /// Whether it has the same cause and culprit.
    fn is_like(&self, other: &Reason) -> bool {
        (&self.cause, self.waking, &self.culprit, &self.place)
            == (&other.cause, other.waking, &other.culprit, &other.place)
    }
}
