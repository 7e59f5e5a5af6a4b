//! A probe's samples, and the wake-ups that the kernel saw: which belong together.

use super::Window;
use crate::time::Nanos;
use std::collections::VecDeque;

/// A sample that is late, and what was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// When the probe read the clock.
    pub at: Nanos,
    /// What it recorded.
    pub latency: Nanos,
    /// What happened meanwhile, its ends being those of the sample.
    pub window: Option<Window>,
}

/// The samples and wake-ups of one task that are not paired yet. Both come in order of time.
#[derive(Debug, Default)]
pub struct Pairing {
    samples: VecDeque<(Nanos, Nanos)>,
    windows: VecDeque<Window>,
    /// The last wake-up before the next sample.
    last: Option<Window>,
}

impl Pairing {
    /// The probe recorded a latency.
    pub fn sample(&mut self, at: Nanos, latency: Nanos) {
        self.samples.push_back((at, latency));
    }

    /// The kernel saw a wake-up.
    pub fn window(&mut self, window: Window) {
        self.windows.push_back(window);
    }

    /// The late samples up to `until`; of later ones the wake-up may still be on its way.
    pub fn pairs(&mut self, above: Nanos, until: Nanos) -> Vec<Late> {
        let mut late = Vec::new();
        while let Some(&(at, latency)) = self.samples.front().filter(|(at, _)| *at <= until) {
            self.samples.pop_front();
            while self.windows.front().is_some_and(|window| since(window) <= at) {
                self.last = self.windows.pop_front();
            }
            if latency > above {
                late.push(Late { at, latency, window: self.seen(at, latency) });
            }
        }
        late
    }

    /// The last wake-up within a sample. Or, where the task did not sleep because its time had come
    /// already, that from which on it had the CPU.
    fn seen(&self, at: Nanos, latency: Nanos) -> Option<Window> {
        let due = at - latency;
        let window = self.last.as_ref().filter(|window| window.out >= at)?.clone();
        let expiry = window.expiry.clamp(due, at);
        let or_when_it_ran = |moment| if moment == Nanos(0) { at } else { moment };
        let switched = or_when_it_ran(window.switched);
        let woken = or_when_it_ran(window.waking);
        let waking = if switched >= due { woken } else { due };
        let unreported = !window.is_reported();
        Some(Window { due, expiry, waking, switched, ran: at, unreported, ..window })
    }
}

/// From when on a wake-up may be a sample's.
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
    fn what_was_not_reported_is_known_by_when_the_task_ran() {
        let mut pairing = Pairing::default();
        pairing.sample(Nanos(300), Nanos(30));
        let due = Nanos(260);
        pairing.window(Window { due, expiry: due, switched: Nanos(0), ..woken(290, 310) });
        let late = pairing.pairs(Nanos(1), Nanos(310));
        let window = late[0].window.as_ref().expect("it ran then");
        assert!(window.unreported);
        assert_eq!((window.due, window.expiry), (Nanos(270), Nanos(270)));
        assert_eq!(
            (window.waking, window.switched, window.ran),
            (Nanos(288), Nanos(300), Nanos(300))
        );
    }

    #[test]
    fn each_late_sample_has_the_last_wake_up_within_it() {
        let mut pairing = Pairing::default();
        for (at, latency) in [(100, 10), (200, 10), (300, 30), (305, 2), (400, 10)] {
            pairing.sample(Nanos(at), Nanos(latency));
        }
        // One before the first sample, one within it, two within the third, of which the last goes
        // on through the fourth.
        for (switched, out) in [(50, 60), (95, 101), (280, 285), (290, 310)] {
            pairing.window(woken(switched, out));
        }
        let pairs = pairing.pairs(Nanos(1), Nanos(310));
        let found: Vec<(u64, Option<u64>)> =
            pairs.iter().map(|l| (l.at.0, l.window.as_ref().map(|w| w.switched.0))).collect();
        assert_eq!(found, [(100, Some(95)), (200, None), (300, Some(290)), (305, Some(290))]);
        let third = pairs[2].window.as_ref().expect("it was seen");
        assert_eq!((third.due, third.ran, third.expiry), (Nanos(270), Nanos(300), Nanos(285)));
        let fourth = pairs[3].window.as_ref().expect("it had the CPU");
        assert_eq!((fourth.due, fourth.waking, fourth.ran), (Nanos(303), Nanos(303), Nanos(305)));
        assert_eq!(pairing.pairs(Nanos(10), Nanos::MAX), []);
    }
}
