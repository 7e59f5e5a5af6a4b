//! Watching a program, from its start or while it runs.

use super::locked::LockedMemory;
use super::marks::Marks;
use super::peers::Peers;
use super::silent::Silent;
use super::stacks::Stacks;
use crate::explain::{WakeUps, proc};
use blazesym::symbolize::Symbolizer;
use latlab_bpf::{Checker, Observe, Observed};
use latlab_check::{Event, EventKind, Judge, Report, Request, Rule, Thread};
use latlab_check::{ThreadReport, WarmUp, some_of, waits_for_data};
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::clock;
use latlab_sys::process::{self, Orphans, Running};
use latlab_sys::root::Root;
use latlab_sys::sched;
use latlab_sys::signal::{self, Signals};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

/// What to check.
pub struct Order {
    /// What is watched.
    pub subject: Subject,
    /// Deadline of each cycle; by default the next cycle.
    pub deadline: Option<Nanos>,
    /// The first cycles, which are not judged.
    pub warm_up: WarmUp,
    /// Whether threads of every policy are checked, not only real-time ones.
    pub any_policy: bool,
    /// How long to watch; without it, until the program and the processes that it has left end.
    pub length: Option<Nanos>,
}

/// The program to check.
pub enum Subject {
    /// A running process.
    Process(u32),
    /// A program to start, with its arguments.
    Command(Vec<OsString>),
}

/// A program that is watched.
pub(super) struct Watching {
    checker: Checker,
    judge: Judge,
    /// None where the kernel can't record; the report then says why.
    wake_ups: std::result::Result<WakeUps, String>,
    stacks: Stacks,
    marks: Marks,
    peers: Peers,
    locked: LockedMemory,
    /// The kernel's release.
    kernel: String,
    /// Whether threads of every policy are checked.
    pub(super) any_policy: bool,
    began: Nanos,
}

/// How the program ended.
struct End {
    text: String,
    /// With an exit code or by a signal, or leaving processes, which the report notes.
    is_noted: bool,
}

/// The threads that are checked in a batch of events, by their IDs.
#[derive(Default)]
struct Seen {
    any_policy: bool,
    alive: BTreeSet<u32>,
    /// A later thread with the same ID may be alive.
    ended: BTreeSet<u32>,
}

impl Seen {
    /// Adds an event. `of_process` returns the known threads of a process.
    fn add(&mut self, thread: Thread, kind: &EventKind, of_process: impl Fn(u32) -> Vec<u32>) {
        match kind {
            EventKind::Exit { last } => {
                self.end(thread.tid);
                for tid in if *last { of_process(thread.pid) } else { Vec::new() } {
                    self.end(tid);
                }
            }
            // Also of the parent of the program.
            EventKind::Fork => {}
            _ if self.any_policy || thread.is_realtime() => drop(self.alive.insert(thread.tid)),
            _ => {}
        }
    }

    fn end(&mut self, tid: u32) {
        self.alive.remove(&tid);
        self.ended.insert(tid);
    }
}

impl End {
    fn at(text: String) -> End {
        End { text, is_noted: false }
    }

    fn abnormal(self, how: &str) -> End {
        End { text: format!("{} {how}", self.text), is_noted: true }
    }

    /// The processes that it left, if it left any, had this end.
    fn leaving(self, end: Option<&str>) -> End {
        match end {
            Some(end) => End { text: format!("{}; {end}", self.text), is_noted: true },
            None => self,
        }
    }
}

/// Most batches of events that are read at a time. They empty the buffer once.
const READS: u32 = 100;
/// Time between two reads.
pub(super) const PACE: Nanos = Nanos::from_millis(10);
/// Wake-ups after which a thread was awake for that long are explained while its period is unknown.
const UNKNOWN: Nanos = Nanos::from_micros(100);
/// Time that a program has for ending when it is asked to.
pub(super) const PATIENCE: Nanos = Nanos::from_secs(5);

/// Watches a program until it ends, the time is up, or the user ends it. `say` tells the user meanwhile
/// what is watched.
pub fn watch(order: &Order, signals: &Signals, say: &dyn Fn(&str)) -> Result<Report> {
    let parent = match order.subject {
        Subject::Process(pid) => {
            refuse_unsuitable(pid, &format!("--pid {pid}"))?;
            None
        }
        Subject::Command(_) => Some(std::process::id()),
    };
    let any_policy = order.any_policy;
    let checker = Checker::start(Observe { parent, any_policy });
    let checker = checker.map_err(|e| Failure::unsupported(format!("check: {e}")))?;
    let machine = latlab_sys::machine::read(&Root::default());
    let tick = machine.hz.map(|hz| Nanos(1_000_000_000 / u64::from(hz.max(1))));
    let judge = Judge::new(order.deadline).with_warm_up(order.warm_up).with_tick(tick);
    let judge = judge.with_any_policy(any_policy);
    let above = order.deadline.map_or(UNKNOWN, explained_above);
    let wake_ups = WakeUps::start(&machine, above).map_err(|error| error.to_string());
    let kernel = machine.kernel;
    let (stacks, marks, peers) = (Stacks::start(), Marks::default(), Peers::default());
    let locked = LockedMemory::default();
    let began = clock::now();
    let watching = Watching {
        checker,
        judge,
        wake_ups,
        stacks,
        marks,
        peers,
        locked,
        kernel,
        any_policy,
        began,
    };
    match &order.subject {
        Subject::Process(pid) => watching.process(*pid, order.length, signals),
        Subject::Command(words) => watching.command(words, (order.length, signals), say),
    }
}

impl Watching {
    fn process(mut self, pid: u32, length: Option<Nanos>, signals: &Signals) -> Result<Report> {
        let start = proc::start_time(pid);
        self.checker.watch(pid).map_err(reading_failed)?;
        self.watch_wake_ups(proc::threads(pid)?)?;
        let silent = Silent::of(pid);
        self.stacks.image(pid);
        self.marks.change(pid);
        self.marks.update(&mut self.checker);
        let mut ended = None;
        while ended.is_none() && !self.is_over(length) && signals.wait(PACE) != signal::Event::End {
            self.read()?;
            let gone = proc::has_process_ended(pid, start.as_deref());
            ended = gone.then(|| End::at(format!("the process ended after {}", self.elapsed())));
        }
        if ended.is_none() {
            self.read()?;
            silent.tell(&mut self.judge, pid, clock::now());
            self.stop()?;
        }
        let name = Root::default().text(format!("proc/{pid}/comm")).unwrap_or_default();
        self.finish(format!("{name} [{pid}]"), ended)
    }

    fn command(
        mut self,
        words: &[OsString],
        (length, signals): (Option<Nanos>, &Signals),
        say: &dyn Fn(&str),
    ) -> Result<Report> {
        let name = words[0].to_string_lossy().into_owned();
        let path = process::find(&words[0])
            .ok_or_else(|| Failure::failed(format!("{name}: program not found")))?;
        refuse_class(&path, &name)?;
        if let Ok(path) = path.canonicalize() {
            self.marks.add_file(&mut self.checker, &path);
        }
        let mut command = process::command(&words[0]);
        // Standard output has the report only.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned();
        let stderr = stderr.context("stderr can't be passed on")?;
        command.args(&words[1..]).stdout(Stdio::from(stderr));
        let orphans = Orphans::adopt();
        let orphans = orphans.context("orphans can't be adopted")?;
        let mut program = Running::start(&mut command).context(&name)?;
        // The images have to be read before the program ends. If this fails, some may be missing.
        let _ = sched::set_nice(-10);
        self.stacks.image(program.child().id());
        self.watch_wake_ups([program.child().id()])?;
        let mut ended = None;
        while ended.is_none() && !self.is_over(length) && signals.wait(PACE) != signal::Event::End {
            self.read()?;
            process::reap_adopted(program.child().id());
            let status = program.child().try_wait().context(&name)?;
            ended = status.map(|status| self.end(status));
        }
        let became = if let Some(end) = &ended {
            self.watch_left(&orphans, &end.text, (length, signals), say)?
        } else {
            self.stop()?;
            program.end(PATIENCE).context(&name)?;
            orphans.end(PATIENCE);
            None
        };
        let ended = ended.map(|end| end.leaving(became.as_deref()));
        let words = words.iter().map(|word| word.to_string_lossy());
        self.finish(words.collect::<Vec<_>>().join(" "), ended)
    }

    /// How the program ended.
    fn end(&self, status: ExitStatus) -> End {
        let end = End::at(format!("the program ended after {}", self.elapsed()));
        match (status.code(), status.signal()) {
            (Some(0), _) | (None, None) => end,
            (Some(code), _) => end.abnormal(&format!("with exit code {code}")),
            (None, Some(signal)) => end.abnormal(&format!("by signal {signal}")),
        }
    }

    pub(super) fn elapsed(&self) -> Nanos {
        clock::now() - self.began
    }

    pub(super) fn is_over(&self, length: Option<Nanos>) -> bool {
        length.is_some_and(|length| self.elapsed() >= length)
    }

    /// Reads the events so far, and explains the wake-ups of threads. Where more events come than are
    /// read, the rest waits: the time may be over.
    pub(super) fn read(&mut self) -> Result<()> {
        for _ in 0..READS {
            if !self.read_batch()? {
                break;
            }
        }
        self.stacks.end_batch();
        self.marks.update(&mut self.checker);
        self.locked.update(&mut self.judge);
        let Ok(wake_ups) = &mut self.wake_ups else { return Ok(()) };
        wake_ups.take().iter().for_each(|wake_up| self.judge.explain(wake_up));
        wake_ups.set_above(self.judge.shortest_deadline().map_or(UNKNOWN, explained_above))
    }

    /// Reads some events. Whether there are more.
    fn read_batch(&mut self) -> Result<bool> {
        // Wake-ups first: the events until the thread slept again are then among those that follow.
        let more_wake_ups = match &mut self.wake_ups {
            Ok(wake_ups) => wake_ups.read()?,
            Err(_) => false,
        };
        let (judge, stacks, marks) = (&mut self.judge, &mut self.stacks, &mut self.marks);
        let peers = &mut self.peers;
        let mut seen = Seen { any_policy: self.any_policy, ..Seen::default() };
        let mut take = |observed: Observed| {
            let Event { thread, kind, .. } = &observed.event;
            seen.add(*thread, kind, |pid| judge.threads_of(pid));
            if matches!(kind, EventKind::Mapped | EventKind::Exec) {
                marks.change(thread.pid);
            }
            add(judge, stacks, peers, observed);
        };
        let more = self.checker.read(Nanos(0), &mut take).map_err(reading_failed)?;
        self.forget_wake_ups(seen.ended)?;
        self.watch_wake_ups(seen.alive)?;
        Ok(more || more_wake_ups)
    }

    /// Explains the wake-ups of these threads from now on.
    fn watch_wake_ups(&mut self, threads: impl IntoIterator<Item = u32>) -> Result<()> {
        let Ok(wake_ups) = &mut self.wake_ups else { return Ok(()) };
        threads.into_iter().try_for_each(|thread| wake_ups.watch(thread))
    }

    /// These threads have ended.
    fn forget_wake_ups(&mut self, threads: impl IntoIterator<Item = u32>) -> Result<()> {
        let Ok(wake_ups) = &mut self.wake_ups else { return Ok(()) };
        threads.into_iter().try_for_each(|thread| wake_ups.forget(thread))
    }

    /// Watching ends while the program runs.
    pub(super) fn stop(&mut self) -> Result<()> {
        let at = clock::now();
        self.read()?;
        self.judge.stop(at, &proc::is_realtime);
        Ok(())
    }

    fn finish(mut self, program: String, ended: Option<End>) -> Result<Report> {
        self.read()?;
        let end = ended.as_ref().map_or("it runs on", |end| &end.text);
        let watched = self.judge.watched_threads();
        let (symbolizer, mut lacks) = (Symbolizer::new(), BTreeSet::new());
        let (stacks, checker) = (&self.stacks, &self.checker);
        let mut report =
            self.judge.report(&mut |_, id| stacks.frames(&symbolizer, id, &mut lacks), &|pid| {
                stacks.is_lazy(pid)
            });
        report.lost = checker.lost();
        // A sleep may be among the events that were lost.
        report.findings.retain(|finding| finding.rule != Rule::Busy || report.lost == 0);
        if watched == 0 && report.findings.is_empty() {
            let why = why_no_thread(self.any_policy);
            return Err(Failure::failed(format!("{program}: {why} ({end})")));
        }
        let judges_none = report.threads.is_empty() && report.findings.is_empty();
        if judges_none && !report.in_warm_up.is_empty() {
            return Err(Failure::failed(format!(
                "{program}: all cycles of {} are in the warm-up ({end}): give a shorter --warm-up",
                some_of(&report.in_warm_up)
            )));
        }
        if judges_none {
            return Err(Failure::failed(format!(
                "{program}: no cycle was found in {} ({end}): a cycle is found when a thread \
                 has slept three times in the same call, ten times for a futex",
                some_of(&report.without_cycle)
            )));
        }
        report.program = program;
        report.kernel = self.kernel;
        report.notes.extend(ended.filter(|end| end.is_noted).map(|end| end.text));
        report.notes.extend(lacks);
        report.notes.extend(self.marks.notes);
        report.notes.extend(limits(checker));
        let left_out = left_out(&report.threads);
        report.notes.extend(left_out);
        report.notes.extend(unexplained(&self.wake_ups));
        Ok(report)
    }
}

/// Why there is no thread to judge.
fn why_no_thread(any_policy: bool) -> &'static str {
    if any_policy {
        return "no thread ran while it was watched";
    }
    "no thread was real-time while it was watched: give it a real-time policy, as sched_setscheduler() or latlab \
     exec --fifo 80 does, or check its threads as they are with --any-policy"
}

/// How long a thread must be awake for its wake-up to be explained. An overrun that is interrupted by
/// a sleep has several, each shorter than the deadline.
fn explained_above(deadline: Nanos) -> Nanos {
    Nanos(deadline.0 / 2)
}

/// Adds an event to the judge, with its stack and the names of other tasks that it is about.
fn add(judge: &mut Judge, stacks: &mut Stacks, peers: &mut Peers, observed: Observed) {
    let mut event = observed.event;
    let (thread, seen) = (event.thread, observed.stack.as_ref());
    match &mut event.kind {
        EventKind::Enter { call: "nanosleep" | "clock_nanosleep", stack, .. } => {
            *stack = stacks.add_sleep(thread, seen);
        }
        EventKind::Enter { call, arguments, file, lock, stack, .. } => {
            if let Some(file) = file.as_mut().filter(|_| waits_for_data(call)) {
                file.peer = peers.of(thread.pid, arguments[0], file.kind);
            }
            lock.holder = lock.owner.and_then(|owner| proc::thread_of(thread.pid, owner));
            *stack = seen.and_then(|seen| stacks.add(thread.pid, seen));
        }
        EventKind::Fault { stack, .. } => {
            *stack = seen.and_then(|seen| stacks.add(thread.pid, seen));
        }
        EventKind::Request(Request { stack, .. }) => {
            *stack = seen.and_then(|seen| stacks.add(thread.pid, seen));
        }
        EventKind::Mapped => stacks.change(thread.pid),
        _ => {}
    }
    if event.kind == EventKind::Exec {
        stacks.forget(thread.pid, event.at);
    }
    if event.kind == (EventKind::Exit { last: true }) {
        stacks.end(thread.pid);
    }
    judge.add(&event);
}

/// Limits of the check on this kernel, and losses.
fn limits(checker: &Checker) -> Vec<String> {
    let missing = checker.missing();
    let lacks = |name: &str| missing.iter().any(|one| one == name);
    let mut limits = Vec::new();
    if lacks("page_fault_user") && lacks("page_fault_event") {
        limits.push("not checked: page faults, which this kernel does not report".to_owned());
    } else if lacks("handle_mm_fault") {
        limits.push("unknown on this kernel: the duration of page faults".to_owned());
    }
    if lacks("preemption count") {
        limits.push(
            "not checked: wakers, which this kernel does not tell from interrupts".to_owned(),
        );
    }
    if checker.lost() > 0 {
        let lost = checker.lost();
        limits.push(format!(
            "{lost} events were lost, perhaps of other programs, so that breaches may be missing"
        ));
    }
    if checker.unwatched() > 0 {
        let unwatched = checker.unwatched();
        limits
            .push(format!("{unwatched} child processes were not watched: more than 1024 at once"));
    }
    limits
}

/// The cycles that are not judged, as the kernel did not report all of their events.
fn left_out(threads: &[ThreadReport]) -> Option<String> {
    let cycles: u64 = threads.iter().map(|thread| thread.cycle.left_out).sum();
    let why = "the kernel did not report the start or the end of a system call";
    (cycles > 0).then(|| format!("{cycles} cycles are left out: {why} in each"))
}

/// Why the time until cycles ran is not explained, or not for all.
fn unexplained(wake_ups: &std::result::Result<WakeUps, String>) -> Option<String> {
    let what = "the time before a cycle ran is not explained";
    match wake_ups.as_ref().map(WakeUps::lost) {
        Err(why) => Some(format!("{what}: {why}")),
        Ok(lost) if lost.is_empty() => None,
        Ok(lost) => Some(format!("{what} in some cases: {}", lost.join("; "))),
    }
}

fn reading_failed(error: std::io::Error) -> Failure {
    failed("the events can't be read", error)
}

/// Refuses a process that is not there, is only a thread or a kernel thread, or is of another
/// architecture.
fn refuse_unsuitable(pid: u32, name: &str) -> Result<()> {
    proc::threads(pid)?;
    if let Some(process) = proc::process_of(pid).filter(|process| *process != pid) {
        return Err(Failure::failed(format!(
            "{name}: it is a thread of process {process}, all threads of which are checked: give \
             --pid {process}"
        )));
    }
    let exe = Root::default().path(format!("{}/exe", proc::folder(pid)));
    if let Err(error) = exe.read_link() {
        return Err(refused(name, error.kind(), proc::is_of_kernel(pid)));
    }
    refuse_class(&exe, name)
}

/// Why the program of a process can't be read.
fn refused(name: &str, error: ErrorKind, is_of_kernel: bool) -> Failure {
    match error {
        _ if is_of_kernel => Failure::failed(format!(
            "{name}: it is a kernel thread, and only programs can be checked"
        )),
        ErrorKind::PermissionDenied => Failure::unsupported(format!(
            "{name}: it belongs to another user or has more rights: run latlab check as root"
        )),
        _ => Failure::failed(format!("{name}: it has ended")),
    }
}

/// Refuses a 32-bit program. Scripts pass.
fn refuse_class(path: &std::path::Path, name: &str) -> Result<()> {
    let mut head = [0; 5];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    if read.is_ok() && head[..4] == *b"\x7fELF" && head[4] == 1 {
        return Err(Failure::unsupported(format!(
            "{name}: it is a 32-bit program, whose system calls have other numbers: build it for \
             64 bits"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::explain::Comm;
    use latlab_part::failure::FailureKind;

    #[test]
    fn process_whose_program_cannot_be_read_is_refused_with_the_reason() {
        let of = |error, is_of_kernel| refused("--pid 7", error, is_of_kernel);
        let other_user = of(ErrorKind::PermissionDenied, false);
        assert_eq!(other_user.kind, FailureKind::Unsupported);
        assert!(other_user.text.contains("another user"), "{other_user}");
        for (error, is_of_kernel, words) in [
            (ErrorKind::PermissionDenied, true, "kernel thread"),
            (ErrorKind::NotFound, true, "kernel thread"),
            (ErrorKind::NotFound, false, "has ended"),
        ] {
            let why = of(error, is_of_kernel);
            assert_eq!(why.kind, FailureKind::Failed);
            assert!(why.text.contains(words), "{why}");
        }
    }

    #[test]
    fn wake_ups_of_live_realtime_threads_are_watched() {
        let mut seen = Seen::default();
        let mut of_any_policy = Seen { any_policy: true, ..Seen::default() };
        let mut add = |tid, prio, kind| {
            let thread = Thread { tid, pid: 1, prio, policy: 1, comm: Comm::default() };
            seen.add(thread, &kind, |pid| vec![pid, 5]);
            of_any_policy.add(thread, &kind, |pid| vec![pid, 5]);
        };
        for tid in 1..4 {
            add(tid, 49, EventKind::In);
        }
        add(2, 49, EventKind::Exit { last: false });
        add(3, 49, EventKind::Exit { last: false });
        add(3, 49, EventKind::In);
        add(4, 120, EventKind::In);
        add(5, 49, EventKind::Fork);
        assert_eq!(of_any_policy.alive, BTreeSet::from([1, 3, 4]));
        let mut threads = (BTreeSet::from([1, 3]), BTreeSet::from([2, 3]));
        assert_eq!((&seen.alive, &seen.ended), (&threads.0, &threads.1));
        let mut add = |kind| {
            let thread = Thread { tid: 3, pid: 1, prio: 49, policy: 1, comm: Comm::default() };
            seen.add(thread, &kind, |pid| vec![pid, 5]);
        };
        add(EventKind::Exit { last: true });
        threads = (BTreeSet::new(), BTreeSet::from([1, 2, 3, 5]));
        assert_eq!((seen.alive, seen.ended), threads);
    }
}
