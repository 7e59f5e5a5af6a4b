//! How many windows are ordered at a time, and when a Consumer counts as hung.

use latlab_core::time::Nanos;

/// What is known of the time that a window takes, with all that is done before and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace(Option<Nanos>);

/// So long an order may take: so often a request to end is heard, and the CPU has a rest.
const ORDER: Nanos = Nanos::from_millis(250);
/// The most windows in an order.
const MOST: u64 = 16;
/// How long anything may take for no reason that we know of.
const GRACE: Nanos = Nanos::from_secs(10);
/// By how much more than before a window may take.
const LONGER: u64 = 10;

impl Pace {
    /// Before the first window.
    pub(super) fn unknown() -> Pace {
        Pace(None)
    }

    /// After so many windows that took so long.
    pub(super) fn after(windows: usize, took: Nanos) -> Pace {
        Pace(Some(Nanos(took.0 / windows.max(1) as u64)))
    }

    /// How many windows to order now.
    pub(super) fn windows(self) -> usize {
        let fit = self.0.map_or(1, |each| ORDER.0 / each.0.max(1));
        usize::try_from(fit.clamp(1, MOST)).unwrap_or(1)
    }

    /// How long to wait for so many.
    pub(super) fn patience(self, windows: usize) -> Nanos {
        match self.0 {
            None => GRACE + GRACE,
            Some(each) => {
                GRACE + Nanos(each.0.saturating_mul(LONGER).saturating_mul(windows as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_windows_are_ordered_one_by_one_and_waited_for() {
        assert_eq!((Pace::unknown().windows(), Pace::unknown().patience(1)), (1, GRACE + GRACE));
        let short = Pace::after(1, Nanos::from_micros(300));
        assert_eq!((short.windows() as u64, short.patience(16).0 / 1_000_000), (MOST, 10_048));
        let long = Pace::after(2, Nanos::from_secs(6));
        assert_eq!((long.windows(), long.patience(1)), (1, Nanos::from_secs(40)));
        assert_eq!(Pace::after(4, Nanos::from_millis(100)).windows(), 10);
    }
}
