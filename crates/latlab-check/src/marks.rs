//! The parts of a cycle by the marks of the program.

use super::report::{PartReport, PartsReport, Spread};
use latlab_core::histogram::Histogram;
use latlab_core::time::Nanos;

/// Parts of a cycle within one another. Those beyond are left out.
pub(super) const DEPTH: usize = 16;
/// Largest number of parts of a cycle that are kept. Others are left out.
pub(super) const KEPT: usize = 1000;
/// Largest number of names of parts of a thread. Parts with others are left out.
pub(super) const NAMES: usize = 64;

/// The marks of a cycle in progress. A part that has not ended when the part or the cycle around it
/// does ends with that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Parts in progress, the outermost first.
    open: Vec<Open>,
    /// Parts in progress that are left out, as they are too deep.
    too_deep: usize,
    /// Parts that have ended, in the order in which they did.
    pub(super) ended: Vec<Ended>,
    unpaired: Unpaired,
}

/// A part in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    name: String,
    id: i64,
    at: Nanos,
    away: Nanos,
}

/// A part that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) name: String,
    /// The number that the program gave it.
    pub(super) id: i64,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// Time on the CPU, including the parts within it.
    pub(super) running: Nanos,
}

/// Marks that make no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Unpaired {
    without_end: u64,
    without_begin: u64,
    left_out: u64,
}

impl Marks {
    /// A part begins. The thread has not been on its CPU for `away` of the cycle so far.
    pub(super) fn begin(&mut self, name: &str, id: i64, at: Nanos, away: Nanos) {
        if self.open.len() >= DEPTH {
            self.too_deep += 1;
            self.unpaired.left_out += 1;
        } else {
            self.open.push(Open { name: name.to_owned(), id, at, away });
        }
    }

    /// A part ends, with those within it.
    pub(super) fn end(&mut self, name: &str, at: Nanos, away: Nanos) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let Some(place) = self.open.iter().rposition(|open| open.name == name) else {
            self.unpaired.without_begin += 1;
            return;
        };
        self.unpaired.without_end += (self.open.len() - place - 1) as u64;
        self.end_from(place, at, away);
    }

    /// The cycle ends.
    pub(super) fn end_all(&mut self, at: Nanos, away: Nanos) {
        self.unpaired.without_end += self.open.len() as u64;
        self.end_from(0, at, away);
    }

    /// Ends the open parts from that place on, the innermost first.
    fn end_from(&mut self, place: usize, at: Nanos, away: Nanos) {
        for Open { name, id, at: from, away: before } in self.open.drain(place..).rev() {
            if self.ended.len() >= KEPT {
                self.unpaired.left_out += 1;
                continue;
            }
            let running = (at - from) - (away - before);
            self.ended.push(Ended { name, id, from, to: at, running });
        }
    }

    /// The innermost part in progress.
    pub(super) fn current(&self) -> Option<&str> {
        self.open.last().map(|open| &*open.name)
    }

    /// The innermost ended part at a time.
    pub(super) fn at(&self, time: Nanos) -> Option<&str> {
        let around = |part: &&Ended| part.from <= time && time < part.to;
        // The innermost ends first.
        self.ended.iter().find(around).map(|part| &*part.name)
    }
}

/// The sums of all parts of a thread.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// In the order in which they first began.
    all: Vec<Sum>,
    unpaired: Unpaired,
}

/// All parts of a name.
#[derive(Debug)]
struct Sum {
    name: String,
    running: Histogram,
    /// The number of the longest.
    id: i64,
}

impl Parts {
    /// Adds the parts of a complete cycle.
    pub(super) fn add(&mut self, marks: &Marks) {
        let mut parts: Vec<&Ended> = marks.ended.iter().collect();
        // The outer one of two that begin together ends later.
        parts.sort_by_key(|part| (part.from, std::cmp::Reverse(part.to)));
        for part in parts {
            self.add_part(part);
        }
        let (all, new) = (&mut self.unpaired, marks.unpaired);
        all.without_end += new.without_end;
        all.without_begin += new.without_begin;
        all.left_out += new.left_out;
    }

    fn add_part(&mut self, part: &Ended) {
        let place = match self.all.iter().position(|sum| sum.name == part.name) {
            Some(place) => place,
            None if self.all.len() >= NAMES => {
                self.unpaired.left_out += 1;
                return;
            }
            None => {
                let (name, running) = (part.name.clone(), Histogram::new());
                self.all.push(Sum { name, running, id: part.id });
                self.all.len() - 1
            }
        };
        let sum = &mut self.all[place];
        if sum.running.count() == 0 || part.running > sum.running.max() {
            sum.id = part.id;
        }
        sum.running.record(part.running);
    }

    /// The report. None if the program has no marks in its cycles. `cycles` is the running time of all
    /// cycles.
    pub(super) fn report(&self, cycles: u128) -> Option<PartsReport> {
        let Unpaired { without_end, without_begin, left_out } = self.unpaired;
        if self.all.is_empty() && without_begin + left_out == 0 {
            return None;
        }
        let parts = self.all.iter().map(|sum| PartReport {
            name: sum.name.clone(),
            count: sum.running.count(),
            running: Spread::of(&sum.running),
            share: permille(sum.running.sum(), cycles),
            id: sum.id,
        });
        Some(PartsReport { parts: parts.collect(), without_end, without_begin, left_out })
    }
}

/// A share in thousandths, rounded.
fn permille(part: u128, whole: u128) -> u32 {
    let rounded = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
    u32::try_from(rounded).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(time: u64) -> Nanos {
        Nanos::from_micros(time)
    }

    fn ended(marks: &Marks) -> Vec<(&str, u64, u64)> {
        let micros = |time: Nanos| time.0 / 1000;
        marks.ended.iter().map(|one| (&*one.name, micros(one.from), micros(one.to))).collect()
    }

    #[test]
    fn parts_may_contain_others_and_have_the_time_on_the_cpu() {
        let mut marks = Marks::default();
        marks.begin("control", 7, us(10), us(0));
        marks.begin("filter", 8, us(20), us(0));
        assert_eq!(marks.current(), Some("filter"));
        marks.end("filter", us(50), us(25));
        assert_eq!(marks.current(), Some("control"));
        marks.end("control", us(60), us(25));
        assert_eq!(ended(&marks), [("filter", 20, 50), ("control", 10, 60)]);
        assert_eq!((marks.ended[0].running, marks.ended[1].running), (us(5), us(25)));
        assert_eq!((marks.at(us(30)), marks.at(us(50))), (Some("filter"), Some("control")));
        assert_eq!((marks.at(us(9)), marks.at(us(60))), (None, None));
        let mut parts = Parts::default();
        parts.add(&marks);
        let report = parts.report(50_000).unwrap();
        let found = report.parts.iter().map(|one| (&*one.name, one.count, one.share, one.id));
        assert_eq!(found.collect::<Vec<_>>(), [("control", 1, 500, 7), ("filter", 1, 100, 8)]);
    }

    #[test]
    fn part_without_end_ends_with_what_is_around_it() {
        let mut marks = Marks::default();
        marks.begin("outer", 0, us(1), us(0));
        marks.begin("inner", 0, us(2), us(0));
        marks.end("outer", us(3), us(0));
        marks.end("unknown", us(4), us(0));
        marks.begin("last", 0, us(5), us(0));
        marks.end_all(us(6), us(0));
        assert_eq!(ended(&marks), [("inner", 2, 3), ("outer", 1, 3), ("last", 5, 6)]);
        let mut parts = Parts::default();
        parts.add(&marks);
        let report = parts.report(1).unwrap();
        assert_eq!((report.without_end, report.without_begin, report.left_out), (2, 1, 0));
    }

    #[test]
    fn more_parts_than_the_limits_are_left_out() {
        let mut marks = Marks::default();
        let deep = DEPTH as u64 + 3;
        (0..deep).for_each(|at| marks.begin("deep", 0, us(at), us(0)));
        (0..deep).for_each(|at| marks.end("deep", us(deep + at), us(0)));
        assert_eq!((marks.ended.len(), marks.unpaired.left_out), (DEPTH, 3));
        for at in 0..KEPT as u64 {
            marks.begin("many", 0, us(100 + at), us(0));
            marks.end("many", us(100 + at), us(0));
        }
        let left_out = 3 + DEPTH as u64;
        assert_eq!((marks.ended.len(), marks.unpaired.left_out), (KEPT, left_out));
        let mut parts = Parts::default();
        for name in 0..NAMES + 5 {
            let mut marks = Marks::default();
            marks.begin(&name.to_string(), 0, us(0), us(0));
            marks.end_all(us(1), us(0));
            parts.add(&marks);
        }
        let report = parts.report(1).unwrap();
        assert_eq!((report.parts.len(), report.left_out), (NAMES, 5));
    }

    #[test]
    fn longest_part_gives_its_number() {
        let mut marks = Marks::default();
        for (id, time) in [(4, 10), (-5, 30), (6, 20)] {
            marks.begin("part", id, us(0), us(0));
            marks.end("part", us(time), us(0));
        }
        let mut parts = Parts::default();
        parts.add(&marks);
        assert_eq!(parts.report(1).unwrap().parts[0].id, -5);
        assert_eq!(Parts::default().report(1), None);
    }

    proptest! {
        /// Whatever the marks: each begin is one part or left out, parts lie within one another or
        /// apart, and none runs longer than it lasts.
        #[test]
        fn each_begin_makes_a_part_or_is_left_out(
            script in prop::collection::vec((any::<bool>(), 0..5_u8, 0..50_u64, 0..50_u64), 0..2000),
        ) {
            let mut marks = Marks::default();
            let (mut now, mut away, mut begun) = (us(0), us(0), 0);
            for (begins, name, runs, sleeps) in script {
                now = now + us(runs + sleeps);
                away = away + us(sleeps);
                let name = name.to_string();
                if begins {
                    begun += 1;
                    marks.begin(&name, 0, now, away);
                } else {
                    marks.end(&name, now, away);
                }
            }
            marks.end_all(now, away);
            prop_assert_eq!(marks.ended.len() as u64 + marks.unpaired.left_out, begun);
            prop_assert!(marks.unpaired.without_end <= begun);
            for (place, part) in marks.ended.iter().enumerate() {
                prop_assert!(part.from <= part.to && part.running <= part.to - part.from);
                let later = &marks.ended[place + 1..];
                prop_assert!(later.iter().all(|one| one.from <= part.from || one.from >= part.to));
            }
        }
    }
}
