//! Lower bounds of the time that the hypervisor stole from a CPU before an event.

use super::{Event, EventKind, Line, Window};
use crate::time::Nanos;

impl Window {
    /// Returns a lower bound of the time stolen between `from` and `to`, from the first event after
    /// `from`; the event before it on that CPU was at `last`. Stolen time that fits before `from`
    /// or after `to` does not count. If the event is an interrupt that has been pending since
    /// `from`, no time was stolen before `from`: a CPU that runs takes a pending interrupt.
    pub(super) fn surely_stolen(
        &self,
        event: &Event,
        last: Nanos,
        (from, to): (Nanos, Nanos),
    ) -> Nanos {
        let end = event.at.min(to);
        let before = if self.was_pending(event) { Nanos(0) } else { from - last };
        let outside = before + (event.at - end);
        (event.stolen - outside).min(end - from)
    }

    /// Returns a lower bound of the time stolen between `from` and `to`, from the events of the CPU
    /// in order of time. `to` is the time of one of them.
    pub(super) fn stolen_between(&self, events: &[Event], from: Nanos, to: Nanos) -> Nanos {
        let (before, after) = events.split_at(events.partition_point(|event| event.at <= from));
        let (mut last, mut sum) = (before.last().map_or(from, |event| event.at), Nanos(0));
        for event in after.iter().take_while(|event| event.at <= to) {
            sum = sum + self.surely_stolen(event, last, (last.max(from), to));
            last = event.at;
        }
        sum
    }

    /// Whether this interrupt is the one that the wake-up waited for: the timer interrupt after the
    /// task was due, or the reschedule interrupt after another CPU woke it. Others may have been
    /// raised just before they were taken.
    fn was_pending(&self, event: &Event) -> bool {
        match event.kind {
            EventKind::Interrupt { line: Line::Timer, .. } => {
                event.at > self.expiry.max(self.due) && event.at <= self.waking
            }
            EventKind::Interrupt { line: Line::Reschedule, .. } => {
                event.at > self.waking && event.at <= self.switched
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::InterruptedContext;
    use super::super::any::event;
    use super::*;

    /// Due at 100, woken at 200, switched to at 300.
    fn window() -> Window {
        let moments = [100, 100, 200, 300].map(Nanos);
        let [due, expiry, waking, switched] = moments;
        Window { due, expiry, waking, switched, ran: switched, ..Window::default() }
    }

    fn interrupt(at: u64, line: Line) -> Event {
        let what = EventKind::Interrupt { line, context: InterruptedContext::default() };
        Event { stolen: Nanos(60), ..event(at, what) }
    }

    #[test]
    fn surely_stolen_excludes_time_that_fits_outside() {
        let softirq = Event { stolen: Nanos(60), ..event(180, EventKind::Softirq(1)) };
        let sure =
            |last, to| window().surely_stolen(&softirq, Nanos(last), (Nanos(100), Nanos(to)));
        assert_eq!(sure(100, 200), Nanos(60));
        assert_eq!(sure(70, 200), Nanos(30));
        assert_eq!(sure(70, 160), Nanos(10));
        assert_eq!(sure(10, 200), Nanos(0));
    }

    #[test]
    fn stolen_between_excludes_time_before_the_first_event() {
        let softirq = |at| Event { stolen: Nanos(60), ..event(at, EventKind::Softirq(1)) };
        let events = [event(10, EventKind::SoftirqEnd), softirq(110), softirq(180), softirq(190)];
        let between = |from, to| window().stolen_between(&events, Nanos(from), Nanos(to));
        assert_eq!(between(100, 110), Nanos(0));
        assert_eq!(between(100, 180), Nanos(60));
        assert_eq!(between(100, 190), Nanos(70));
    }

    #[test]
    fn surely_stolen_counts_all_time_before_a_pending_interrupt() {
        let sure = |at, line, from| {
            let span = (Nanos(from), Nanos(300));
            window().surely_stolen(&interrupt(at, line), Nanos(10), span)
        };
        assert_eq!(sure(180, Line::Timer, 100), Nanos(60));
        assert_eq!(sure(180, Line::Reschedule, 100), Nanos(0));
        assert_eq!(sure(180, Line::Device(1), 100), Nanos(0));
        assert_eq!(sure(280, Line::Reschedule, 200), Nanos(60));
        assert_eq!(sure(280, Line::Timer, 200), Nanos(0), "a tick after the waking");
    }
}
