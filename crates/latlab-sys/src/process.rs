//! Processes whose life is tied to ours: the workers of a load, and the children they fork.

use crate::sched::Policy;
use crate::shared::SharedPage;
use crate::usage;
use latlab_core::time::Nanos;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A copy of this program at work as a load. It dies with the thread that started it, whatever
/// happens to that one; dropping it ends it and all its children.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    page: SharedPage,
    asked: bool,
    ended: Option<(ExitStatus, Nanos)>,
}

impl Worker {
    /// Starts this very program again. `arguments` are made with the number of the descriptor
    /// under which it finds its [`SharedPage`].
    pub fn start(arguments: impl FnOnce(i32) -> Vec<String>) -> io::Result<Worker> {
        let page = SharedPage::new()?;
        let fd = page.as_raw_fd();
        let arguments = arguments(fd);
        let parent = std::process::id();
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the place that ties its life to ours"
        )]
        let mut command = Command::new("/proc/self/exe");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0);
        let prepare = move || {
            crate::signal::release_all();
            die_with(parent)?;
            // SAFETY: fcntl with F_SETFD takes no pointers; without close-on-exec it stays open.
            crate::checked(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })?;
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made: no allocation, no locks.
        unsafe { command.pre_exec(prepare) };
        Ok(Worker { child: command.spawn()?, page, asked: false, ended: None })
    }

    /// The counters it shares with us.
    pub fn progress(&self) -> &SharedPage {
        &self.page
    }

    /// Whether it still works; a worker ends by itself only when something failed. What it leaves
    /// behind is ended as well.
    pub fn is_alive(&mut self) -> bool {
        if self.ended.is_none() && self.is_zombie() {
            self.kill_group();
            self.reap();
        }
        self.ended.is_none()
    }

    /// Whether it ended before it was asked to.
    pub fn ended_by_itself(&self) -> bool {
        self.ended.is_some() && !self.asked
    }

    /// Asks it to stop, and does not wait for it.
    pub fn ask_to_stop(&mut self) {
        if !self.asked && self.is_alive() {
            self.asked = true;
            // SAFETY: kill takes no pointers; the child is not reaped, so its number is its own.
            unsafe { libc::kill(self.pid(), libc::SIGTERM) };
        }
    }

    /// What it said before it ended: why it failed. Of one that was killed, by what.
    pub fn last_words(&mut self) -> String {
        let Some((status, _)) = self.ended else {
            return String::new();
        };
        let mut words = String::new();
        if let Some(stderr) = self.child.stderr.as_mut() {
            // Whoever held the other end was killed, so this does not wait long.
            let _ = stderr.read_to_string(&mut words);
        }
        if words.trim().is_empty() { status.to_string() } else { words.trim().to_owned() }
    }

    /// Asks it to stop, waits for it, and ends what does not stop. The CPU time of it and its
    /// children.
    pub fn stop(&mut self) -> Nanos {
        const PATIENCE: Nanos = Nanos::from_secs(2);
        const STEP: Nanos = Nanos::from_millis(1);
        self.ask_to_stop();
        let deadline = crate::clock::now() + PATIENCE;
        while self.is_alive() && crate::clock::now() < deadline {
            crate::clock::sleep_for(STEP);
        }
        if self.ended.is_none() {
            self.kill_group();
            self.reap();
        }
        self.ended.map_or(Nanos(0), |(_, cpu)| cpu)
    }

    /// Ends all that is left of its process group, it or its orphans.
    fn kill_group(&self) {
        // SAFETY: kill takes no pointers; the child is not reaped, so its number is its own.
        unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
    }

    /// Whether it has ended and waits to be reaped.
    fn is_zombie(&self) -> bool {
        // SAFETY: siginfo is made of integers and pointers, for which zero is a value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let pid = self.child.id();
        // SAFETY: `info` is valid to write to; the child is ours, and stays to be reaped.
        let answer = unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, flags) };
        // SAFETY: waitid fills in the fields of SIGCHLD, or leaves them zero.
        answer == 0 && unsafe { info.si_pid() } != 0
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    fn reap(&mut self) {
        use std::os::unix::process::ExitStatusExt as _;
        let (mut status, mut used) = (0, usage::empty());
        // SAFETY: status and used are valid to write to; the child is ours.
        let pid = unsafe { libc::wait4(self.pid(), &raw mut status, 0, &raw mut used) };
        if pid == self.pid() {
            self.ended = Some((ExitStatus::from_raw(status), usage::cpu_time(&used)));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A program to start, which the kernel kills when the calling thread is gone, and to which our
/// signals are as if we had never held any back.
pub fn tied(program: impl AsRef<OsStr>) -> Command {
    let parent = std::process::id();
    #[expect(clippy::disallowed_methods, reason = "this is the place that ties its life to ours")]
    let mut command = Command::new(program);
    let prepare = move || {
        crate::signal::release_all();
        die_with(parent)
    };
    // SAFETY: between fork and exec only system calls are made: no allocation, no locks.
    unsafe { command.pre_exec(prepare) };
    command
}

/// Leaves `file` open in the program that `command` starts. The number it has there.
pub fn inherit(command: &mut Command, file: &impl AsRawFd) -> RawFd {
    let fd = file.as_raw_fd();
    let keep = move || {
        // SAFETY: fcntl with F_SETFD takes no pointers; without close-on-exec it stays open.
        crate::checked(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }).map(drop)
    };
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.pre_exec(keep) };
    fd
}

/// Gives the program that `command` starts a scheduling policy.
pub fn schedule(command: &mut Command, policy: Policy) {
    let schedule = move || crate::sched::set_policy(policy);
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.pre_exec(schedule) };
}

/// What the parent has left open for us under this number by [`inherit`].
pub fn inherited(fd: RawFd) -> io::Result<File> {
    // SAFETY: fcntl with F_SETFD takes no pointers; it fails where nothing is open.
    crate::checked(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the number was given by the parent for this, and is used once.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// A pipe: the end to read from, and the one to write to.
pub fn pipe() -> io::Result<(File, File)> {
    let (from, to) = io::pipe()?;
    Ok((OwnedFd::from(from).into(), OwnedFd::from(to).into()))
}

/// A [`tied`] program that hears no Ctrl-C, hang-up or request to terminate, although it shares
/// our terminal: we hear them, and say when it ends.
pub fn sheltered(program: impl AsRef<OsStr>) -> Command {
    let mut command = tied(program);
    let prepare = || {
        crate::signal::ignore_requests_to_end();
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made: no allocation, no locks.
    unsafe { command.pre_exec(prepare) };
    command
}

/// A [`tied`] program at work. Dropping it ends it, and the whole process group that it leads.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        command.spawn().map(Running)
    }

    /// The process, for its pipes and its end.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Ends it now. One that the kernel does not let go, as it waits for a disk that does not
    /// answer, is left to its end.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        const PATIENCE: Nanos = Nanos::from_secs(5);
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let pid = i32::try_from(self.0.id()).unwrap_or(i32::MAX);
            // SAFETY: getpgid takes no pointers; the child is not reaped, so its number is its own.
            let leads = unsafe { libc::getpgid(pid) } == pid;
            // SAFETY: as above; the group is the child's own.
            unsafe { libc::kill(if leads { -pid } else { pid }, libc::SIGKILL) };
        }
        self.wait_for(PATIENCE)
    }

    /// Waits for its end, at most this long.
    pub fn wait_for(&mut self, patience: Nanos) -> io::Result<ExitStatus> {
        let deadline = crate::clock::now() + patience;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if crate::clock::now() > deadline {
                return Err(io::Error::other(format!("it had not ended after {patience}")));
            }
            crate::clock::sleep_for(Nanos::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Whether this process may do what only root may.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and can't fail.
    unsafe { libc::geteuid() == 0 }
}

/// Has the kernel kill this process when the thread that started it is gone. Fails where it is
/// gone already.
pub fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: this prctl takes no pointers.
    crate::checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    // SAFETY: getppid takes nothing.
    let now = unsafe { libc::getppid() };
    // The parent may have gone before the wish was spoken.
    if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Names the calling thread, as whoever looks at this machine sees it (`comm`), and with it those
/// that it forks. The kernel keeps 15 bytes; up to a zero byte, if there is one.
pub fn call_itself(name: &str) -> io::Result<()> {
    let bytes = name.bytes().take_while(|byte| *byte != 0).collect::<Vec<_>>();
    let name = CString::new(bytes)?;
    // SAFETY: PR_SET_NAME reads a string that ends in a zero byte, and keeps nothing of it.
    crate::checked(unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) }).map(drop)
}

/// The proof that this process has one thread, so that a forked child may go on running Rust
/// code: no other thread can have held a lock at that moment. It can't be given to a thread.
#[derive(Debug)]
pub struct SingleThread(PhantomData<*const ()>);

impl SingleThread {
    /// None where there are more threads.
    pub fn prove() -> Option<SingleThread> {
        let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
        (threads == 1).then_some(SingleThread(PhantomData))
    }

    /// Forks a child that runs `body`, ends, and never returns from here. It dies with us.
    pub fn fork(&self, body: impl FnOnce()) -> io::Result<Forked> {
        self.try_fork(|| {
            body();
            Ok(())
        })
    }

    /// Forks a child as [`SingleThread::fork`] does, which fails where `body` does.
    pub fn try_fork(&self, body: impl FnOnce() -> io::Result<()>) -> io::Result<Forked> {
        let parent = std::process::id();
        // SAFETY: there is one thread, so the child has the whole program in a sound state.
        let pid = crate::checked(unsafe { libc::fork() })?;
        if pid > 0 {
            return Ok(Forked(pid));
        }
        let code = match die_with(parent) {
            Ok(()) => match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
                Ok(Ok(())) => 0,
                Ok(Err(_)) => 1,
                Err(_) => 101,
            },
            Err(_) => 1,
        };
        // SAFETY: _exit takes no pointers and runs none of the parent's clean-up.
        unsafe { libc::_exit(code) }
    }
}

/// A forked child. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct Forked(i32);

impl Forked {
    /// Waits for it to end by itself.
    pub fn wait(self) -> io::Result<()> {
        let mut status = 0;
        // SAFETY: status is valid to write to; the child is ours.
        let answer = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        if answer == self.0 {
            std::mem::forget(self);
        }
        if answer > 0 && status == 0 { Ok(()) } else { Err(io::Error::other("a child failed")) }
    }
}

/// Waits for all these children to end by themselves, in whatever order they do. When one fails,
/// the others are ended: those that wait for it would wait for ever. A process that waits like
/// this has no other children.
pub fn await_all(mut children: Vec<Forked>) -> io::Result<()> {
    use std::os::unix::process::ExitStatusExt as _;
    while !children.is_empty() {
        let mut status = 0;
        // SAFETY: status is valid to write to.
        match crate::checked(unsafe { libc::waitpid(-1, &raw mut status, 0) }) {
            Ok(pid) => {
                let gone = children.iter().position(|child| child.0 == pid);
                if let Some(place) = gone {
                    std::mem::forget(children.swap_remove(place));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if status != 0 {
            end_all(children);
            let status = ExitStatus::from_raw(status);
            return Err(io::Error::other(format!(
                "a process that takes part has ended ({status})"
            )));
        }
    }
    Ok(())
}

/// Fails where a child has ended, which stays to be reaped. Does not wait.
pub fn all_at_work() -> io::Result<()> {
    // SAFETY: siginfo is made of integers and pointers, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is valid to write to.
    crate::checked(unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) })?;
    // SAFETY: waitid fills in the fields of SIGCHLD, or leaves them zero.
    let ended = unsafe { info.si_pid() } != 0;
    if ended { Err(io::Error::other("a process that takes part has ended")) } else { Ok(()) }
}

/// Lets this process have as many files open as it may.
pub fn allow_many_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit to write to.
    crate::checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid rlimit.
    crate::checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(drop)
}

/// Ends many children at once: those that still run would keep each other from ending.
pub fn end_all(children: Vec<Forked>) {
    children.iter().for_each(Forked::kill);
    drop(children);
}

impl Forked {
    fn kill(&self) {
        // SAFETY: the child is ours and not reaped, so the number is its own.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.kill();
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), 0) };
    }
}

/// This very program with arguments, ready to be started by execve(2) alone.
#[derive(Debug)]
pub struct Itself {
    arguments: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Itself {
    /// This program with these words after its name, and an empty environment.
    fn with(words: &[&str]) -> io::Result<Itself> {
        let all = std::iter::once("latlab").chain(words.iter().copied());
        let arguments = all.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let pointers = arguments.iter().map(|word| word.as_ptr());
        let pointers = pointers.chain([std::ptr::null()]).collect();
        Ok(Itself { arguments, pointers })
    }

    /// This program as one that ends at once: see [`is_for_nothing`].
    pub fn for_nothing() -> io::Result<Itself> {
        Itself::with(&[NOTHING])
    }

    /// Becomes it: returns only if that failed.
    #[inline]
    pub fn become_it(&self) -> io::Error {
        debug_assert_eq!(self.pointers.len(), self.arguments.len() + 1);
        let nothing = [std::ptr::null()];
        let path = c"/proc/self/exe".as_ptr();
        // SAFETY: all strings end with a zero and both lists with a null pointer.
        unsafe { libc::execve(path, self.pointers.as_ptr(), nothing.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// The word after which this program does nothing.
const NOTHING: &str = "nothing-worker";

/// Whether this process is there to be started, and for nothing else.
pub fn is_for_nothing() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == NOTHING)
}

/// Becomes another program: returns only if that failed. Signals are as they were, but for
/// SIGPIPE, which is back at its default.
pub fn become_program(program: &OsString, arguments: &[OsString]) -> io::Error {
    #[expect(clippy::disallowed_methods, reason = "it replaces us, so its life is ours")]
    let mut command = Command::new(program);
    command.args(arguments).exec()
}
