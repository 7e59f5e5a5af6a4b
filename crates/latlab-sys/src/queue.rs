//! Ways for a message from one task to another: System V's queue (`msgsnd(2)`), POSIX's
//! (`mq_overview(7)`), a pipe, and a pair of Unix sockets.

use latlab_core::time::Nanos;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// How long a message is, in bytes. It begins with a time.
pub const LENGTH: usize = 64;
const WORDS: usize = LENGTH / 8;

/// A way for messages. Dropping it removes it.
#[derive(Debug)]
pub struct Queue(Kind);

#[derive(Debug)]
enum Kind {
    SystemV(libc::c_int),
    Posix(OwnedFd),
    /// Where one reads, and where one writes.
    File(OwnedFd, OwnedFd),
}

/// A message as System V wants it: its type, which is positive, goes before.
#[repr(C)]
struct Message {
    kind: libc::c_long,
    words: [u64; WORDS],
}

impl Queue {
    /// System V's. It is seen in the whole IPC namespace, and stays in it if this process is
    /// killed: [`crate::namespace::own_ipc`] comes first.
    pub fn system_v() -> io::Result<Queue> {
        // SAFETY: msgget takes no pointers.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600) };
        Ok(Queue(Kind::SystemV(crate::checked(id)?)))
    }

    /// POSIX's, whose name is gone as soon as it is open.
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
        // SAFETY: on Linux such a queue is a descriptor; it is fresh and nobody else's.
        let queue = Queue(Kind::Posix(unsafe { OwnedFd::from_raw_fd(fd) }));
        // SAFETY: the name is valid for the call.
        crate::checked(unsafe { libc::mq_unlink(name) }).map(|_| queue)
    }

    /// A pipe.
    pub fn pipe() -> io::Result<Queue> {
        let (read, write) = io::pipe()?;
        Ok(Queue(Kind::File(read.into(), write.into())))
    }

    /// A pair of Unix sockets that keep messages apart (`SOCK_SEQPACKET`).
    pub fn socket() -> io::Result<Queue> {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        let mut ends = [0; 2];
        // SAFETY: there is room for the two descriptors.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
        crate::checked(made)?;
        // SAFETY: the descriptor is fresh and nobody else's.
        let own = |fd| unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Queue(Kind::File(own(ends[0]), own(ends[1]))))
    }

    /// Sends a message that begins with this time. `Interrupted` by a signal.
    #[inline]
    pub fn send(&self, time: Nanos) -> io::Result<()> {
        let mut message = Message { kind: 1, words: [0; WORDS] };
        message.words[0] = time.0;
        let words = message.words.as_ptr();
        match &self.0 {
            Kind::SystemV(id) => {
                // SAFETY: a type and the bytes stated after it are there to be read.
                crate::checked(unsafe { libc::msgsnd(*id, (&raw const message).cast(), LENGTH, 0) })
            }
            Kind::Posix(fd) => {
                // SAFETY: the bytes stated are there to be read.
                crate::checked(unsafe { libc::mq_send(fd.as_raw_fd(), words.cast(), LENGTH, 0) })
            }
            Kind::File(_, write) => {
                // SAFETY: the bytes stated are there to be read.
                whole(unsafe { libc::write(write.as_raw_fd(), words.cast(), LENGTH) })
            }
        }
        .map(drop)
    }

    /// Waits for a message. The time that it begins with; none if a signal ended the wait.
    #[inline]
    pub fn receive(&self) -> io::Result<Option<Nanos>> {
        let mut message = Message { kind: 0, words: [0; WORDS] };
        let words = message.words.as_mut_ptr();
        let received = match &self.0 {
            Kind::SystemV(id) => {
                // SAFETY: there is room for a type and the bytes stated after it.
                let into = unsafe { libc::msgrcv(*id, (&raw mut message).cast(), LENGTH, 0, 0) };
                whole(into)
            }
            Kind::Posix(fd) => {
                let priority = std::ptr::null_mut();
                // SAFETY: there is room for the bytes stated; the priority is not asked for.
                whole(unsafe { libc::mq_receive(fd.as_raw_fd(), words.cast(), LENGTH, priority) })
            }
            Kind::File(read, _) => {
                // SAFETY: there is room for the bytes stated.
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
        if let Kind::SystemV(id) = self.0 {
            // SAFETY: the queue is ours; IPC_RMID takes nothing more.
            unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
}

/// The answer of a call that gives how many bytes went: all of a message, or it failed.
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
    fn what_is_sent_is_received_in_order() {
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
