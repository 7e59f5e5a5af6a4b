//! Message queues between tasks: System V (`msgsnd(2)`), POSIX (`mq_overview(7)`), a pipe, and a
//! pair of Unix sockets.
//!
//! Probes measure sending and receiving, so these go through the C library; rustix has no System V
//! or POSIX queues.

use latlab_core::time::Nanos;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// The length of a message, in bytes. It begins with a time.
pub const LENGTH: usize = 64;
const WORDS: usize = LENGTH / 8;

/// A message queue. Dropping it removes it.
#[derive(Debug)]
pub struct Queue(QueueKind);

#[derive(Debug)]
enum QueueKind {
    SystemV(libc::c_int),
    Posix(OwnedFd),
    /// The end to read from, and the end to write to.
    File(OwnedFd, OwnedFd),
}

/// A System V message: a positive number as its type, then its content.
#[repr(C)]
struct Message {
    kind: libc::c_long,
    words: [u64; WORDS],
}

impl Queue {
    /// A System V queue. The whole IPC namespace sees it, and it stays there if this process is
    /// killed: [`crate::namespace::unshare_ipc`] comes first.
    pub fn system_v() -> io::Result<Queue> {
        // SAFETY: msgget takes no pointers.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600) };
        Ok(Queue(QueueKind::SystemV(crate::checked(id)?)))
    }

    /// A POSIX queue. Its name is removed as soon as it is open.
    pub fn posix() -> io::Result<Queue> {
        let name = CString::new(format!("/latlab.{}", crate::sched::thread_id()))?;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: mq_attr is made of integers, for which zero is a value.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = 1;
        #[expect(clippy::cast_possible_wrap, reason = "a message is short")]
        let length = LENGTH as libc::c_long;
        attributes.mq_msgsize = length;
        let (name, mode): (_, libc::mode_t) = (name.as_ptr(), 0o600);
        // SAFETY: name and attributes are valid for the call.
        let fd = unsafe { libc::mq_open(name, flags, mode, &raw mut attributes) };
        let fd = crate::checked(fd)?;
        // SAFETY: on Linux a queue is a descriptor; it is new and has no other owner.
        let queue = Queue(QueueKind::Posix(unsafe { OwnedFd::from_raw_fd(fd) }));
        // SAFETY: the name is valid for the call.
        crate::checked(unsafe { libc::mq_unlink(name) }).map(|_| queue)
    }

    /// A pipe.
    pub fn pipe() -> io::Result<Queue> {
        let (read, write) = io::pipe()?;
        Ok(Queue(QueueKind::File(read.into(), write.into())))
    }

    /// A pair of Unix sockets with message boundaries (`SOCK_SEQPACKET`).
    pub fn socket() -> io::Result<Queue> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (read, write) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok(Queue(QueueKind::File(read, write)))
    }

    /// Sends a message that begins with this time. `Interrupted` if a signal ended the call.
    #[inline]
    pub fn send(&self, time: Nanos) -> io::Result<()> {
        let mut message = Message { kind: 1, words: [0; WORDS] };
        message.words[0] = time.0;
        let words = message.words.as_ptr();
        match &self.0 {
            QueueKind::SystemV(id) => {
                // SAFETY: the message has a type and this many bytes after it.
                crate::checked(unsafe { libc::msgsnd(*id, (&raw const message).cast(), LENGTH, 0) })
            }
            QueueKind::Posix(fd) => {
                // SAFETY: the message has this many bytes.
                crate::checked(unsafe { libc::mq_send(fd.as_raw_fd(), words.cast(), LENGTH, 0) })
            }
            QueueKind::File(_, write) => {
                // SAFETY: the message has this many bytes.
                whole(unsafe { libc::write(write.as_raw_fd(), words.cast(), LENGTH) })
            }
        }
        .map(drop)
    }

    /// Waits for a message. Returns the time that it begins with; None if a signal ended the wait.
    #[inline]
    pub fn receive(&self) -> io::Result<Option<Nanos>> {
        let mut message = Message { kind: 0, words: [0; WORDS] };
        let words = message.words.as_mut_ptr();
        let received = match &self.0 {
            QueueKind::SystemV(id) => {
                // SAFETY: there is room for a type and this many bytes after it.
                let into = unsafe { libc::msgrcv(*id, (&raw mut message).cast(), LENGTH, 0, 0) };
                whole(into)
            }
            QueueKind::Posix(fd) => {
                let priority = std::ptr::null_mut();
                // SAFETY: there is room for this many bytes; the priority is not asked for.
                whole(unsafe { libc::mq_receive(fd.as_raw_fd(), words.cast(), LENGTH, priority) })
            }
            QueueKind::File(read, _) => {
                // SAFETY: there is room for this many bytes.
                whole(unsafe { libc::read(read.as_raw_fd(), words.cast(), LENGTH) })
            }
        };
        match received {
            Ok(_) => Ok(Some(Nanos(message.words[0]))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let QueueKind::SystemV(id) = self.0 {
            // SAFETY: the queue is ours; IPC_RMID takes no argument.
            unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
}

/// The result of a call that returns a number of bytes: those of a whole message, or an error.
#[inline]
fn whole(bytes: libc::ssize_t) -> io::Result<libc::c_int> {
    match usize::try_from(bytes) {
        Ok(LENGTH) => Ok(0),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_delivers_messages_in_order() {
        let all = [Queue::system_v(), Queue::posix(), Queue::pipe(), Queue::socket()];
        for queue in all.map(Result::unwrap) {
            std::thread::scope(|scope| {
                scope.spawn(|| (1..=3).for_each(|n| queue.send(Nanos(n)).unwrap()));
                for n in 1..=3 {
                    assert_eq!(queue.receive().unwrap(), Some(Nanos(n)), "{queue:?}");
                }
            });
        }
    }
}
