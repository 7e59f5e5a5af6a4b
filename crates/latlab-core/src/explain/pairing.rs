//! A probe's samples, and the wake-ups that the kernel saw: which belong together.

use super::Window;
use crate::time::Nanos;
use std::collections::VecDeque;

/// A sample that is late, and the wake-up it is of, as far as one was seen.
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
            let window = self.within(at, latency);
            if latency > above {
                late.push(Late { at, latency, window });
            }
        }
        late
    }

    /// The last wake-up within a sample; those before are no sample's.
    fn within(&mut self, at: Nanos, latency: Nanos) -> Option<Window> {
        let due = at - latency;
        let mut last = None;
        while let Some(window) = self.windows.front().filter(|window| window.switched <= at) {
            last = (window.switched >= due).then(|| window.clone());
            self.windows.pop_front();
        }
        last.map(|window| Window { expiry: window.expiry.max(due), due, ran: at, ..window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(switched: u64) -> Window {
        Window { switched: Nanos(switched), expiry: Nanos(switched - 5), ..Window::default() }
    }

    #[test]
    fn each_late_sample_has_the_last_wake_up_within_it() {
        let mut pairing = Pairing::default();
        for (at, latency) in [(100, 10), (200, 10), (300, 30), (400, 10)] {
            pairing.sample(Nanos(at), Nanos(latency));
        }
        // One before the first sample, one within it, two within the third.
        [50, 95, 280, 290].into_iter().for_each(|switched| pairing.window(woken(switched)));
        let pairs = pairing.pairs(Nanos(9), Nanos(300));
        let found: Vec<(u64, Option<u64>)> =
            pairs.iter().map(|l| (l.at.0, l.window.as_ref().map(|w| w.switched.0))).collect();
        assert_eq!(found, [(100, Some(95)), (200, None), (300, Some(290))]);
        let third = pairs[2].window.as_ref().expect("it was seen");
        assert_eq!((third.due, third.ran, third.expiry), (Nanos(270), Nanos(300), Nanos(285)));
        assert_eq!(pairing.pairs(Nanos(10), Nanos::MAX), []);
    }
}
