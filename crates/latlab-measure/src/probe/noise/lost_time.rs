//! Time that a busy loop lost on one CPU.

use super::NAME;
use crate::rig::Rig;
use latlab_core::time::Nanos;

/// Sums over the loop on one CPU.
#[derive(Clone, Copy)]
pub(super) struct LostTime {
    pub(super) cpu: u32,
    watched: Nanos,
    lost: Nanos,
    largest: Nanos,
    loops: u64,
    shortest: Nanos,
}

impl LostTime {
    /// Returns empty sums for this CPU.
    pub(super) fn on(cpu: u32) -> LostTime {
        let (watched, lost, largest, shortest) = (Nanos(0), Nanos(0), Nanos(0), Nanos::MAX);
        LostTime { cpu, watched, lost, largest, loops: 0, shortest }
    }

    /// Adds a gap between two clock readings.
    #[inline]
    pub(super) fn add(&mut self, gap: Nanos, is_noise: bool) {
        self.loops += 1;
        self.watched = self.watched + gap;
        self.shortest = self.shortest.min(gap);
        if is_noise {
            self.lost = self.lost + gap;
            self.largest = self.largest.max(gap);
        }
    }

    /// Adds the figures of this CPU.
    #[expect(clippy::cast_precision_loss, reason = "what is lost is below what can be measured")]
    pub(super) fn report(&self, rig: &mut Rig<'_>) {
        if self.loops == 0 {
            return;
        }
        let mut figure = |what: &str, value: f64, unit| {
            rig.add_figure(NAME, &format!("{what} on CPU {}", self.cpu), value, unit);
        };
        let share = self.lost.0 as f64 / self.watched.0.max(1) as f64;
        figure("share lost", 100.0 * share, "%");
        if self.lost > Nanos(0) {
            figure("largest gap", self.largest.0 as f64, "ns");
        }
        figure("time watched", self.watched.as_secs_f64(), "s");
        figure("loops", self.loops as f64, "loops");
        figure("shortest loop", self.shortest.0 as f64, "ns");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_time_sums_gaps_above_threshold_only() {
        let mut lost = LostTime::on(3);
        for (gap, is_noise) in [(30, false), (20, false), (2_000, true), (50, false)] {
            lost.add(Nanos(gap), is_noise);
        }
        assert_eq!((lost.watched, lost.lost), (Nanos(2_100), Nanos(2_000)));
        assert_eq!((lost.loops, lost.shortest), (4, Nanos(20)));
        assert_eq!(lost.largest, Nanos(2_000));
    }
}
