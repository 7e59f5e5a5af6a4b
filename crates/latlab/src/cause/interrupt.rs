//! The handler of an interrupt ran, or it was on its way.

use super::{Cause, DELIVERY, is_idle};
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Line, Window};

/// The handler of an interrupt ran: of any, that which woke the task included.
///
/// Recognized by `irq:irq_handler_entry` and the `irq_vectors` events, from entry to exit. The way
/// from the device to the handler is counted as well, where nothing can have been in it: less than
/// a microsecond, or upon a program, while which interrupts are never off
/// (Documentation/core-api/genericirq.rst).
#[derive(Debug, clap::Args)]
pub(super) struct Interrupt;

impl Cause for Interrupt {
    const ABOUT: About = About {
        name: "interrupt",
        summary: "the handler of an interrupt ran, or was being reached",
    };

    fn claim(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        let doing = &stretch.doing;
        let alone = doing.timer.filter(|_| doing.softirq.is_none()).map(|_| Line::Timer);
        let handled = doing.interrupt.map(|(line, _)| line).or(alone);
        let line = handled.or_else(|| delivered(stretch, window, machine))?;
        Some(Who { line: Some(line), ..Who::default() })
    }
}

/// The interrupt that is on its way with nothing to keep it off.
fn delivered(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Line> {
    if stretch.phase != Phase::Due || is_idle(stretch) {
        return None;
    }
    let next = stretch.next_interrupt(window)?;
    let free = next.late < DELIVERY || (next.upon.user && !machine.hypervisor);
    free.then_some(next.line)
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn every_handler_counts_with_its_way_and_says_which_it_is() {
        let nvme = Line::Device(24);
        let window = scene(&[
            (10_300, STRESS, timer_upon(KERNEL)),
            (21_000, STRESS, What::InterruptEnd),
            (22_000, STRESS, What::Interrupt { line: nvme, upon: KERNEL }),
            (25_000, STRESS, What::InterruptEnd),
        ]);
        let charges = charged(&window, METAL);
        assert_eq!(charges[0], ("interrupt", 11_000));
        assert_eq!(charges[2], ("interrupt", 3_000));
        let lines: Vec<Option<Line>> = explain(&window, &METAL)
            .charges
            .iter()
            .filter(|charge| charge.cause == "interrupt")
            .map(|charge| charge.who.line)
            .collect();
        assert_eq!(lines, [Some(Line::Timer), Some(nvme)]);
    }

    #[test]
    fn a_callback_without_its_interrupts_events_tells_of_it() {
        let expire = What::Timer { function: 8, due: Nanos(10_000) };
        let window = scene(&[(19_000, STRESS, expire), (21_000, STRESS, What::TimerEnd)]);
        let explained = explain(&window, &METAL);
        assert_eq!(explained.charges[0].who.line, Some(Line::Timer));
        assert_eq!(explained.unexplained, Nanos(18_000));
    }
}
