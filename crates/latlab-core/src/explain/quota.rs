//! CPU quotas of control groups: the time for which a woken task may not run.

use super::segment::{Phase, Segment};
use super::{EventKind, Window};
use crate::time::Nanos;
use std::fmt;

/// The CPU time that the tasks of a control group have together
/// (Documentation/scheduler/sched-bwc.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The folder of the group.
    pub group: String,
    /// CPU time in each period.
    pub runtime: Nanos,
    /// The period.
    pub period: Nanos,
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quota { group, runtime, period } = self;
        write!(f, "{QUOTA} {group}: {runtime} per {period}")
    }
}

/// How the name of a quota begins, also where nothing else is known of it.
pub const QUOTA: &str = "CPU quota of the control group";

/// Returns the folder of the group in the name of a quota.
pub fn group_of(name: &str) -> Option<&str> {
    let (group, _) = name.strip_prefix(QUOTA)?.trim_start().rsplit_once(": ")?;
    Some(group)
}

impl Window {
    /// Whether the task waited while the quota of its control group was used up.
    pub fn meets_quota(&self) -> bool {
        let is_it =
            |kind| matches!(kind, EventKind::Throttled { .. } | EventKind::Unthrottled { .. });
        let all = [&self.events, &self.elsewhere, &self.former].into_iter().flatten();
        { all }.any(|event| is_it(event.kind) && self.is_of_own_group(event.kind))
    }

    fn is_of_own_group(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::Throttled { group } | EventKind::Unthrottled { group } => {
                group != 0 && group == self.group
            }
            _ => false,
        }
    }
}

impl Segment {
    /// Whether the runnable task waits here because the quota of its control group, or of one above
    /// it, is used up on this CPU.
    pub fn is_without_quota(&self, window: &Window) -> bool {
        let own = self.events(window).iter().filter(|event| window.is_of_own_group(event.kind));
        let is_end = |kind| matches!(kind, EventKind::Unthrottled { .. });
        // Groups above each other may be throttled at the same time.
        let mut depth = u32::from(own.clone().next().is_some_and(|first| is_end(first.kind)));
        for event in own.take_while(|event| event.at <= self.from) {
            depth = if is_end(event.kind) { depth.saturating_sub(1) } else { depth + 1 };
        }
        self.phase == Phase::Runnable && depth > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_is_named_with_its_group() {
        let quota = Quota {
            group: "/sys/fs/cgroup/a: b".to_owned(),
            runtime: Nanos::from_millis(20),
            period: Nanos::from_millis(100),
        };
        let name = quota.to_string();
        assert_eq!(name, "CPU quota of the control group /sys/fs/cgroup/a: b: 20 ms per 100 ms");
        assert_eq!(group_of(&name), Some("/sys/fs/cgroup/a: b"));
        assert_eq!(group_of(QUOTA), None);
        assert_eq!(group_of("stress: 2"), None);
    }
}
