//! The trace of the timerlat tracer, which rtla keeps: latencies of its own threads, and the noise meanwhile.
//! Source: Documentation/trace/timerlat-tracer.rst and osnoise-tracer.rst.

use crate::event::Noise;
use latlab_core::explain::{Comm, Event, EventKind, InterruptedContext, Line, Task, Window};
use latlab_core::time::Nanos;
use std::collections::VecDeque;

/// Most pieces of noise that are kept for each CPU.
const KEPT: usize = 4_096;
/// The kernel's priority of timerlat's threads where no event names it: `SCHED_FIFO` 95, rtla's default.
const PRIO: i16 = 4;
/// The kernel's priority of a task whose priority the trace does not name: nice 0.
pub(crate) const ORDINARY: i16 = 120;

/// What the tracer has reported on a CPU.
#[derive(Debug, Default)]
pub(crate) struct Timerlat {
    /// The last latency at the interrupt of the timer, and when it was reported.
    interrupt: Option<(Nanos, Nanos)>,
    noise: VecDeque<Piece>,
}

/// A piece of noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) kind: Noise,
    pub(crate) name: Comm,
    pub(crate) number: u32,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
}

/// The thread of timerlat on a CPU that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) cpu: u32,
    pub(crate) task: Task,
    /// When it ran, as far as the trace's clock tells.
    pub(crate) at: Nanos,
    pub(crate) latency: Nanos,
}

impl Timerlat {
    pub(crate) fn noise(&mut self, piece: Piece) {
        if self.noise.len() == KEPT {
            self.noise.pop_front();
        }
        self.noise.push_back(piece);
    }

    /// The timer's interrupt was this late.
    pub(crate) fn interrupt(&mut self, at: Nanos, latency: Nanos) {
        self.interrupt = Some((at, latency));
    }

    /// The thread runs. Returns its wake-up, if that of the interrupt is known.
    pub(crate) fn run(&mut self, thread: Thread) -> Option<Window> {
        let (woken, _) = self.interrupt.take()?;
        let Thread { cpu, task, at, latency } = thread;
        let due = at - latency;
        let since = self.noise.partition_point(|piece| piece.end < due);
        let pieces: Vec<Piece> = self.noise.drain(..).skip(since).collect();
        let prio = if task.prio == 0 { PRIO } else { task.prio };
        let task = Task { prio, ..task };
        let waking = woken.clamp(due, at);
        let (events, waker) = events(due, &pieces);
        Some(Window {
            task,
            cpu,
            due,
            expiry: due,
            waking,
            waker,
            waker_cpu: cpu,
            switched: at,
            ran: at,
            out: at,
            switch_pid: waker.pid,
            events,
            ..Window::default()
        })
    }
}

/// The events of pieces of noise, and the task that had the CPU first.
fn events(due: Nanos, pieces: &[Piece]) -> (Vec<Event>, Task) {
    let thread = |piece: &Piece| Task {
        pid: piece.number,
        prio: if piece.name.to_string().starts_with("migration/") { 0 } else { ORDINARY },
        comm: piece.name,
    };
    let mut threads: Vec<&Piece> = pieces.iter().filter(|one| one.kind == Noise::Thread).collect();
    threads.sort_by_key(|piece| piece.start);
    let Some(first) = threads.first().map(|piece| thread(piece)) else {
        return (Vec::new(), Task::default());
    };
    let mut found = vec![(due - Nanos(1), EventKind::Current)];
    for piece in threads.iter().skip(1) {
        found.push((piece.start, EventKind::Switch { next: thread(piece), preempted: true }));
    }
    for piece in pieces {
        match piece.kind {
            Noise::Interrupt => {
                let (line, context) = (line(piece), InterruptedContext::default());
                found.push((piece.start, EventKind::Interrupt { line, context }));
                found.push((piece.end, EventKind::InterruptEnd));
            }
            Noise::Softirq => {
                let number = u8::try_from(piece.number).unwrap_or(u8::MAX);
                found.push((piece.start, EventKind::Softirq(number)));
                found.push((piece.end, EventKind::SoftirqEnd));
            }
            Noise::Thread => {}
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut task = first;
    let event = |(at, kind)| {
        let event = Event { at, task, kind, stolen: Nanos(0) };
        if let EventKind::Switch { next, .. } = kind {
            task = next;
        }
        event
    };
    (found.into_iter().map(event).collect(), first)
}

fn line(piece: &Piece) -> Line {
    let name = piece.name.to_string();
    let vectors = [
        ("local_timer", Line::Timer),
        ("arch_timer", Line::Timer),
        ("reschedule", Line::Reschedule),
        ("call_function", Line::Call),
    ];
    let known = vectors.iter().find(|(begin, _)| name.starts_with(begin));
    known.map_or(Line::Device(piece.number), |(_, line)| *line)
}
