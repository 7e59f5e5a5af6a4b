//! A trace, read line by line: late wake-ups with the events around them.

use crate::clock::Timers;
use crate::cpu::Cpu;
use crate::event::{Noise, What};
use crate::functions::{Functions, without_size};
use crate::line::Line;
use crate::seen::Seen;
use crate::stack::{self, Interrupted};
use crate::timerlat::{Piece, Thread, Timerlat};
use crate::wake::{Wake, Wakes};
use crate::watch::Watching;
use latlab_core::cpulist::CpuList;
use latlab_core::explain::names::Names;
use latlab_core::explain::{Comm, EventKind, InterruptedContext, Task, Window};
use latlab_core::plan::Watched;
use latlab_core::time::Nanos;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Time by which a trace may go back without being another one.
const BACK: Nanos = Nanos::from_secs(1);
/// Longest stack that is kept.
const FRAMES: usize = 64;

/// A trace of events, as text.
#[derive(Debug, Default)]
pub struct Trace {
    watching: Watching,
    above: Nanos,
    cpus: BTreeMap<u32, Cpu>,
    timerlat: BTreeMap<u32, Timerlat>,
    wakes: Wakes,
    timers: Timers,
    functions: Functions,
    seen: Seen,
    stack: Option<Stack>,
    late: Vec<Window>,
    counts: Counts,
    span: Option<(Nanos, Nanos)>,
}

/// A stack that is being read, of the last event of its CPU.
#[derive(Debug)]
struct Stack {
    cpu: u32,
    names: Vec<String>,
}

/// The last event of a CPU that may have a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    #[default]
    None,
    Waking(u32),
    Switch(Nanos, u32),
    Timerlat,
}

/// What was counted while a trace was read.
#[derive(Debug, Default)]
struct Counts {
    lines: u64,
    events: u64,
    wake_ups: u64,
    /// Wake-ups by the name of the task.
    tasks: HashMap<Comm, u64>,
    precise: bool,
    /// Lines that are no events, and the first of them.
    unread: (u64, u64),
    /// How often time went back, and the first line where it did.
    back: (u64, u64),
    /// Lost events by CPU; 0 where the number is not known.
    lost: BTreeMap<u32, u64>,
    /// Wake-ups of a task that was running.
    disordered: u64,
    owners: BTreeMap<u32, Owner>,
}

impl Trace {
    /// A trace, of which the wake-ups of these tasks are read: by default all tasks but threads of the kernel.
    pub fn new(watch: Option<Watched>) -> Trace {
        Trace { watching: Watching::new(watch), ..Trace::default() }
    }

    /// Learns from a line which events the trace has, before the lines are read: the first wake-ups are explained with
    /// that knowledge.
    pub fn expect(&mut self, line: &str) {
        let line = mended(line);
        match Line::parse(&line) {
            Some(line) => self.seen.add(line.event, &What::parse(line.event, line.fields)),
            None if line.trim_start().starts_with("=>") => self.seen.add("", &What::Stack),
            None => {}
        }
    }

    /// Reads the next line.
    pub fn read(&mut self, line: &str) {
        self.counts.lines += 1;
        let line = mended(line);
        if let Some(event) = Line::parse(&line) {
            return self.event(&event);
        }
        if self.stack_line(&line) || self.loss(&line) {
            return;
        }
        let is_header = line.starts_with('#') || line.trim().is_empty() || self.counts.events == 0;
        if !is_header {
            count(&mut self.counts.unread, self.counts.lines);
        }
    }

    /// Reads a line of a stack. Whether it is one.
    fn stack_line(&mut self, line: &str) -> bool {
        let Some(name) = stack::function(line) else { return false };
        if let Some(stack) = self.stack.as_mut().filter(|stack| stack.names.len() < FRAMES) {
            stack.names.push(name.to_owned());
        }
        true
    }

    /// The watched tasks. Where none were chosen, these are real-time tasks from the first wake-up of one on, and the
    /// wake-ups before do not count.
    pub fn watched(&self) -> Option<&Watched> {
        self.watching.watched()
    }

    /// The names of the tasks that were woken, those with the most wake-ups first.
    pub fn tasks(&self) -> Vec<String> {
        let mut all: Vec<(&Comm, &u64)> = self.counts.tasks.iter().collect();
        all.sort_by_key(|(comm, number)| (Reverse(**number), **comm));
        all.into_iter().map(|(comm, _)| comm.to_string()).collect()
    }

    /// Latency up to which wake-ups are left out from now on.
    pub fn set_above(&mut self, above: Nanos) {
        self.above = above;
    }

    /// The late wake-ups that were read since the last call.
    pub fn take(&mut self) -> Vec<Window> {
        std::mem::take(&mut self.late)
    }

    /// The names of functions and interrupts, if there are new ones since the last call.
    pub fn new_names(&mut self) -> Option<Names> {
        self.functions.new_names()
    }

    /// Ends the trace. The last late wake-ups follow from [`Trace::take`].
    pub fn end(&mut self) {
        self.end_stack();
        let late = self.cpus.values_mut().filter_map(|cpu| cpu.late.take());
        self.late.extend(late);
    }

    /// Number of wake-ups of the watched tasks so far.
    pub fn wake_ups(&self) -> u64 {
        self.counts.wake_ups
    }

    /// The times of the first and the last event; none without an event.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        self.span
    }

    /// The CPUs that have events.
    pub fn cpus(&self) -> CpuList {
        self.cpus.keys().copied().collect()
    }

    /// Number of lost events, as far as the trace knows it.
    pub fn lost(&self) -> u64 {
        self.counts.lost.values().sum()
    }

    /// Why no wake-up can be read from the trace, if so.
    pub fn lack(&self) -> Option<&'static str> {
        let Seen { switches, wakings, wakeups, timerlat, .. } = self.seen;
        match () {
            () if timerlat => None,
            () if self.counts.events == 0 => Some("it has no event"),
            () if !switches => {
                Some("it has no sched_switch event: record sched_switch and sched_waking")
            }
            () if !wakings && !wakeups => {
                Some("it has no sched_waking and no sched_wakeup event: record sched_waking, too")
            }
            () => None,
        }
    }

    /// What can be said with the events of the trace: a clause.
    pub fn level(&self) -> String {
        let level = self.seen.level();
        let has = [
            "wake-ups and context switches",
            "interrupts and softirqs",
            "the expiry of timers",
            "stacks",
        ];
        let has = has[..level as usize].join(", ");
        format!("its events reach level {level} of 4: {has}")
    }

    /// What is missing in the trace, and what that costs: a sentence each.
    pub fn limits(&self) -> Vec<String> {
        let mut all = self.seen.limits();
        if self.seen.timerlat {
            all.push(
                "priorities of the threads that delayed timerlat are not in the trace: they are taken as lower than \
                 timerlat's"
                    .to_owned(),
            );
        }
        if !self.counts.precise {
            all.push("times are rounded down to 1 us".to_owned());
        }
        all.extend(self.counts.sentences());
        all
    }

    fn event(&mut self, line: &Line<'_>) {
        let what = What::parse(line.event, line.fields);
        self.end_stack();
        self.seen.add(line.event, &what);
        self.counts.events += 1;
        self.counts.precise |= line.is_precise;
        self.watching.belongs(line.pid, line.process);
        self.pass_time(line.at);
        if what == What::Stack {
            self.stack = Some(Stack { cpu: line.cpu, names: Vec::new() });
            return;
        }
        let cpu = self.cpus.entry(line.cpu).or_default();
        self.late.extend(cpu.late.take());
        if cpu.current().is_some_and(|current| current.pid != line.pid) {
            // The switch to this task is missing.
            cpu.forget();
        }
        let begins = matches!(what, What::Interrupt { .. } | What::Timer { .. });
        let wakes = matches!(what, What::Waking { .. } | What::TimerEnd);
        cpu.observe(line.at, line.context, (begins, wakes));
        let owner = self.happen(line, what);
        self.counts.owners.insert(line.cpu, owner);
        // perf prints a stack without a line of its own.
        self.stack = Some(Stack { cpu: line.cpu, names: Vec::new() });
    }

    /// What happens with an event. Returns what a stack after it is of.
    fn happen(&mut self, line: &Line<'_>, what: What<'_>) -> Owner {
        let at = line.at;
        match what {
            What::Switch { prev, state, next } => return self.switch(line, (prev, state, next)),
            What::Waking { task, cpu } => return self.waking(line, task, cpu),
            What::Queued { task, cpu } => return self.queued(line, task, cpu),
            What::Migrated { pid, from, to } => {
                if let Some(wake) = self.wakes.pending(pid) {
                    wake.migrate(at, from, to);
                }
                self.push(line, EventKind::Migrated { pid, cpu: to });
            }
            What::Priority { pid, prio } => {
                self.cpus.values_mut().for_each(|cpu| cpu.change_priority(pid, prio));
            }
            What::TimerStarted { timer, expiry, soft } => self.timers.start(timer, expiry, soft),
            What::Timer { timer, function, now } => {
                let expiry = self.timers.expire(timer, now, at);
                let function = (self.functions.address(function), without_size(function));
                self.cpu(line).timer(at, function, expiry, line.context);
            }
            What::Interrupt { source, name } => {
                if let (latlab_core::explain::Line::Device(number), Some(name)) = (source, name) {
                    self.functions.interrupt(number, name);
                }
                self.cpu(line).interrupt(at, source, line.context);
            }
            What::Callback { function } => {
                let function = self.functions.address(function);
                self.push(line, EventKind::Callback { function });
            }
            What::InterruptEnd => self.cpu(line).end_interrupt(at),
            What::Softirq(number) => self.cpu(line).softirq(at, Some(number)),
            What::SoftirqEnd => self.cpu(line).softirq(at, None),
            What::TimerEnd => self.cpu(line).end_timer(at),
            What::CallbackEnd => self.push(line, EventKind::CallbackEnd),
            What::Timerlat { is_thread, latency } => {
                return self.timerlat(line, is_thread, latency);
            }
            What::Noise { .. } => self.noise(line.cpu, what),
            What::Stack | What::Other => {}
        }
        Owner::None
    }

    /// The CPU of a line.
    fn cpu(&mut self, line: &Line<'_>) -> &mut Cpu {
        self.cpus.entry(line.cpu).or_default()
    }

    fn push(&mut self, line: &Line<'_>, kind: EventKind) {
        self.cpu(line).push(line.at, kind);
    }

    fn switch(&mut self, line: &Line<'_>, (prev, state, next): (Task, &str, Task)) -> Owner {
        let at = line.at;
        self.cpu(line).switch(at, (prev, next), state.starts_with('R'));
        self.wakes.leave(prev.pid, state, at);
        let wake = self.wakes.run(next.pid);
        if wake.is_some() {
            self.counts.woken(next.comm);
        }
        if let Some(wake) = wake.filter(|_| self.watching.has(&next)) {
            if self.watching.prefers(&next) {
                (self.counts.wake_ups, self.above) = (0, Nanos(0));
                self.late.clear();
                self.cpus.values_mut().for_each(|cpu| cpu.late = None);
            }
            self.counts.wake_ups += 1;
            if at - wake.due > self.above {
                let window = self.window(line.cpu, next, wake, at);
                self.cpu(line).late = Some(window);
            }
        }
        Owner::Switch(at, prev.pid)
    }

    fn waking(&mut self, line: &Line<'_>, task: Task, last: u32) -> Owner {
        let at = line.at;
        let is_running = |cpu: &Cpu| cpu.current().is_some_and(|running| running.pid == task.pid);
        if task.pid != line.pid && self.cpus.get(&last).is_some_and(is_running) {
            self.counts.disordered += 1;
        }
        let cpu = self.cpus.entry(line.cpu).or_default();
        cpu.push(at, EventKind::Waking { task, cpu: last });
        let expiry = cpu.waking_timer();
        if let Some(waker) = cpu.current() {
            self.wakes.wake(task, (waker, line.cpu), at, expiry);
        }
        Owner::Waking(task.pid)
    }

    fn queued(&mut self, line: &Line<'_>, task: Task, on: u32) -> Owner {
        let is_known = self.wakes.pending(task.pid).is_some();
        let owner =
            if is_known || self.seen.wakings { Owner::None } else { self.waking(line, task, on) };
        if let Some(wake) = self.wakes.pending(task.pid) {
            wake.queue = Some(on);
            if on != line.cpu || wake.waker_cpu != line.cpu {
                self.push(line, EventKind::Queued { pid: task.pid, cpu: on });
            }
        }
        owner
    }

    fn timerlat(&mut self, line: &Line<'_>, is_thread: bool, latency: Nanos) -> Owner {
        let of_cpu = self.timerlat.entry(line.cpu).or_default();
        if !is_thread {
            of_cpu.interrupt(line.at, latency);
            return Owner::None;
        }
        let known = self.cpus.get(&line.cpu).and_then(Cpu::current);
        let task = known.unwrap_or(Task { pid: line.pid, prio: 0, comm: Comm::from(line.comm) });
        let thread = Thread { cpu: line.cpu, task, at: line.at, latency };
        let window = of_cpu.run(thread);
        if self.watching.is_of_timerlat() {
            self.counts.wake_ups += 1;
            self.cpu(line).late = window.filter(|_| latency > self.above);
        }
        Owner::Timerlat
    }

    fn noise(&mut self, cpu: u32, what: What<'_>) {
        let What::Noise { kind, name, number, start, length } = what else { return };
        if kind == Noise::Interrupt {
            self.functions.interrupt(number, name);
        }
        let piece = Piece { kind, name: Comm::from(name), number, start, end: start + length };
        self.timerlat.entry(cpu).or_default().noise(piece);
    }

    /// The events around a wake-up whose task runs now.
    fn window(&mut self, cpu: u32, task: Task, wake: Wake, at: Nanos) -> Window {
        let lacks_moves = self.seen.lacks_moves() && wake.queue.is_some_and(|queue| queue != cpu);
        let Wake { due, expiry, waking, waker, waker_cpu, moves, stop, stack, .. } = wake;
        let moved = moves.last().map_or(waking, |last| last.at);
        let other =
            moves.iter().map(|one| one.from).find(|from| *from != cpu && *from != waker_cpu);
        let involved = [Some(cpu), Some(waker_cpu), other];
        let is_known = |of: u32| self.cpus.get(&of).is_some_and(|of| of.is_known_since(due));
        let torn = !involved.into_iter().flatten().all(is_known);
        let events = |of: u32, end| self.cpus.get(&of).map(|of| of.events(due, end));
        let elsewhere = (waker_cpu != cpu).then(|| events(waker_cpu, moved)).flatten();
        let former = other.and_then(|other| events(other, moved));
        let passed = self.cpus.get(&cpu).and_then(|cpu| cpu.switched_out.clone());
        let passed = passed.filter(|(out, ..)| *out > waking);
        let (switch_pid, switch_stack) =
            passed.map(|(_, pid, stack)| (pid, stack)).unwrap_or_default();
        Window {
            task,
            cpu,
            due,
            expiry,
            waking,
            waker,
            waker_cpu,
            switched: at,
            out: at,
            ran: at,
            events: events(cpu, at).unwrap_or_default(),
            elsewhere: elsewhere.unwrap_or_default(),
            former_cpu: other.unwrap_or(u32::MAX),
            former: former.unwrap_or_default(),
            moves,
            lacks_moves,
            stop,
            waking_stack: stack,
            switch_stack,
            switch_pid,
            torn,
            lacks_interrupts: self.seen.lacks_interrupts(),
            ..Window::default()
        }
    }

    /// The stack is complete: it belongs to the last event of its CPU.
    fn end_stack(&mut self) {
        let Some(Stack { cpu, names }) = self.stack.take().filter(|stack| !stack.names.is_empty())
        else {
            return;
        };
        let functions = &mut self.functions;
        let addresses: Vec<u64> = names.iter().map(|name| functions.address(name)).collect();
        let context = stack::interrupted(&names).map(|interrupted| match interrupted {
            Interrupted::User => InterruptedContext { ip: 1, user: true },
            Interrupted::Kernel(at) => InterruptedContext { ip: addresses[at], user: false },
        });
        let context = context.filter(|context| context.ip != 0);
        self.seen.add("", &What::Stack);
        let Some(of) = self.cpus.get_mut(&cpu) else { return };
        match self.counts.owners.remove(&cpu).unwrap_or_default() {
            Owner::Waking(pid) => {
                if let Some(context) = context.filter(|_| of.is_in_interrupt()) {
                    of.name_interrupted(context);
                }
                if let Some(wake) = self.wakes.pending(pid) {
                    wake.stack = addresses;
                }
            }
            Owner::Switch(at, pid) if pid != 0 => {
                if let Some(late) = of.late.as_mut().filter(|late| late.switch_stack.is_empty()) {
                    (late.switch_pid, late.switch_stack) = (pid, addresses.clone());
                }
                of.switched_out = Some((at, pid, addresses));
            }
            Owner::Timerlat => {
                if let Some(late) = &mut of.late {
                    name_interrupted(late, context);
                    late.waking_stack = addresses;
                }
            }
            Owner::Switch(..) | Owner::None => {}
        }
    }

    /// Time goes on. Where it goes back, another trace begins.
    fn pass_time(&mut self, at: Nanos) {
        match &mut self.span {
            Some((_, last)) if at + BACK < *last => {
                count(&mut self.counts.back, self.counts.lines);
                self.cpus.values_mut().for_each(Cpu::forget);
                (self.wakes, self.timers) = (Wakes::default(), Timers::default());
                *last = at;
            }
            Some((_, last)) => *last = (*last).max(at),
            None => self.span = Some((at, at)),
        }
    }

    /// Reads a line that says that events of a CPU were lost: `CPU:1 [LOST 7 EVENTS]`. Whether it is one.
    fn loss(&mut self, line: &str) -> bool {
        let Some(rest) = line.trim().strip_prefix("CPU:") else { return false };
        let (cpu, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let Ok(cpu) = cpu.parse::<u32>() else { return false };
        if !rest.contains("LOST") && !rest.contains("DROPPED") && !rest.contains("EVENTS") {
            return false;
        }
        let number = rest.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty());
        let lost = self.counts.lost.entry(cpu).or_default();
        *lost = lost.saturating_add(number.and_then(|number| number.parse().ok()).unwrap_or(0));
        self.cpus.entry(cpu).or_default().forget();
        true
    }
}

impl Counts {
    /// A task of this name was woken.
    fn woken(&mut self, name: Comm) {
        /// Most names that are counted.
        const NAMES: usize = 4_096;
        if self.tasks.len() < NAMES || self.tasks.contains_key(&name) {
            *self.tasks.entry(name).or_default() += 1;
        }
    }

    /// What was lost or could not be read: a sentence each.
    fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (cpu, lost) in &self.lost {
            let number =
                if *lost == 0 { "an unknown number of".to_owned() } else { lost.to_string() };
            all.push(format!(
                "CPU {cpu}: {number} events lost; wake-ups around them are incomplete or left out"
            ));
        }
        let (unread, first) = self.unread;
        if unread > 0 {
            all.push(format!(
                "{unread} lines are no events, the first is line {first}: they are left out"
            ));
        }
        let (back, first) = self.back;
        if back > 0 {
            all.push(format!(
                "time goes back by more than a second {back} times, first in line {first}: several traces in one file, or \
                 clocks that differ"
            ));
        }
        if self.disordered * 100 > self.wake_ups.max(100) {
            all.push(format!(
                "{} wake-ups of tasks that were running: the clocks of the CPUs may differ (record with trace_clock mono)",
                self.disordered
            ));
        }
        all
    }
}

/// Counts one more, and keeps the first line.
fn count((number, first): &mut (u64, u64), line: u64) {
    *number += 1;
    if *number == 1 {
        *first = line;
    }
}

/// What the timer's interrupt interrupted, in the events of a wake-up.
fn name_interrupted(window: &mut Window, found: Option<InterruptedContext>) {
    let Some(found) = found else { return };
    let timer = window.events.iter_mut().rev().find_map(|event| match &mut event.kind {
        EventKind::Interrupt { line: latlab_core::explain::Line::Timer, context } => Some(context),
        _ => None,
    });
    if let Some(context) = timer {
        *context = found;
    }
}

/// The line as the tool wrote it, where a mail quotes it or has turned blanks into others.
fn mended(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches(['\n', '\r']);
    let line = line.strip_prefix("> ").unwrap_or(line);
    if line.contains('\u{a0}') {
        Cow::Owned(line.replace('\u{a0}', " "))
    } else {
        Cow::Borrowed(line)
    }
}
