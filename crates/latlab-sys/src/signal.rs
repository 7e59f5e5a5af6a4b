//! Signals: waiting for those that end a run, and waking a sleeping thread.

use latlab_core::time::Nanos;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The signals that ask a program to end.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Says that something waited for has happened, within this process.
const NEWS: libc::c_int = libc::SIGUSR2;
/// Interrupts a sleeping thread.
const NUDGE: libc::c_int = libc::SIGUSR1;

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Ctrl-C, a hang-up, a request to terminate.
    End,
    /// [`tell`] was called.
    News,
    /// The time was up.
    Timeout,
}

/// The right to wait for signals: while it exists, the signals that end a program wait in line
/// for [`Signals::wait`] instead of killing, in the calling thread and all it starts.
#[derive(Debug)]
pub struct Signals {
    before: libc::sigset_t,
    /// The requests to end that are to be heard: who started us with `nohup`, or in the
    /// background of a script, wants some of them ignored, and a signal that is held back would
    /// be heard all the same.
    ending: Vec<libc::c_int>,
}

impl Signals {
    /// Holds the signals back. To be called before any thread is started.
    pub fn hold() -> io::Result<Signals> {
        install(NUDGE, ignore)?;
        install(NEWS, ignore)?;
        let mut before = set_of(&[]);
        let ending: Vec<libc::c_int> =
            ENDING.into_iter().filter(|signal| !is_ignored(*signal)).collect();
        let awaited = [NEWS, libc::SIGALRM, posix_signal(), passed_on()];
        // A timer's signal must find no thread but the one that waits for it.
        let held = set_of(&[ending.as_slice(), &awaited].concat());
        // SAFETY: both sets are valid; the call changes the calling thread's mask only.
        let answer =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before) };
        if answer == 0 {
            Ok(Signals { before, ending })
        } else {
            Err(io::Error::from_raw_os_error(answer))
        }
    }

    /// Waits for a held signal, at most this long.
    pub fn wait(&self, at_most: Nanos) -> Event {
        let timeout = crate::clock::timespec(at_most);
        let awaited = set_of(&[self.ending.as_slice(), &[NEWS]].concat());
        // SAFETY: set and timeout are valid; what the signal carried is not asked for.
        let signal = unsafe {
            libc::sigtimedwait(&raw const awaited, std::ptr::null_mut(), &raw const timeout)
        };
        match signal {
            NEWS => Event::News,
            signal if ENDING.contains(&signal) => Event::End,
            _ => Event::Timeout,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A second Ctrl-C while the first was obeyed must not kill before the results are out.
        while self.wait(Nanos(0)) != Event::Timeout {}
        // SAFETY: the mask stored is the one the kernel gave.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut())
        };
    }
}

/// Wakes whoever waits on [`Signals::wait`] in this process.
pub fn tell() {
    let us = std::process::id();
    // SAFETY: a signal to ourselves; it is held, so it can't kill.
    unsafe { libc::syscall(libc::SYS_kill, us, NEWS) };
}

/// Asks this process to end, as Ctrl-C would: [`Signals::wait`] hears it.
pub fn end() {
    let us = std::process::id();
    // SAFETY: a signal to ourselves, and no pointers.
    unsafe { libc::syscall(libc::SYS_kill, us, libc::SIGTERM) };
}

/// Interrupts the sleep of a thread of this process.
pub fn nudge(thread_id: i32) {
    let us = std::process::id();
    // SAFETY: NUDGE has a handler that does nothing; a thread that is gone is no harm.
    unsafe { libc::syscall(libc::SYS_tgkill, us, thread_id, NUDGE) };
}

/// Sends a thread of this process the signal that [`await_passed`] waits for.
#[inline]
pub fn pass_to(thread_id: i32) {
    let us = std::process::id();
    // SAFETY: the signal is held back by every thread, so it can't kill.
    unsafe { libc::syscall(libc::SYS_tgkill, us, thread_id, passed_on()) };
}

/// Waits until another thread passes the signal on to this one. False if another signal ended the
/// wait.
#[inline]
pub fn await_passed() -> bool {
    wait_for(passed_on())
}

/// Waits for a signal that is held back. False if another signal ended the wait.
#[inline]
pub(crate) fn wait_for(signal: libc::c_int) -> bool {
    let set = set_of(&[signal]);
    // SAFETY: the set is valid; what the signal carried is not asked for.
    unsafe { libc::sigwaitinfo(&raw const set, std::ptr::null_mut()) == signal }
}

static TERMINATED: AtomicBool = AtomicBool::new(false);

/// From now on a request to terminate is noted for [`terminated`] instead of killing.
pub fn note_termination() -> io::Result<()> {
    install(libc::SIGTERM, note)?;
    // A terminal's Ctrl-C goes to everybody; who started us decides what it means.
    install(libc::SIGINT, ignore)
}

/// Whether this process was asked to terminate.
#[inline]
pub fn terminated() -> bool {
    TERMINATED.load(Relaxed)
}

extern "C" fn note(_: libc::c_int) {
    TERMINATED.store(true, Relaxed);
}

extern "C" fn ignore(_: libc::c_int) {}

fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: sigaction is made of integers, pointers and a set, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    #[expect(clippy::fn_to_numeric_cast_any, reason = "the C interface wants the address")]
    let address = handler as *const () as usize;
    action.sa_sigaction = address;
    // No SA_RESTART: the point is to interrupt.
    // SAFETY: the handlers touch nothing but an atomic, which is allowed in one.
    crate::checked(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })
        .map(drop)
}

/// From now on requests to end are not heard at all, also not by the program this one becomes.
pub(crate) fn ignore_requests_to_end() {
    for signal in ENDING {
        // SAFETY: to ignore a signal no function of ours is needed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Whether this process was started with the signal ignored.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: sigaction is made of integers, pointers and a set, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed; `action` is valid to write to.
    unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    action.sa_sigaction == libc::SIG_IGN
}

/// The signal of POSIX timers; each goes to the thread that made its timer.
pub(crate) fn posix_signal() -> libc::c_int {
    libc::SIGRTMIN() + 1
}

/// The signal that threads of ours pass on to each other.
fn passed_on() -> libc::c_int {
    libc::SIGRTMIN() + 2
}

/// A set of signals.
pub(crate) fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: a sigset is an array of integers.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid to write to.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: `set` is valid, the signals are constants of the system's.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

/// Lets every signal through again: for a child, which inherits what is held back.
pub(crate) fn release_all() {
    let none = set_of(&[]);
    // SAFETY: the set is valid; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
}
