//! The identity of a thread. Its id may be reused, and programs may give their threads any name.

use crate::namespace::check_proc;
use crate::{procfs, sched};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// The identity of a thread that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadIdentity {
    pub(super) id: i32,
    /// The time at which it was started, in clock ticks since boot.
    started: u64,
    /// The PID namespace in which it has this id, by its inode number.
    namespace: u64,
    /// The time namespace of `started`, by its inode number, if the kernel has time namespaces:
    /// each has a boot time of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_namespace: Option<u64>,
}

impl ThreadIdentity {
    /// The thread that has this id and name; none where there is no such thread.
    pub(super) fn find(id: i32, name: &str) -> io::Result<Option<ThreadIdentity>> {
        let (namespace, time_namespace) = (namespace()?, time_namespace()?);
        let found = now(id)?.filter(|(found, _)| found == name);
        Ok(found.map(|(_, started)| ThreadIdentity { id, started, namespace, time_namespace }))
    }

    /// Whether the thread, which had this name, has ended. An error where that can't be known.
    pub(super) fn has_ended(&self, name: &str) -> io::Result<bool> {
        if namespace()? != self.namespace {
            return Err(io::Error::other("its thread is in another PID namespace"));
        }
        let time = self.time_namespace.zip(time_namespace()?);
        if time.is_some_and(|(then, now)| then != now) {
            let why = "its start was recorded in another time namespace";
            return Err(io::Error::other(why));
        }
        Ok(now(self.id)?.is_none_or(|found| !self.is(name, &found)))
    }

    /// The name of another thread that has the id now, where there is one.
    pub(super) fn heir(&self, name: &str) -> Option<String> {
        let found = now(self.id).ok().flatten()?;
        (!self.is(name, &found)).then_some(found.0)
    }

    /// Whether the thread that is found, with this name and start, is this one, of this name.
    fn is(&self, name: &str, (found, started): &(String, u64)) -> bool {
        found == name && *started == self.started
    }
}

/// The PID namespace of this process, if /proc shows that one.
fn namespace() -> io::Result<u64> {
    check_proc()?;
    namespace_of("pid")
}

/// The time namespace of this process; none where the kernel has none.
fn time_namespace() -> io::Result<Option<u64>> {
    match namespace_of("time") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        number => number.map(Some),
    }
}

/// The inode number of a namespace of this process.
fn namespace_of(kind: &str) -> io::Result<u64> {
    let path = format!("/proc/self/ns/{kind}");
    let data = fs::metadata(&path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
    Ok(data.ino())
}

/// The name of the thread with this id, and the time at which it was started; none where there is
/// no such thread.
fn now(id: i32) -> io::Result<Option<(String, u64)>> {
    const START_TIME: usize = 22;
    let read = || Ok((procfs::name(id)?, procfs::stat_field(id, START_TIME)?));
    let read: io::Result<(String, u64)> = read();
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if procfs::is_gone(&error) && !sched::exists(id)? => Ok(None),
        // /proc may hide threads (its option hidepid).
        Err(error) => Err(io::Error::new(error.kind(), format!("/proc/{id}: {error}"))),
    }
}
