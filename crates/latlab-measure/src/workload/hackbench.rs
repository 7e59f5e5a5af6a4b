//! Groups of senders and receivers, as in hackbench: every sender writes to every receiver of its
//! group.

use latlab_core::size::Bytes;
use latlab_sys::process::{self, Forked, SingleThread};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Transport of the messages.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Unix stream sockets.
    Sockets,
    /// Pipes.
    Pipes,
}

/// Number and size of the groups, and their transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The number of groups.
    pub number: u32,
    /// Senders in each group; the number of receivers is the same.
    pub fan: u32,
    /// What connects senders and receivers.
    pub over: Transport,
}

/// Role of a task in its group.
#[derive(Clone, Debug)]
pub enum Role {
    /// Reads from this end.
    Receiver(Arc<File>),
    /// Writes to each of these ends.
    Sender(Arc<[File]>),
}

impl Groups {
    /// Returns the number of tasks in all groups.
    pub fn tasks(self) -> usize {
        2 * self.number as usize * self.fan as usize
    }

    /// Calls `start` to create a task for each role, group after group.
    pub fn start(self, start: impl FnMut(Role) -> io::Result<()>) -> io::Result<()> {
        self.create_tasks(start).map_err(|e| {
            let tasks = self.tasks();
            io::Error::other(format!(
                "{tasks} tasks can't be created ({e}): use fewer groups or a smaller fan, or raise \
                 the limits (ulimit -n, ulimit -u)"
            ))
        })
    }

    /// Creates the receivers of a group before its senders, which need all their ends.
    fn create_tasks(self, mut start: impl FnMut(Role) -> io::Result<()>) -> io::Result<()> {
        for _ in 0..self.number {
            let mut to_receivers = Vec::new();
            for _ in 0..self.fan {
                let (from, to) = self.over.pair()?;
                start(Role::Receiver(Arc::new(from)))?;
                to_receivers.push(to);
            }
            let to_receivers: Arc<[File]> = to_receivers.into();
            for _ in 0..self.fan {
                start(Role::Sender(Arc::clone(&to_receivers)))?;
            }
        }
        Ok(())
    }

    /// Forks a process for each role, which runs `body`.
    pub fn fork(
        self,
        single: &SingleThread,
        body: impl Fn(Role) -> io::Result<()>,
    ) -> io::Result<Vec<Forked>> {
        let mut children = Vec::with_capacity(self.tasks());
        self.start(|role| {
            children.push(single.try_fork(|| body(role))?);
            Ok(())
        })?;
        Ok(children)
    }
}

impl Transport {
    /// Returns the end to read from and the end to write to.
    fn pair(self) -> io::Result<(File, File)> {
        match self {
            Transport::Pipes => process::pipe(),
            Transport::Sockets => {
                let (from, to) = UnixStream::pair()?;
                Ok((OwnedFd::from(from).into(), OwnedFd::from(to).into()))
            }
        }
    }
}

/// Returns a message of this length.
pub fn message(size: Bytes) -> Vec<u8> {
    vec![b'-'; usize::try_from(size.0).unwrap_or(1)]
}

/// Writes a message to each receiver.
#[inline]
pub fn send(to: &[File], message: &[u8]) -> io::Result<()> {
    to.iter().try_for_each(|mut receiver| receiver.write_all(message))
}

/// Reads a message.
#[inline]
pub fn receive(mut from: &File, message: &mut [u8]) -> io::Result<()> {
    from.read_exact(message)
}

/// Parses the length of a message.
pub fn message_length(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if (1..=65536).contains(&size.0) {
        Ok(size)
    } else {
        Err(format!("{text} is out of range: a message has 1B to 64KiB"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sender_reaches_every_receiver_of_its_group_only() {
        for over in [Transport::Sockets, Transport::Pipes] {
            let groups = Groups { number: 2, fan: 3, over };
            let mut roles = Vec::new();
            groups
                .start(|role| {
                    roles.push(role);
                    Ok(())
                })
                .unwrap();
            assert_eq!(roles.len(), groups.tasks());
            let (first, second) = roles.split_at(6);
            for role in first {
                if let Role::Sender(to) = role {
                    send(to, &message(Bytes(10))).unwrap();
                }
            }
            for role in second {
                if let Role::Sender(to) = role {
                    send(to, b"other").unwrap();
                }
            }
            for role in first {
                if let Role::Receiver(from) = role {
                    let mut all = [0; 30];
                    receive(from, &mut all).unwrap();
                    assert_eq!(all, [b'-'; 30]);
                }
            }
        }
    }
}
