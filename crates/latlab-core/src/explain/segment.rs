//! Segments of a window, in each of which the CPU had one activity.

use super::{Call, Event, EventKind, InterruptedContext, Line, Task, Window};
use crate::time::Nanos;

/// A part of a window in which the activity of the CPU did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When it begins.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
    /// The phase of the wake-up.
    pub phase: Phase,
    /// The activity of the CPU.
    pub activity: Activity,
    /// Whether the hypervisor stole the CPU for that long. The exact moment between two events is
    /// unknown, so stolen time is placed just before the second one.
    pub stolen: bool,
    /// The CPU: until the waking the CPU that woke the task, then the CPU of its run queue. None if
    /// it is not known.
    pub cpu: Option<u32>,
}

/// The phases of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The task is stopped.
    Stopped,
    /// The timer may still wait, within the slack that the task allowed.
    Slack,
    /// The task is due, but not woken.
    Due,
    /// The task is runnable, but its CPU has not switched to it.
    Runnable,
    /// The CPU has switched to the task, which has not returned to user space.
    Running,
}

/// The activity of a CPU. Of nested interrupts and callbacks it is the innermost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The current task; none if no event reported it.
    pub task: Option<Task>,
    /// The interrupt that is being handled, and the context it interrupted.
    pub interrupt: Option<(Line, InterruptedContext)>,
    /// The function that runs within it for another CPU.
    pub called: Option<Call>,
    /// The high-resolution timer's callback that runs within it.
    pub timer: Option<u64>,
    /// The softirq that runs, on top of the task or in a softirq thread.
    pub softirq: Option<u8>,
    /// The timer-wheel timer's callback that runs within the softirq.
    pub callback: Option<u64>,
}

/// Returns the segments from the moment when a task should have run until it ran, without gaps.
/// They are on the CPU that woke it until the waking, then on the CPU of its run queue at each
/// moment.
pub fn segments(window: &Window) -> Vec<Segment> {
    let woken = window.waking.clamp(window.due, window.ran);
    let mut all = Vec::new();
    let stopped = window.stop.map_or(woken, |stop| stop.since.clamp(window.due, woken));
    cut(window, Some(window.waker_cpu), (window.due, stopped), &mut all);
    if stopped < woken {
        let (phase, activity) = (Phase::Stopped, Activity::default());
        all.push(Segment { from: stopped, to: woken, phase, activity, stolen: false, cpu: None });
    }
    for queue in window.queues() {
        cut(window, queue.cpu, (queue.from, queue.until), &mut all);
    }
    all
}

/// Returns the intervals from when the task ran until it was switched out, in which an interrupt or
/// a softirq ran on top of it.
pub fn interruptions(window: &Window) -> Vec<(Nanos, Nanos, Activity)> {
    let mut found = Vec::new();
    let mut activity = Activity::at(window.ran, &window.events);
    let mut begin = window.ran;
    let after = window.events.iter().filter(|event| event.at > window.ran);
    for event in after.take_while(|event| event.at <= window.out) {
        let ours = activity.task.is_some_and(|task| task.pid == window.task.pid);
        if ours && (activity.interrupt.is_some() || activity.softirq.is_some()) {
            found.push((begin, event.at, activity));
        }
        activity.change(event);
        begin = event.at;
    }
    found
}

impl Segment {
    /// Returns its length.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }

    /// Whether the task has been woken.
    pub fn is_woken(&self) -> bool {
        self.phase > Phase::Due
    }
}

fn cut(window: &Window, cpu: Option<u32>, (from, to): (Nanos, Nanos), all: &mut Vec<Segment>) {
    let events = window.events_on(cpu);
    let (until, after) = events.split_at(events.partition_point(|event| event.at <= from));
    let mut activity = Activity::at(from, events);
    // The first event names the task that was current before it, unless events are missing.
    if window.torn && events.first().is_none_or(|event| event.at > from) {
        activity.task = None;
    }
    let mut begin = from;
    let mut last = until.last().map_or(from, |event| event.at);
    for event in after {
        let end = event.at.min(to);
        let back = end - window.surely_stolen(event, last, (begin, to));
        by_phase(window, (begin, back), (cpu, activity, false), all);
        by_phase(window, (back, end), (cpu, activity, true), all);
        if event.at >= to {
            return;
        }
        activity.change(event);
        (begin, last) = (event.at, event.at);
    }
    by_phase(window, (begin, to), (cpu, activity, false), all);
}

/// Cuts an interval of one activity where the wake-up enters its next phase.
fn by_phase(
    window: &Window,
    (from, to): (Nanos, Nanos),
    (cpu, activity, stolen): (Option<u32>, Activity, bool),
    all: &mut Vec<Segment>,
) {
    let ends = [
        (Phase::Slack, window.expiry),
        (Phase::Due, window.waking),
        (Phase::Runnable, window.switched),
        (Phase::Running, window.ran),
    ];
    let mut begin = from;
    for (phase, end) in ends {
        let end = end.min(to);
        if end > begin {
            all.push(Segment { from: begin, to: end, phase, activity, stolen, cpu });
            begin = end;
        }
    }
}

impl Activity {
    /// Returns the activity of a CPU at `moment`, from its events in order of time.
    pub fn at(moment: Nanos, events: &[Event]) -> Activity {
        let mut activity =
            Activity { task: events.first().map(|event| event.task), ..Activity::default() };
        for event in events.iter().take_while(|event| event.at <= moment) {
            activity.change(event);
        }
        activity
    }

    pub(super) fn change(&mut self, event: &Event) {
        self.task = Some(event.task);
        match event.kind {
            EventKind::Switch { next, .. } => {
                *self = Activity { task: Some(next), ..Activity::default() }
            }
            EventKind::Current => {
                *self = Activity { task: Some(event.task), ..Activity::default() }
            }
            EventKind::Interrupt { line, context } => self.interrupt = Some((line, context)),
            EventKind::InterruptEnd => {
                (self.interrupt, self.called, self.timer) = (None, None, None);
            }
            EventKind::Called(call) => self.called = Some(call),
            EventKind::Softirq(number) => self.softirq = Some(number),
            EventKind::SoftirqEnd => {
                (self.softirq, self.callback, self.timer) = (None, None, None);
            }
            EventKind::Timer { function, .. } => self.timer = Some(function),
            EventKind::TimerEnd => self.timer = None,
            EventKind::Callback { function } => self.callback = Some(function),
            EventKind::CallbackEnd => self.callback = None,
            EventKind::Waking { .. }
            | EventKind::Queued { .. }
            | EventKind::Throttled { .. }
            | EventKind::Unthrottled { .. }
            | EventKind::Migrated { .. }
            | EventKind::PageFault { .. }
            | EventKind::LockWait(_)
            | EventKind::Callers(_)
            | EventKind::LockReleased { .. }
            | EventKind::LockTaken => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::any::{self, event, task};
    use proptest::prelude::*;

    /// Due at 100, woken by the timer interrupt at 130, switched to at 150, running at 160.
    fn window() -> Window {
        let context = InterruptedContext { ip: 7, ..InterruptedContext::default() };
        Window {
            task: task(2),
            due: Nanos(100),
            expiry: Nanos(100),
            waking: Nanos(130),
            switched: Nanos(150),
            ran: Nanos(160),
            events: vec![
                event(90, EventKind::Softirq(1)),
                event(95, EventKind::SoftirqEnd),
                event(120, EventKind::Interrupt { line: Line::Timer, context }),
                event(125, EventKind::Timer { function: 9, due: Nanos(100) }),
                event(135, EventKind::TimerEnd),
                event(140, EventKind::InterruptEnd),
                event(150, EventKind::Switch { next: task(2), preempted: true }),
            ],
            ..Window::default()
        }
    }

    #[test]
    fn segments_begin_where_activity_or_phase_changes() {
        let found = segments(&window());
        let cuts: Vec<(u64, u64, Phase)> =
            found.iter().map(|part| (part.from.0, part.to.0, part.phase)).collect();
        let expected = [
            (100, 120, Phase::Due),
            (120, 125, Phase::Due),
            (125, 130, Phase::Due),
            (130, 135, Phase::Runnable),
            (135, 140, Phase::Runnable),
            (140, 150, Phase::Runnable),
            (150, 160, Phase::Running),
        ];
        assert_eq!(cuts, expected);
        let interrupt = found[1].activity.interrupt.map(|(line, context)| (line, context.ip));
        assert_eq!(interrupt, Some((Line::Timer, 7)));
        assert_eq!(found[0].activity.softirq, None);
        assert_eq!(found[2].activity.timer, Some(9));
        assert_eq!(found[5].activity.interrupt, None);
        assert_eq!(found[6].activity.task, Some(task(2)));
    }

    #[test]
    fn current_task_replaces_what_was_known_before() {
        let mut window = window();
        let current = Event { task: task(7), ..event(97, EventKind::Current) };
        window.events.insert(1, event(92, EventKind::Softirq(1)));
        window.events.retain(|event| event.kind != EventKind::SoftirqEnd);
        window.events.insert(2, current);
        let first = segments(&window)[0].activity;
        assert_eq!(first, Activity { task: Some(task(7)), ..Activity::default() });
    }

    fn stolen(window: &Window) -> Vec<(u64, u64)> {
        let all = segments(window);
        all.iter().filter(|part| part.stolen).map(|part| (part.from.0, part.to.0)).collect()
    }

    #[test]
    fn stolen_segments_are_before_their_event_and_lower_bounds() {
        let mut window = window();
        // 25 ns lie before the interrupt, 20 of them after the task was due.
        window.events[2].stolen = Nanos(15);
        assert_eq!(stolen(&window), [(105, 120)]);
        window.events[2].stolen = Nanos(24);
        assert_eq!(stolen(&window), [(100, 120)], "the CPU did not run before a late interrupt");
        window.events[2].stolen = Nanos(0);
        window.events[6].stolen = Nanos(4);
        assert_eq!(stolen(&window), [(146, 150)]);
        // The last event comes 6 ns after the task ran, and 16 after the one before.
        window.events.push(event(166, EventKind::Softirq(1)));
        (window.events[6].stolen, window.events[7].stolen) = (Nanos(0), Nanos(9));
        assert_eq!(stolen(&window), [(157, 160)]);
        window.events[2] = Event { stolen: Nanos(15), ..event(120, EventKind::Softirq(1)) };
        assert_eq!(
            stolen(&window)[0],
            (110, 120),
            "it may have been stolen before the task was due"
        );
    }

    proptest! {
        #[test]
        fn stolen_segments_are_at_most_what_the_hypervisor_reports(window in any::window()) {
            let reported = |events: &[Event]| events.iter().map(|event| event.stolen.0).sum::<u64>();
            let both = reported(window.before_waking()) + reported(&window.events);
            prop_assert!(stolen(&window).iter().map(|(from, to)| to - from).sum::<u64>() <= both);
        }

        #[test]
        fn segments_are_the_latency_without_gap_or_overlap(
            window in any::window(),
        ) {
            let mut reached = window.due;
            for part in segments(&window) {
                prop_assert_eq!(part.from, reached);
                prop_assert!(part.to > part.from);
                reached = part.to;
            }
            prop_assert_eq!(reached, window.ran);
        }
    }
}
