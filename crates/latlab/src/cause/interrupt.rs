//! An interrupt handler ran.

use super::{Cause, DELIVERY, is_idle};
use crate::part::{About, Describe};
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{Line, Window};

/// An interrupt handler ran: that of any interrupt, the waking one included.
///
/// Recognized by `irq:irq_handler_entry` and the `irq_vectors` events (on arm64 the `ipi` events), from
/// entry to exit. The delivery from the device to the handler is included if nothing can have delayed
/// it: if it took less than a microsecond, or if the interrupt came in user space, where interrupts
/// are never disabled (Documentation/core-api/genericirq.rst).
#[derive(Debug, clap::Args)]
pub(super) struct Interrupt;

impl Describe for Interrupt {
    const ABOUT: About = About {
        name: "interrupt",
        summary: "an interrupt handler ran, or its interrupt was being delivered",
    };
}

impl Cause for Interrupt {
    fn claim(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Culprit> {
        let activity = &segment.activity;
        let alone = activity.timer.filter(|_| activity.softirq.is_none()).map(|_| Line::Timer);
        let handled = activity.interrupt.map(|(line, _)| line).or(alone);
        let line = handled.or_else(|| delivered(segment, window, machine))?;
        Some(Culprit { line: Some(line), ..Culprit::default() })
    }
}

/// The interrupt that is being delivered, if nothing delays it.
fn delivered(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Line> {
    if segment.phase != Phase::Due || is_idle(segment) {
        return None;
    }
    let next = segment.next_interrupt(window)?;
    let free = next.late < DELIVERY || (next.context.user && !machine.hypervisor);
    free.then_some(next.line)
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn handlers_are_charged_with_delivery_and_named_by_line() {
        let nvme = Line::Device(24);
        let window = scene(&[
            (10_300, STRESS, timer_upon(KERNEL)),
            (21_000, STRESS, EventKind::InterruptEnd),
            (22_000, STRESS, EventKind::Interrupt { line: nvme, context: KERNEL }),
            (25_000, STRESS, EventKind::InterruptEnd),
        ]);
        let charges = charged(&window, METAL);
        assert_eq!(charges[0], ("interrupt", 11_000));
        assert_eq!(charges[2], ("interrupt", 3_000));
        let lines: Vec<Option<Line>> = explain(&window, &METAL)
            .charges
            .iter()
            .filter(|charge| charge.cause == "interrupt")
            .map(|charge| charge.culprit.line)
            .collect();
        assert_eq!(lines, [Some(Line::Timer), Some(nvme)]);
    }

    #[test]
    fn timer_callback_without_interrupt_event_is_charged_to_timer_interrupt() {
        let expire = EventKind::Timer { function: 8, due: Nanos(10_000) };
        let window = scene(&[(19_000, STRESS, expire), (21_000, STRESS, EventKind::TimerEnd)]);
        let explained = explain(&window, &METAL);
        assert_eq!(explained.charges[0].culprit.line, Some(Line::Timer));
        assert_eq!(explained.unexplained, Nanos(18_000));
    }
}
