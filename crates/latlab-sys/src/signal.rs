//! Signals: waiting for those that end a run, and interrupting a sleeping thread.
//!
//! Signal masks, dispositions and waiting go through the C library: rustix leaves them out, since
//! the C library reserves signals for itself.

use latlab_core::time::Nanos;
use rustix::process::{Signal, getpid, kill_process};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The signals that ask a program to end.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Tells the main thread of this process about an event.
const NOTIFY: libc::c_int = libc::SIGUSR2;
/// Interrupts the sleep of a thread.
const INTERRUPT: libc::c_int = libc::SIGUSR1;

/// The reason why [`Signals::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request to end: SIGINT, SIGTERM or SIGHUP.
    End,
    /// [`notify`] was called.
    News,
    /// The time was up, or another signal came.
    Timeout,
}

/// The right to wait for signals. While it exists, the signals that end a program are blocked in
/// the thread that made it and in all threads started from it, and [`Signals::wait`] receives them.
#[derive(Debug)]
pub struct Signals {
    before: libc::sigset_t,
    /// The ending signals that were not ignored at the start. `nohup`, and shells for background
    /// jobs, start programs with some ignored; a blocked signal would be received all the same.
    ending: Vec<libc::c_int>,
}

impl Signals {
    /// Blocks the signals. Must be called before any thread is started.
    pub fn block() -> io::Result<Signals> {
        set_handler(INTERRUPT, ignore)?;
        set_handler(NOTIFY, ignore)?;
        let ending: Vec<libc::c_int> =
            ENDING.into_iter().filter(|signal| !is_ignored(*signal)).collect();
        // The signals of timers and of threads must find only the thread that waits for them.
        let awaited = [NOTIFY, libc::SIGALRM, posix_timer_signal(), thread_signal()];
        let blocked = set_of(&[ending.as_slice(), &awaited].concat());
        let before = set_mask(libc::SIG_BLOCK, &blocked)?;
        Ok(Signals { before, ending })
    }

    /// Waits for a blocked signal, at most this long. A request to end comes before news, which may
    /// come all the time.
    pub fn wait(&self, at_most: Nanos) -> Event {
        // Of several pending signals the kernel takes the lowest number, which is not SIGTERM.
        if ENDING.contains(&receive(&self.ending, Nanos(0))) {
            return Event::End;
        }
        match receive(&[self.ending.as_slice(), &[NOTIFY]].concat(), at_most) {
            NOTIFY => Event::News,
            signal if ENDING.contains(&signal) => Event::End,
            _ => Event::Timeout,
        }
    }
}

/// Waits for one of these blocked signals, at most this long. Its number, or -1.
fn receive(signals: &[libc::c_int], at_most: Nanos) -> libc::c_int {
    let (awaited, timeout) = (set_of(signals), crate::clock::timespec(at_most));
    // SAFETY: set and timeout are valid; the signal's data are not asked for.
    unsafe { libc::sigtimedwait(&raw const awaited, std::ptr::null_mut(), &raw const timeout) }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A second Ctrl-C that came after the first must not kill before the results are written.
        while self.wait(Nanos(0)) != Event::Timeout {}
        let _ = set_mask(libc::SIG_SETMASK, &self.before);
    }
}

/// A write beyond the limit on the size of files (`RLIMIT_FSIZE`) fails with EFBIG from now on, and
/// does not end this process. Programs that it starts are not affected.
pub fn survive_file_size_limit() -> io::Result<()> {
    set_handler(libc::SIGXFSZ, ignore)
}

/// Has [`Signals::wait`] in this process return [`Event::News`].
pub fn notify() {
    let _ = kill_process(getpid(), Signal::USR2);
}

/// Sends this process SIGTERM: [`Signals::wait`] returns [`Event::End`].
pub fn request_end() {
    let _ = kill_process(getpid(), Signal::TERM);
}

/// Interrupts the sleep of a thread of this process. A thread that has ended is ignored.
pub fn interrupt_thread(thread_id: i32) {
    send(thread_id, INTERRUPT);
}

/// Sends a thread of this process the signal that [`await_thread_signal`] waits for.
#[inline]
pub fn send_to_thread(thread_id: i32) {
    send(thread_id, thread_signal());
}

/// Waits until another thread sends this one the signal of [`send_to_thread`]. False if another
/// signal ended the wait; an error where the kernel refuses to wait.
#[inline]
pub fn await_thread_signal() -> io::Result<bool> {
    wait_for(thread_signal())
}

/// Waits for a blocked signal. False if another signal ended the wait; an error where the kernel
/// refuses to wait.
#[inline]
pub(crate) fn wait_for(signal: libc::c_int) -> io::Result<bool> {
    let set = set_of(&[signal]);
    // SAFETY: the set is valid; the signal's data are not asked for.
    let received = unsafe { libc::sigwaitinfo(&raw const set, std::ptr::null_mut()) };
    if received == signal { Ok(true) } else { not_received() }
}

#[cold]
fn not_received() -> io::Result<bool> {
    crate::interrupted("sigwaitinfo(3)")
}

/// Whether this process was asked to terminate.
static TERMINATED: AtomicBool = AtomicBool::new(false);

/// From now on SIGTERM no longer kills: [`termination_requested`] reports it. SIGINT is ignored: a
/// terminal's Ctrl-C goes to all its processes, and the parent of this process decides what it
/// means.
pub fn record_termination() -> io::Result<()> {
    set_handler(libc::SIGTERM, record_request)?;
    set_handler(libc::SIGINT, ignore)
}

/// Whether this process was asked to terminate.
#[inline]
pub fn termination_requested() -> bool {
    TERMINATED.load(Relaxed)
}

/// From now on this process, and the program that it becomes, ignore requests to end.
pub(crate) fn ignore_ending_signals() -> io::Result<()> {
    ENDING.into_iter().try_for_each(|signal| sigaction(signal, Some(libc::SIG_IGN)).map(drop))
}

/// Unblocks all signals: a child inherits the mask of its parent.
pub(crate) fn unblock_all() {
    let _ = set_mask(libc::SIG_SETMASK, &set_of(&[]));
}

/// The signal of POSIX timers. Each timer sends it to the thread that made the timer.
pub(crate) fn posix_timer_signal() -> libc::c_int {
    libc::SIGRTMIN() + 1
}

/// The signal that threads send to each other.
fn thread_signal() -> libc::c_int {
    libc::SIGRTMIN() + 2
}

#[inline]
fn send(thread_id: i32, signal: libc::c_int) {
    let ours = std::process::id();
    // SAFETY: no pointers; the signals sent here are blocked or have a handler, and kill nobody.
    unsafe { libc::syscall(libc::SYS_tgkill, ours, thread_id, signal) };
}

extern "C" fn record_request(_: libc::c_int) {
    TERMINATED.store(true, Relaxed);
}

extern "C" fn ignore(_: libc::c_int) {}

fn set_handler(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    #[expect(clippy::fn_to_numeric_cast_any, reason = "the C interface takes the address")]
    let address = handler as *const () as usize;
    sigaction(signal, Some(address)).map(drop)
}

/// Whether the signal is ignored in this process.
fn is_ignored(signal: libc::c_int) -> bool {
    sigaction(signal, None).is_ok_and(|handler| handler == libc::SIG_IGN)
}

/// The handler of a signal; a new one is set where there is one. It does not restart system calls
/// (no `SA_RESTART`): they are to be interrupted.
fn sigaction(signal: libc::c_int, new: Option<libc::sighandler_t>) -> io::Result<usize> {
    // SAFETY: sigaction is made of integers, pointers and a set, for which zero is a value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    let action = new.map(|handler| libc::sigaction { sa_sigaction: handler, ..before });
    let action = action.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both are valid or null; our handlers touch only an atomic number.
    crate::checked(unsafe { libc::sigaction(signal, action, &raw mut before) })?;
    Ok(before.sa_sigaction)
}

/// Changes the signal mask of the calling thread. Returns the one before.
fn set_mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = set_of(&[]);
    // SAFETY: both sets are valid.
    match unsafe { libc::pthread_sigmask(how, std::ptr::from_ref(set), &raw mut before) } {
        0 => Ok(before),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// A set of signals.
fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: a sigset is an array of integers.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid to write to.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: `set` is valid; a signal that does not exist is refused.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_to_end_comes_before_news() {
        let signals = Signals::block().unwrap();
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        for ending in ENDING {
            send(thread, NOTIFY);
            send(thread, ending);
            assert_eq!(signals.wait(Nanos(0)), Event::End);
            assert_eq!(signals.wait(Nanos(0)), Event::News);
            assert_eq!(signals.wait(Nanos(0)), Event::Timeout);
        }
    }
}
