//! Threads that are alike are shown once, by the one with the longest cycle.

use super::counted;
use crate::printable;
use latlab_check::{Level, ThreadReport, some_of};

/// Threads of one kind.
pub(super) struct Group<'a> {
    /// The one with the longest response time.
    pub worst: &'a ThreadReport,
    /// The others.
    pub others: Vec<&'a ThreadReport>,
}

/// The threads by kind: first kinds with errors, then kinds with warnings.
pub(super) fn groups(threads: &[ThreadReport]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for thread in threads {
        match groups.iter_mut().find(|group| are_alike(group.worst, thread)) {
            Some(group) if thread.cycle.response.max > group.worst.cycle.response.max => {
                group.others.push(std::mem::replace(&mut group.worst, thread));
            }
            Some(group) => group.others.push(thread),
            None => groups.push(Group { worst: thread, others: Vec::new() }),
        }
    }
    let rank = |group: &Group<'_>| match group.worst.breaches.iter().map(|one| one.level).min() {
        Some(Level::Error) => 0,
        Some(Level::Warning) => 1,
        None => 2,
    };
    groups.sort_by_key(rank);
    groups
}

/// Whether two threads have names that differ in numbers only, the same policy, wait and period, and the same
/// breaches.
fn are_alike(a: &ThreadReport, b: &ThreadReport) -> bool {
    let of = |thread: &ThreadReport| {
        let name: String = thread.name.chars().filter(|c| !c.is_ascii_digit()).collect();
        let breaches =
            thread.breaches.iter().map(|one| (one.rule, one.subject.clone(), one.place.clone()));
        let (policy, wait) = (thread.policy.clone(), thread.cycle.waits_for.clone());
        (name, policy, wait, breaches.collect::<Vec<_>>())
    };
    let period = |thread: &ThreadReport| thread.cycle.period.map_or(0, |period| period.0);
    let (longer, shorter) = (period(a).max(period(b)), period(a).min(period(b)));
    of(a) == of(b) && longer - shorter <= longer / 10
}

/// The threads of a group that are not shown, in one line.
pub(super) fn others(others: &[&ThreadReport]) -> Option<String> {
    let names: Vec<String> =
        others.iter().map(|thread| format!("{} [{}]", thread.name, thread.tid)).collect();
    let cycles: u64 = others.iter().map(|thread| thread.cycle.count).fold(0, u64::saturating_add);
    let what = match names.len() {
        0 => return None,
        1 => "the other thread of its kind has a shorter longest cycle".to_owned(),
        more => format!("the other {more} threads of its kind have shorter longest cycles"),
    };
    let names = printable(&some_of(&names));
    Some(format!("{what}, in {}: {names}", counted(cycles, "cycle")))
}
