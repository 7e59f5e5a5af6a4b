//! An interrupt handler ran.

use super::{Cause, DELIVERY, is_idle};
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_core::explain::{Line, Window};
use latlab_part::part::{About, Describe};

/// The handler of any interrupt ran, the waking one included.
///
/// Recognized by `irq:irq_handler_entry` and the `irq_vectors` events (on arm64 the `ipi` events), from
/// entry to exit. Of a function call from another CPU, the function is named, and who asked for it
/// (`csd:csd_queue_cpu`, `csd:csd_function_entry`, Linux 6.4): a TLB shootdown is
/// `flush_tlb_func`. The delivery from the device to the handler is included if nothing can have delayed
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
        let called = activity.called.filter(|_| line == Line::Call);
        let sender = called.map(|call| (call.sender, call.cpu));
        let stack = called.map(|call| call.function).into_iter().collect();
        Some(Culprit { line: Some(line), sender, stack, ..Culprit::default() })
    }
}

/// The interrupt that is being delivered, if nothing delays it.
fn delivered(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Line> {
    if !window.waits_for_interrupt(segment) || is_idle(segment) {
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
    fn function_call_names_function_and_who_asked_for_it() {
        let context = InterruptedContext::default();
        let call = Call { function: 77, sender: task(STRESS), cpu: 1 };
        let window = scene(&[
            (10_300, STRESS, timer_upon(KERNEL)),
            (20_000, STRESS, EventKind::InterruptEnd),
            (20_100, STRESS, EventKind::Interrupt { line: Line::Call, context }),
            (20_200, STRESS, EventKind::Called(call)),
            (23_200, STRESS, EventKind::InterruptEnd),
            (23_300, STRESS, EventKind::Interrupt { line: Line::Call, context }),
            (23_500, STRESS, EventKind::InterruptEnd),
        ]);
        let charges = explain(&window, &METAL).charges;
        let of = |length| charges.iter().find(|charge| charge.to - charge.from == Nanos(length));
        let named = of(3_000).expect("the function is a charge").culprit.clone();
        assert_eq!((named.sender, named.stack), (Some((task(STRESS), 1)), vec![77]));
        // The next interrupt is not blamed on the caller of the one before.
        let next = of(200).expect("the second interrupt is a charge").culprit.clone();
        assert_eq!((next.sender, next.line), (None, Some(Line::Call)));
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
