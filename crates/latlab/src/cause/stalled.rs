//! A CPU of a virtual machine did not hear what it was told.

use super::{Cause, DELIVERY, is_idle};
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::evidence::AT_ONCE;
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Line, Window};

/// An interrupt had been sent to the CPU, and the CPU took it late: the kernel had interrupts off,
/// or the host of this virtual machine held it without counting that as stolen. Nothing tells which.
///
/// Recognized by what neither `host` nor `interrupts-off` claims: an interrupt that comes upon the
/// kernel later than kernels have them off, or one that does not say what it came upon; where another
/// CPU calls, later than 10 us. The task is the one that had the CPU, and need not be to blame.
#[derive(Debug, clap::Args)]
pub(super) struct Stalled;

impl Cause for Stalled {
    const ABOUT: About = About {
        name: "stalled",
        summary: "an interrupt came late: the kernel had them off, or the host held the CPU",
    };

    fn claim(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        if !machine.hypervisor || is_idle(stretch) {
            return None;
        }
        let next = stretch.next_interrupt(window)?;
        let late = match stretch.phase {
            Phase::Due => next.late >= DELIVERY && !next.upon.user,
            Phase::Runnable => {
                let elsewhere = window.waker_cpu != window.cpu || window.was_moved();
                elsewhere && next.line == Line::Reschedule && next.late >= AT_ONCE
            }
            Phase::Slack | Phase::Running => false,
        };
        let (task, stack) = (stretch.doing.task, window.interrupted(next.upon));
        late.then_some(Who { task, stack, ..Who::default() })
    }
}
