//! Entry points for fuzzing: the decoder of the BPF programs' output.

use crate::check::{self, Observed};
use crate::layout::{duration, ring, window};
use latlab_core::explain::{Event, Window};

/// A window, and the bytes of a CPU's ring. Events are in the order of time.
pub fn window_and_ring(bytes: &[u8]) {
    let in_order = |events: &[Event]| events.is_sorted_by_key(|event| event.at);
    let _ = duration(bytes);
    if let Some(Window { events, elsewhere, waking_stack, switch_stack, .. }) = window(bytes) {
        assert!(in_order(&events) && in_order(&elsewhere));
        assert!(waking_stack.len() <= 32 && switch_stack.len() <= 32);
    }
    assert!(in_order(&ring(bytes)));
}

/// An event of a check.
pub fn observed(bytes: &[u8]) -> Option<Observed> {
    let observed = check::observed(bytes);
    let length = observed.as_ref().and_then(|one| Some(one.stack.as_ref()?.bytes.len()));
    assert!(length.is_none_or(|length| length < bytes.len()));
    observed
}
