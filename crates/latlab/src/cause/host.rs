//! The host had the CPU.

use super::{Cause, DELIVERY, is_idle};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};

/// The host of this virtual machine let something else have the CPU, or brought an interrupt late.
///
/// Recognized by evidence only: an interrupt that came late upon a program, while which interrupts
/// are never off; or a stretch of at least half of the latency that the time stolen by the host
/// covers (steal time: Documentation/virt/kvm/x86/msr.rst, `MSR_KVM_STEAL_TIME`; `proc_stat(5)`).
/// What the host does to an idle CPU is in `idle-exit`, and to the kernel in whatever the kernel
/// did: from within, they can't be told apart.
#[derive(Debug, clap::Args)]
pub(super) struct Host;

impl Cause for Host {
    const ABOUT: About =
        About { name: "host", summary: "the host of this virtual machine had the CPU" };

    fn claim(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        if !machine.hypervisor {
            return None;
        }
        let length = stretch.length();
        let stolen = length <= window.stolen && length + length > window.latency();
        let late = stretch.phase == Phase::Due
            && !is_idle(stretch)
            && stretch
                .next_interrupt(window)
                .is_some_and(|next| next.upon.user && next.late >= DELIVERY);
        (stretch.stolen || stolen || late).then(Who::default)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn an_interrupt_late_upon_a_program_is_the_hosts() {
        let window = scene(&[(18_000, STRESS, timer_upon(PROGRAM))]);
        assert_eq!(charged(&window, GUEST)[..2], [("host", 8_000), ("interrupt", 12_000)]);
        assert_eq!(charged(&window, METAL)[0], ("interrupt", 20_000));
    }

    #[test]
    fn what_was_stolen_is_charged_once() {
        let mut window =
            scene(&[(10_500, STRESS, timer_upon(KERNEL)), (12_000, STRESS, What::InterruptEnd)]);
        window.waking = Nanos(11_000);
        assert!(!charged(&window, GUEST).iter().any(|(cause, _)| *cause == "host"));
        window.stolen = Nanos(18_500);
        let charges = charged(&window, GUEST);
        assert_eq!(charges.iter().filter(|(cause, _)| *cause == "host").count(), 1);
        assert!(charges.contains(&("host", 18_000)), "{charges:?}");
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "host"));
    }
}
