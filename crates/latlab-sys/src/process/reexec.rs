//! Becoming another program, or this one again (`execve(2)`).

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// This program with arguments, prepared so that execve(2) is the only call that is left.
#[derive(Debug)]
pub struct SelfExec {
    arguments: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl SelfExec {
    /// This program as one that ends at once: see [`is_no_op`].
    pub fn no_op() -> io::Result<SelfExec> {
        SelfExec::with(&[NOTHING])
    }

    /// This program with these arguments and an empty environment.
    fn with(words: &[&str]) -> io::Result<SelfExec> {
        let all = std::iter::once("latlab").chain(words.iter().copied());
        let arguments = all.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let pointers = arguments.iter().map(|word| word.as_ptr());
        let pointers = pointers.chain([std::ptr::null()]).collect();
        Ok(SelfExec { arguments, pointers })
    }

    /// Replaces the calling process with it. Returns only where that failed.
    #[inline]
    pub fn exec(&self) -> io::Error {
        debug_assert_eq!(self.pointers.len(), self.arguments.len() + 1);
        let environment = [std::ptr::null()];
        let path = c"/proc/self/exe".as_ptr();
        // SAFETY: all strings end with a zero and both lists with a null pointer.
        unsafe { libc::execve(path, self.pointers.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// The argument with which this program does nothing.
const NOTHING: &str = "nothing-worker";

/// Whether this process was started only to end at once ([`SelfExec::no_op`]).
pub fn is_no_op() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == NOTHING)
}

/// Lets the standard input of this process be empty from now on, and its standard output go nowhere.
pub fn silence() -> io::Result<()> {
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    Ok(rustix::stdio::dup2_stdout(&nowhere)?)
}

/// Replaces the calling process with another program. Returns only where that failed. Signal
/// dispositions stay, except that SIGPIPE has its default again.
pub fn exec_program(program: &OsString, arguments: &[OsString]) -> io::Error {
    #[expect(clippy::disallowed_methods, reason = "the program replaces this process")]
    let mut command = Command::new(program);
    command.args(arguments).exec()
}
