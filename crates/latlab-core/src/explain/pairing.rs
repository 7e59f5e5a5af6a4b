//! Pairing of a probe's samples with the wake-ups that the kernel reports.

use super::Window;
use crate::time::Nanos;
use std::collections::VecDeque;

/// A late sample and its wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateSample {
    /// When the probe read the clock.
    pub at: Nanos,
    /// The latency that it recorded.
    pub latency: Nanos,
    /// The wake-up, cut to the time of the sample; none if the kernel did not report it.
    pub window: Option<Window>,
}

/// The samples and wake-ups of one task that are not paired yet. Both arrive in order of time.
#[derive(Debug, Default)]
pub struct Pairing {
    samples: VecDeque<(Nanos, Nanos)>,
    windows: VecDeque<Window>,
    /// The last wake-up before the next sample.
    last: Option<Window>,
}

impl Pairing {
    /// Adds a latency that the probe recorded.
    pub fn sample(&mut self, at: Nanos, latency: Nanos) {
        self.samples.push_back((at, latency));
    }

    /// Adds a wake-up that the kernel reported.
    pub fn window(&mut self, window: Window) {
        self.windows.push_back(window);
    }

    /// Returns the samples up to `until` that are later than `above`. Wake-ups of later samples may
    /// not have arrived yet.
    pub fn pairs(&mut self, above: Nanos, until: Nanos) -> Vec<LateSample> {
        let mut late = Vec::new();
        while let Some(&(at, latency)) = self.samples.front().filter(|(at, _)| *at <= until) {
            self.samples.pop_front();
            while self.windows.front().is_some_and(|window| since(window) <= at) {
                self.last = self.windows.pop_front();
            }
            if latency > above {
                late.push(LateSample { at, latency, window: self.wakeup(at, latency) });
            }
        }
        late
    }

    /// The last wake-up within a sample. Where the task did not sleep because its time had already
    /// passed, the last one before it.
    fn wakeup(&self, at: Nanos, latency: Nanos) -> Option<Window> {
        let due = at - latency;
        let window = self.last.as_ref().filter(|window| window.out >= at)?.clone();
        let by_timer = window.expiry < window.waking || window.waking == Nanos(0);
        let expiry = if by_timer { window.expiry.clamp(due, at) } else { due };
        let or_ran = |moment| if moment == Nanos(0) { at } else { moment };
        let switched = or_ran(window.switched);
        let woken = or_ran(window.waking);
        let waking = if switched >= due { woken } else { due };
        let unreported = !window.is_reported();
        // The recorder keeps what came before the moment that it takes for due.
        let is_cut = window.events.first().is_none_or(|event| event.at > due);
        let torn = window.torn || (due < window.due && is_cut);
        Some(Window { due, expiry, waking, switched, ran: at, unreported, torn, ..window })
    }
}

/// The time from which a wake-up may belong to a sample.
fn since(window: &Window) -> Nanos {
    if window.is_reported() { window.switched } else { window.due }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(switched: u64, out: u64) -> Window {
        let (expiry, waking) = (Nanos(switched - 5), Nanos(switched - 2));
        let (switched, out) = (Nanos(switched), Nanos(out));
        Window { expiry, waking, switched, out, ..Window::default() }
    }

    #[test]
    fn unreported_wake_up_is_paired_by_when_the_task_ran() {
        let mut pairing = Pairing::default();
        pairing.sample(Nanos(300), Nanos(30));
        let due = Nanos(260);
        pairing.window(Window { due, expiry: due, switched: Nanos(0), ..woken(290, 310) });
        let late = pairing.pairs(Nanos(1), Nanos(310));
        let window = late[0].window.as_ref().expect("the task ran then");
        assert!(window.unreported);
        assert_eq!((window.due, window.expiry), (Nanos(270), Nanos(270)));
        assert_eq!(
            (window.waking, window.switched, window.ran),
            (Nanos(288), Nanos(300), Nanos(300))
        );
    }

    #[test]
    fn interrupt_that_was_due_before_the_wake_up_is_no_timer_slack() {
        let mut pairing = Pairing::default();
        pairing.sample(Nanos(300), Nanos(100));
        let waking = Nanos(288);
        pairing.window(Window { due: waking, expiry: waking, ..woken(290, 310) });
        let window = pairing.pairs(Nanos(1), Nanos(310)).remove(0).window.expect("it is there");
        assert_eq!((window.due, window.expiry, window.waking), (Nanos(200), Nanos(200), waking));
        assert!(window.torn, "nothing is known of what came before the wake-up");
    }

    #[test]
    fn late_sample_has_the_last_wake_up_within_it() {
        let mut pairing = Pairing::default();
        for (at, latency) in [(100, 10), (200, 10), (300, 30), (305, 2), (400, 10)] {
            pairing.sample(Nanos(at), Nanos(latency));
        }
        // One before the first sample, one within it, two within the third; the last of these runs
        // through the fourth.
        for (switched, out) in [(50, 60), (95, 101), (280, 285), (290, 310)] {
            pairing.window(woken(switched, out));
        }
        let pairs = pairing.pairs(Nanos(1), Nanos(310));
        let found: Vec<(u64, Option<u64>)> =
            pairs.iter().map(|l| (l.at.0, l.window.as_ref().map(|w| w.switched.0))).collect();
        assert_eq!(found, [(100, Some(95)), (200, None), (300, Some(290)), (305, Some(290))]);
        let third = pairs[2].window.as_ref().expect("it was reported");
        assert_eq!((third.due, third.ran, third.expiry), (Nanos(270), Nanos(300), Nanos(285)));
        let fourth = pairs[3].window.as_ref().expect("it had the CPU");
        assert_eq!((fourth.due, fourth.waking, fourth.ran), (Nanos(303), Nanos(303), Nanos(305)));
        assert_eq!(pairing.pairs(Nanos(10), Nanos::MAX), []);
    }
}
