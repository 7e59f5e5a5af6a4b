//! The number of windows per request, and the time after which a Consumer counts as hung.

use latlab_core::time::Nanos;

/// Mean time of a window, including all that is done before and after it; none before the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace(Option<Nanos>);

/// Longest time for a request: between two of them the scan can be ended, and the CPU rests.
const REQUEST: Nanos = Nanos::from_millis(250);
/// Most windows in a request.
const MOST: u64 = 16;
/// Time that is always allowed in addition.
const GRACE: Nanos = Nanos::from_secs(10);
/// Factor by which a window may take longer than before.
const LONGER: u64 = 10;

impl Pace {
    /// Before the first window.
    pub(super) fn unknown() -> Pace {
        Pace(None)
    }

    /// The pace of a request for this many windows, which took this time.
    pub(super) fn after(windows: usize, took: Nanos) -> Pace {
        Pace(Some(Nanos(took.0 / windows.max(1) as u64)))
    }

    /// Number of windows for the next request.
    pub(super) fn windows(self) -> usize {
        let fit = self.0.map_or(1, |each| REQUEST.0 / each.0.max(1));
        usize::try_from(fit.clamp(1, MOST)).unwrap_or(1)
    }

    /// Longest time to wait for this many windows.
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
    fn pace_requests_long_windows_one_by_one_and_waits_longer() {
        assert_eq!((Pace::unknown().windows(), Pace::unknown().patience(1)), (1, GRACE + GRACE));
        let short = Pace::after(1, Nanos::from_micros(300));
        assert_eq!((short.windows() as u64, short.patience(16).0 / 1_000_000), (MOST, 10_048));
        let long = Pace::after(2, Nanos::from_secs(6));
        assert_eq!((long.windows(), long.patience(1)), (1, Nanos::from_secs(40)));
        assert_eq!(Pace::after(4, Nanos::from_millis(100)).windows(), 10);
    }
}
