//! A window cut where anything changes: stretches of time in each of which a CPU did one thing.

use super::{Event, Line, Task, Upon, What, Window};
use crate::time::Nanos;

/// A part of a window in which the CPU did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it begins.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
    /// How far the wake-up had come.
    pub phase: Phase,
    /// What the CPU did.
    pub doing: Doing,
    /// Whether the hypervisor surely took as much of the CPU. Where between two events is unknown:
    /// it is put before the second.
    pub stolen: bool,
}

/// How far a wake-up has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Its timer may still wait: the task allowed it to.
    Slack,
    /// It is due, and nobody has woken it.
    Due,
    /// It could run, and does not.
    Runnable,
    /// The CPU has gone over to it.
    Running,
}

/// What a CPU does. Of what is nested, the innermost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doing {
    /// The current task; none if no event said so.
    pub task: Option<Task>,
    /// The interrupt that is being handled, and what it came upon.
    pub interrupt: Option<(Line, Upon)>,
    /// The timer callback that runs within it.
    pub timer: Option<u64>,
    /// The softirq that runs, on top of the task or as the task.
    pub softirq: Option<u8>,
    /// The ordinary timer's callback within that.
    pub callback: Option<u64>,
    /// The idle state that the CPU is in.
    pub idle: Option<u32>,
}

/// What was done from when a task should have run until it ran, without gaps: on the CPU that was
/// to wake it, then on that which was to run it.
pub fn stretches(window: &Window) -> Vec<Stretch> {
    let woken = window.waking.clamp(window.due, window.ran);
    let mut all = Vec::new();
    cut(window, window.before_waking(), window.due, woken, &mut all);
    cut(window, &window.events, woken, window.ran, &mut all);
    all
}

impl Stretch {
    /// How long it is.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

fn cut(window: &Window, events: &[Event], from: Nanos, to: Nanos, all: &mut Vec<Stretch>) {
    let (until, after) = events.split_at(events.partition_point(|event| event.at <= from));
    let mut doing = Doing::at(from, events);
    // The first event says who was current before it, unless others are missing.
    if window.torn && events.first().is_none_or(|event| event.at > from) {
        doing.task = None;
    }
    let mut begin = from;
    let mut last = until.last().map_or(from, |event| event.at);
    for event in after {
        let end = event.at.min(to);
        let back = end - window.surely_stolen(event, last, (begin, to));
        by_phase(window, (begin, back), (doing, false), all);
        by_phase(window, (back, end), (doing, true), all);
        if event.at >= to {
            return;
        }
        doing.change(event);
        (begin, last) = (event.at, event.at);
    }
    by_phase(window, (begin, to), (doing, false), all);
}

/// Cuts what is the same to the CPU where the wake-up gets on.
fn by_phase(
    window: &Window,
    (from, to): (Nanos, Nanos),
    (doing, stolen): (Doing, bool),
    all: &mut Vec<Stretch>,
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
            all.push(Stretch { from: begin, to: end, phase, doing, stolen });
            begin = end;
        }
    }
}

impl Doing {
    /// What a CPU did at `moment`, by the events on it, which are in order of time.
    pub fn at(moment: Nanos, events: &[Event]) -> Doing {
        let mut doing = Doing { task: events.first().map(|event| event.task), ..Doing::default() };
        for event in events.iter().take_while(|event| event.at <= moment) {
            doing.change(event);
        }
        doing
    }

    fn change(&mut self, event: &Event) {
        self.task = Some(event.task);
        match event.what {
            What::Switch { next, .. } => *self = Doing { task: Some(next), ..Doing::default() },
            What::Interrupt { line, upon } => self.interrupt = Some((line, upon)),
            What::InterruptEnd => (self.interrupt, self.timer) = (None, None),
            What::Softirq(number) => self.softirq = Some(number),
            What::SoftirqEnd => (self.softirq, self.callback) = (None, None),
            What::Timer { function, .. } => self.timer = Some(function),
            What::TimerEnd => self.timer = None,
            What::Callback { function } => self.callback = Some(function),
            What::CallbackEnd => self.callback = None,
            What::Idle { state } => self.idle = Some(state),
            What::IdleEnd => self.idle = None,
            What::Waking { .. }
            | What::Queued { .. }
            | What::Migrated { .. }
            | What::PageFault { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::any::{self, event, task};
    use proptest::prelude::*;

    /// Due at 100, woken by the timer's interrupt at 130, current at 150, there at 160.
    fn window() -> Window {
        let upon = Upon { ip: 7, ..Upon::default() };
        Window {
            task: task(2),
            due: Nanos(100),
            expiry: Nanos(100),
            waking: Nanos(130),
            switched: Nanos(150),
            ran: Nanos(160),
            events: vec![
                event(90, What::Softirq(1)),
                event(95, What::SoftirqEnd),
                event(120, What::Interrupt { line: Line::Timer, upon }),
                event(125, What::Timer { function: 9, due: Nanos(100) }),
                event(135, What::TimerEnd),
                event(140, What::InterruptEnd),
                event(150, What::Switch { next: task(2), preempted: true }),
            ],
            ..Window::default()
        }
    }

    #[test]
    fn a_wake_up_is_cut_where_something_changed() {
        let found = stretches(&window());
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
        let interrupt = found[1].doing.interrupt.map(|(line, upon)| (line, upon.ip));
        assert_eq!(interrupt, Some((Line::Timer, 7)));
        assert_eq!(found[0].doing.softirq, None);
        assert_eq!(found[2].doing.timer, Some(9));
        assert_eq!(found[5].doing.interrupt, None);
        assert_eq!(found[6].doing.task, Some(task(2)));
    }

    fn stolen(window: &Window) -> Vec<(u64, u64)> {
        let all = stretches(window);
        all.iter().filter(|part| part.stolen).map(|part| (part.from.0, part.to.0)).collect()
    }

    #[test]
    fn what_was_stolen_is_before_the_event_that_tells_and_only_what_is_sure() {
        let mut window = window();
        // Of 25 ns before the interrupt, 20 of them since the task was due.
        window.events[2].stolen = Nanos(15);
        assert_eq!(stolen(&window), [(105, 120)]);
        window.events[2].stolen = Nanos(24);
        assert_eq!(stolen(&window), [(100, 120)], "it did not run before a late interrupt");
        window.events[2].stolen = Nanos(0);
        window.events[6].stolen = Nanos(4);
        assert_eq!(stolen(&window), [(146, 150)]);
        // The last event comes 6 ns after the task ran, and 16 after the one before.
        window.events.push(event(166, What::Softirq(1)));
        (window.events[6].stolen, window.events[7].stolen) = (Nanos(0), Nanos(9));
        assert_eq!(stolen(&window), [(157, 160)]);
        window.events[2] = Event { stolen: Nanos(15), ..event(120, What::Softirq(1)) };
        assert_eq!(stolen(&window)[0], (110, 120), "it may have been before it was due");
    }

    proptest! {
        #[test]
        fn no_more_is_stolen_than_the_hypervisor_says(window in any::window()) {
            let said = |events: &[Event]| events.iter().map(|event| event.stolen.0).sum::<u64>();
            let both = said(window.before_waking()) + said(&window.events);
            prop_assert!(stolen(&window).iter().map(|(from, to)| to - from).sum::<u64>() <= both);
        }

        #[test]
        fn stretches_are_the_latency_without_gap_or_overlap(
            window in any::window(),
        ) {
            let mut reached = window.due;
            for part in stretches(&window) {
                prop_assert_eq!(part.from, reached);
                prop_assert!(part.to > part.from);
                reached = part.to;
            }
            prop_assert_eq!(reached, window.ran);
        }
    }
}
