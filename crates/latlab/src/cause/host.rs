//! The host had the CPU.

use super::{Cause, DELIVERY, is_idle};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};

/// The host of this virtual machine let something else have the CPU, or brought an interrupt late.
///
/// Recognized by evidence only: an interrupt that came late upon a program, while which interrupts
/// are never off; or stolen time, as much as that was (Documentation/virt/kvm/x86/msr.rst,
/// `MSR_KVM_STEAL_TIME`). What KVM says of it is read with each event, and what is stolen between two
/// stands before the second; where it could have been before the task was due or woken, it is not
/// counted, unless the second is the interrupt for which the wake-up waited: a CPU that runs takes
/// it. Other hypervisors' is counted at ticks (`proc_stat(5)`): there it has to cover a stretch of
/// more than half of the latency. What the host does without counting it as stolen is in `idle-exit`
/// where the CPU was idle, and else in whatever the kernel did: from within, they can't be told
/// apart.
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
    fn a_stall_is_the_hosts_as_far_as_its_time_was_stolen() {
        let mut window =
            scene(&[(1_000, STRESS, What::SoftirqEnd), (18_000, STRESS, timer_upon(KERNEL))]);
        window.events[1].stolen = Nanos(6_000);
        let expected = [("interrupts-off", 2_000), ("host", 6_000), ("interrupt", 12_000)];
        assert_eq!(charged(&window, GUEST)[..3], expected);
        assert_eq!(charged(&window, METAL)[0], ("interrupts-off", 8_000));
        window.events[1].stolen = Nanos(17_000);
        assert_eq!(charged(&window, GUEST)[0], ("host", 8_000));
    }

    #[test]
    fn what_a_tick_after_a_waking_from_elsewhere_carries_may_be_from_before() {
        let told_by = |what| {
            let mut window = scene(&[(1_000, PEER, What::SoftirqEnd), (25_000, PEER, what)]);
            (window.waker_cpu, window.due, window.expiry) = (1, window.waking, window.waking);
            window.events[1].stolen = Nanos(15_000);
            charged(&window, GUEST)[0]
        };
        assert_eq!(told_by(timer_upon(PROGRAM)), ("equal-priority", 5_000));
        assert_eq!(told_by(CALL), ("host", 5_000), "that call was pending");
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
