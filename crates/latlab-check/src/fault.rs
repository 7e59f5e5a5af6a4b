//! Page faults of a cycle: what each was, and which of them ended in a signal.

use super::breach::Moment;
use super::cycle::{Part, What};
use super::event::{EventKind, StackId};
use super::rule::Rule;
use super::thread::Cyclic;
use latlab_core::time::Nanos;

/// A page fault in progress, or one whose end was not reported.
#[derive(Debug)]
pub(super) struct Fault {
    at: Nanos,
    /// Address that was accessed.
    address: u64,
    /// Time in it for which the thread slept.
    pub(super) slept: Nanos,
    /// Time in it for which other tasks had the CPU.
    pub(super) away: Nanos,
    subject: String,
    stack: Option<StackId>,
    moment: Moment,
}

/// Faults of a cycle that have no end. The kernel handles no fault that the protection of memory forbids: it
/// sends a signal. The end of others may not be reported.
#[derive(Debug, Default)]
pub(super) struct WithoutEnd(Vec<Fault>);

/// Largest number of kept faults without an end. One of these may turn out to have ended in a
/// signal.
const KEPT: usize = 16;
/// A stack grows by less than this below its pointer, and is not larger than this above it.
const STACK: u64 = 1 << 20;
const BELOW: u64 = 64 << 10;

impl WithoutEnd {
    /// Adds a fault. Returns the first one if there are too many.
    fn add(&mut self, fault: Fault) -> Option<Fault> {
        self.0.push(fault);
        (self.0.len() > KEPT).then(|| self.0.remove(0))
    }

    /// Takes the last fault at an address.
    fn take_at(&mut self, address: u64) -> Option<Fault> {
        let place = self.0.iter().rposition(|fault| fault.address == address)?;
        Some(self.0.remove(place))
    }

    /// Forgets them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Cyclic {
    pub(super) fn begin_fault(&mut self, at: Nanos, kind: &EventKind) {
        self.end_fault(None);
        let EventKind::Fault { address, stack_pointer, protection, in_kernel, stack } = kind else {
            return;
        };
        let Some(moment) = self.moment(at) else { return };
        let place = address.wrapping_sub(stack_pointer.wrapping_sub(BELOW));
        let subject = if *protection {
            "page fault (copy on write)"
        } else if place < STACK + BELOW {
            "page fault (stack)"
        } else {
            "page fault"
        };
        let call = self.call_in_progress().filter(|_| *in_kernel);
        let subject = call.map_or(subject.to_owned(), |call| format!("{subject} in {call}"));
        let (slept, away, stack, address) = (Nanos(0), Nanos(0), *stack, *address);
        self.fault = Some(Fault { at, address, slept, away, subject, stack, moment });
    }

    /// Ends the page fault in progress. Not every kernel reports when, and whether a disk was read.
    pub(super) fn end_fault(&mut self, end: Option<(Nanos, bool)>) {
        let Some(fault) = self.fault.take() else { return };
        if end.is_some() {
            self.add_fault(fault, end);
        } else if let Some(first) = self.without_end.add(fault) {
            self.add_fault(first, None);
        }
    }

    /// The cycle ends: none of its faults ended in a signal that has not been seen.
    pub(super) fn add_faults_without_end(&mut self) {
        for fault in std::mem::take(&mut self.without_end).0 {
            self.add_fault(fault, None);
        }
    }

    /// The thread returns from the handler of a signal that an access of this address has caused.
    pub(super) fn leave_handler(&mut self, at: Nanos, address: u64) {
        if let Some(fault) = self.without_end.take_at(address) {
            let denied = (Rule::Protection, "protection fault".to_owned());
            self.breaches.add(denied, fault.stack, fault.moment, at - fault.at, None);
        }
    }

    fn add_fault(&mut self, fault: Fault, end: Option<(Nanos, bool)>) {
        let kind = match end {
            Some((_, true)) => "major page fault",
            _ if fault.slept > Nanos(0) => "page fault that slept",
            _ => "page fault",
        };
        let subject = fault.subject.replacen("page fault", kind, 1);
        let took = end.map_or(fault.slept, |(end, _)| end - fault.at);
        let own = end.map_or(fault.slept, |_| took - fault.away);
        // Its sleep was not the call's either way.
        self.leave_to_fault(own - fault.slept);
        if let Some(cycle) = &mut self.cycle {
            cycle.faults_without_end += u64::from(end.is_none());
            let what = What::Fault(subject.clone());
            let to = fault.at + took;
            let (rule, stack) = (Some(Rule::Fault), fault.stack);
            cycle.add(Part { from: fault.at, to, own, what, rule, stack });
        }
        self.breaches.add((Rule::Fault, subject), fault.stack, fault.moment, took, None);
    }
}
