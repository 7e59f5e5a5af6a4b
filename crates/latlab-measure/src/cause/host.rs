//! The host of a virtual machine took the CPU.

use super::{Cause, DELIVERY, is_idle};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_part::part::{About, Describe};

/// The host of this virtual machine ran something else on the CPU, or delivered an interrupt late.
///
/// Recognized by evidence only: an interrupt that comes late and in user space, where interrupts
/// are never disabled; or stolen time, up to its amount (Documentation/virt/kvm/x86/msr.rst,
/// `MSR_KVM_STEAL_TIME`). KVM's counter of stolen time is read with each event, and what was stolen
/// between two events is placed before the second one. Where it may have been stolen before the
/// task was due or woken, it does not count, unless the second event is the interrupt that the
/// wake-up waited for: a CPU that runs takes it at once. Other hypervisors count stolen time at
/// ticks (`proc_stat(5)`): it has to cover a segment of more than half of the latency. Time that
/// the host takes without counting it as stolen is in `idle-exit` if the CPU was idle, and
/// otherwise in the kernel's activity at that time: the guest can't distinguish them.
#[derive(Debug, clap::Args)]
pub(super) struct Host;

impl Describe for Host {
    const ABOUT: About =
        About { name: "host", summary: "the host of this virtual machine took the CPU" };
}

impl Cause for Host {
    fn claim(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Culprit> {
        if !machine.hypervisor {
            return None;
        }
        let length = segment.length();
        let stolen = length <= window.stolen && length + length > window.latency();
        let late = window.waits_for_interrupt(segment)
            && !is_idle(segment)
            && segment
                .next_interrupt(window)
                .is_some_and(|next| next.context.user && next.late >= DELIVERY);
        (segment.stolen || stolen || late).then(Culprit::default)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn late_interrupt_of_user_space_is_charged_to_host_in_guest_only() {
        let window = scene(&[(18_000, STRESS, timer_upon(PROGRAM))]);
        assert_eq!(charged(&window, GUEST)[..2], [("host", 8_000), ("interrupt", 12_000)]);
        assert_eq!(charged(&window, METAL)[0], ("interrupt", 20_000));
    }

    #[test]
    fn late_interrupt_of_kernel_is_charged_to_host_up_to_stolen_time() {
        let mut window =
            scene(&[(1_000, STRESS, EventKind::SoftirqEnd), (18_000, STRESS, timer_upon(KERNEL))]);
        window.events[1].stolen = Nanos(6_000);
        let expected = [("interrupts-off", 2_000), ("host", 6_000), ("interrupt", 12_000)];
        assert_eq!(charged(&window, GUEST)[..3], expected);
        assert_eq!(charged(&window, METAL)[0], ("interrupts-off", 8_000));
        window.events[1].stolen = Nanos(17_000);
        assert_eq!(charged(&window, GUEST)[0], ("host", 8_000));
    }

    #[test]
    fn stolen_time_at_tick_does_not_count_after_remote_wake_up() {
        let charged_at = |what| {
            let mut window = scene(&[(1_000, PEER, EventKind::SoftirqEnd), (25_000, PEER, what)]);
            (window.waker_cpu, window.due, window.expiry) = (1, window.waking, window.waking);
            window.events[1].stolen = Nanos(15_000);
            charged(&window, GUEST)[0]
        };
        assert_eq!(charged_at(timer_upon(PROGRAM)), ("equal-priority", 5_000));
        assert_eq!(charged_at(CALL), ("host", 5_000), "the IPI was pending");
    }

    #[test]
    fn stolen_time_is_charged_once() {
        let mut window = scene(&[
            (10_500, STRESS, timer_upon(KERNEL)),
            (12_000, STRESS, EventKind::InterruptEnd),
        ]);
        window.waking = Nanos(11_000);
        assert!(!charged(&window, GUEST).iter().any(|(cause, _)| *cause == "host"));
        window.stolen = Nanos(18_500);
        let charges = charged(&window, GUEST);
        assert_eq!(charges.iter().filter(|(cause, _)| *cause == "host").count(), 1);
        assert!(charges.contains(&("host", 18_000)), "{charges:?}");
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "host"));
    }
}
