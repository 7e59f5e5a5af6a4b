//! Decisions of a flight recorder that runs for weeks: which late wake-ups it keeps, in bounded
//! memory and space.

use crate::time::Nanos;

/// Limit on the rate of records: a number at once, and then one in each interval.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    burst: u32,
    interval: Nanos,
    left: u32,
    /// When the last one was granted again.
    refilled: Nanos,
}

impl Allowance {
    /// Allows `burst` records at once, and one more after each `interval`, which is not zero.
    pub fn new(burst: u32, interval: Nanos, now: Nanos) -> Allowance {
        Allowance { burst, interval, left: burst, refilled: now }
    }

    /// Whether a record may be written now; if so, it is counted.
    pub fn take(&mut self, now: Nanos) -> bool {
        let passed = (now - self.refilled).0 / self.interval.0.max(1);
        self.left =
            self.burst.min(self.left.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX)));
        self.refilled = self.refilled + Nanos(passed * self.interval.0);
        let allowed = self.left > 0;
        self.left -= u32::from(allowed);
        allowed
    }
}

/// A record in the folder of a flight recorder. After a start, the names show the order in which
/// they were written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept {
    /// Its file name, which begins with the wall-clock time.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Adds a record that was just written, takes the oldest ones until all have at most `limit` bytes, and
/// returns them. The new one is kept in any case. `records` are in the order in which they were
/// written: the wall clock may have been set back meanwhile, so that their names may not be.
pub fn keep(records: &mut Vec<Kept>, new: Kept, limit: u64) -> Vec<Kept> {
    // A record of the same name was overwritten.
    records.retain(|kept| kept.name != new.name);
    records.push(new);
    let mut room = limit;
    let fits = |kept: &&Kept| {
        let fits = kept.size <= room;
        room = room.saturating_sub(kept.size);
        fits
    };
    let fitting = records.iter().rev().take_while(fits).count().max(1);
    let superfluous = records.len().saturating_sub(fitting);
    records.drain(..superfluous).collect()
}

/// Returns the file name of a record, by the wall-clock time in nanoseconds since 1970 and the name
/// of the task. Names in order are in the order of time.
pub fn file_name(at: Nanos, task: &str) -> String {
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let task: String = task.chars().map(harmless).collect();
    format!("{PREFIX}{:010}.{:06}-{task}.json", at.0 / 1_000_000_000, at.0 / 1_000 % 1_000_000)
}

/// Whether a file has a name that [`file_name`] returns, so that it may be removed.
pub fn is_ours(name: &str) -> bool {
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|c| c.is_ascii_digit());
    let parts = || {
        let rest = name.strip_prefix(PREFIX)?.strip_suffix(".json")?;
        let (time, _) = rest.split_once('-')?;
        time.split_once('.')
    };
    parts().is_some_and(|(seconds, micros)| digits(seconds, 10) && digits(micros, 6))
}

/// The beginning of the names of records.
const PREFIX: &str = "late-";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    #[test]
    fn allowance_is_burst_and_then_one_in_each_interval() {
        let mut allowance = Allowance::new(3, SECOND, Nanos(0));
        let mut taken = |ms: u64| allowance.take(Nanos::from_millis(ms));
        let at_once = [0, 0, 0, 0, 999].map(&mut taken);
        assert_eq!(at_once, [true, true, true, false, false]);
        assert_eq!(
            [1000, 1001, 2500, 2999, 3000].map(&mut taken),
            [true, false, true, false, true]
        );
        let later = [60_000; 4].map(&mut taken);
        assert_eq!(later, [true, true, true, false]);
    }

    proptest! {
        #[test]
        fn oldest_records_are_superfluous_and_others_fit(
            sizes in proptest::collection::vec(0..100u64, 0..30),
            limit in 0..1000u64,
        ) {
            let kept = |(nth, size): (usize, &u64)| Kept { name: format!("{nth:03}"), size: *size };
            let all: Vec<Kept> = sizes.iter().enumerate().map(kept).collect();
            let Some((new, written)) = all.split_last() else { return Ok(()) };
            let mut rest = written.to_vec();
            let removed = keep(&mut rest, new.clone(), limit);
            prop_assert_eq!([removed.clone(), rest.clone()].concat(), all);
            let size = |records: &[Kept]| records.iter().map(|one| one.size).sum::<u64>();
            prop_assert!(rest.len() <= 1 || size(&rest) <= limit);
            if let Some(last) = removed.last() {
                prop_assert!(size(&rest) + last.size > limit);
            }
        }

        #[test]
        fn names_are_in_order_of_time_and_ours(task in "\\PC{0,15}", at in 0..4_000_000_000_000_000_000u64) {
            let name = file_name(Nanos(at), &task);
            prop_assert!(is_ours(&name), "{}", name);
            prop_assert!(!name.contains('/') && !name.contains(' '));
            prop_assert!(name < file_name(Nanos(at + 1_000_000), "a"));
        }
    }

    #[test]
    fn new_record_is_kept_after_the_clock_was_set_back() {
        let kept = |name: &str| Kept { name: name.to_owned(), size: 100 };
        let mut records = vec![kept("late-8"), kept("late-9")];
        assert_eq!(keep(&mut records, kept("late-1"), 200), [kept("late-8")]);
        assert_eq!(records, [kept("late-9"), kept("late-1")]);
        assert_eq!(keep(&mut records, kept("late-9"), 200), []);
        assert_eq!(records, [kept("late-1"), kept("late-9")]);
    }

    #[test]
    fn other_files_are_not_ours() {
        for name in ["late-1.json", "late-player.json", "why.json", "late-0123456789.12345a-x.json"]
        {
            assert!(!is_ours(name), "{name}");
        }
    }
}
