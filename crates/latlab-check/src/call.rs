//! System calls in a cycle: the rule that each breaches.

use super::breach::Held;
use super::event::{EventKind, FileKind};
use super::lock::{Lock, ReadWrite};
use super::report::Frame;
use super::rule::Rule;
use super::wait;

/// Calls that map, unmap or resize memory.
const ALLOCATING: [&str; 7] = ["brk", "mmap", "munmap", "mremap", "madvise", "shmat", "shmdt"];
/// Calls that change the protection of memory.
const PROTECTING: [&str; 2] = ["mprotect", "pkey_mprotect"];
/// Functions that allocate or release memory.
const ALLOCATORS: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
];
/// Calls on a file in their first argument that move data.
const MOVING: [&str; 16] = [
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "sendfile",
    "splice",
    "getdents64",
    "fallocate",
    "ftruncate",
    "sendto",
];
/// Calls that use a file system whatever their file is.
const FILE_SYSTEM: [&str; 34] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "stat",
    "lstat",
    "fstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "rmdir",
    "truncate",
    "chdir",
    "readlink",
    "readlinkat",
    "link",
    "symlink",
    "close",
    "lseek",
];
/// Further calls that take a file in their first argument.
const ON_FILE: [&str; 48] = [
    "accept",
    "accept4",
    "bind",
    "close",
    "connect",
    "copy_file_range",
    "dup",
    "dup2",
    "dup3",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "fadvise64",
    "fchdir",
    "fchmod",
    "fchown",
    "fcntl",
    "fdatasync",
    "flock",
    "fstat",
    "fstatfs",
    "fsync",
    "getdents",
    "getpeername",
    "getsockname",
    "getsockopt",
    "inotify_add_watch",
    "io_uring_enter",
    "ioctl",
    "listen",
    "lseek",
    "mq_timedreceive",
    "mq_timedsend",
    "readahead",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "setsockopt",
    "shutdown",
    "sync_file_range",
    "syncfs",
    "tee",
    "timerfd_gettime",
    "timerfd_settime",
    "vmsplice",
];
/// Calls that may block or take long.
const LONG: [&str; 26] = [
    "clone",
    "clone3",
    "fork",
    "vfork",
    "execve",
    "execveat",
    "wait4",
    "waitid",
    "mlock",
    "mlock2",
    "mlockall",
    "munlock",
    "munlockall",
    "socket",
    "bind",
    "connect",
    "accept",
    "accept4",
    "shutdown",
    "membarrier",
    "sched_setaffinity",
    "mount",
    "init_module",
    "io_setup",
    "shmget",
    "memfd_create",
];

/// How the user knows a read-write lock.
pub(super) const READ_WRITE: &str = "a read-write lock";

/// Whether a system call takes a file in its first argument.
pub fn takes_file(call: &str) -> bool {
    MOVING.contains(&call) || ON_FILE.contains(&call)
}

/// The rule that a system call in a cycle breaches even if it does not sleep, and the subject of
/// the breach.
pub(super) fn rule(kind: &EventKind) -> Option<(Rule, String)> {
    let EventKind::Enter { call, arguments, file, .. } = kind else { return None };
    let subject = || name(kind);
    if ALLOCATING.contains(call) {
        return Some((Rule::Allocation, format!("call of {call}")));
    }
    if PROTECTING.contains(call) {
        return Some((Rule::Protection, format!("call of {call}")));
    }
    if MOVING.contains(call) {
        // Marks in the kernel's trace are made for real-time programs: writing one does not block.
        let file = file.as_ref().filter(|file| !file.name.starts_with("trace_marker"));
        let kind = file.map(|file| file.kind);
        // Standard output and error may be redirected to anything.
        let logs = arguments[0] == 1 || arguments[0] == 2;
        let slow = matches!(kind, Some(FileKind::Regular | FileKind::Terminal | FileKind::Pipe));
        return (slow || logs).then(|| (Rule::FileIo, subject()));
    }
    if FILE_SYSTEM.contains(call) {
        return Some((Rule::FileIo, subject()));
    }
    LONG.contains(call).then(|| (Rule::Syscall, format!("call of {call}")))
}

/// The call, and the file that it is about.
pub(super) fn name(kind: &EventKind) -> String {
    match kind {
        EventKind::Enter { call, file: Some(file), .. } => {
            format!("call of {call} on {}", describe(file.kind, &file.name))
        }
        EventKind::Enter { call, .. } => format!("call of {call}"),
        _ => "the kernel".to_owned(),
    }
}

/// Whether the call waits for a lock of user space that does not inherit priority.
pub(super) fn waits_for_lock(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Enter { call: "futex", arguments, lock, .. }
        if wait::is_mutex(arguments) || lock.read_write.is_some())
}

/// Who held the lock that the call waits for, when it began, if that is known.
pub(super) fn holder(kind: &EventKind) -> Option<Held> {
    match kind {
        EventKind::Enter { lock, .. } => lock.holder,
        _ => None,
    }
}

/// Whether a system call waits for data of the file in its first argument.
pub fn waits_for_data(call: &str) -> bool {
    ["read", "readv", "recvfrom", "recvmsg", "recvmmsg"].contains(&call)
}

/// The peer process whose data the call waits for, if it is known.
pub(super) fn peer(kind: &EventKind) -> Option<Held> {
    match kind {
        EventKind::Enter { call, file: Some(file), .. } if waits_for_data(call) => file.peer,
        _ => None,
    }
}

/// A lock that the call waits for, and who held it when it began.
pub(super) fn lock(kind: &EventKind) -> Option<String> {
    if !waits_for_lock(kind) && !inherits(kind) {
        return None;
    }
    let readers = Some(ReadWrite::Readers);
    let holder = match kind {
        EventKind::Enter { lock: Lock { read_write, .. }, .. } if *read_write == readers => {
            Some("readers, which it only counts".to_owned())
        }
        _ => holder(kind).map(Held::describe),
    };
    let place = place(kind);
    Some(holder.map_or(place.clone(), |holder| format!("{place} held by {holder}")))
}

/// The rule that a call with this stack breaches, where `rule` is the rule without regard to the
/// stack: `malloc` of glibc changes the protection of memory where it enlarges the heap of a
/// thread.
pub(super) fn rule_with_stack(rule: Rule, subject: &str, stack: &[Frame]) -> Rule {
    let allocates = |frame: &Frame| {
        let name = frame.function.as_deref().unwrap_or_default();
        ALLOCATORS.contains(&name.trim_start_matches("__libc_")) || name.starts_with("operator new")
    };
    let is_call = rule == Rule::Protection && subject.starts_with("call");
    if is_call && stack.iter().any(allocates) { Rule::Allocation } else { rule }
}

/// The time-out in ticks of the socket from which a call receives; none if it waits for ever.
pub(super) fn socket_timeout(kind: &EventKind) -> Option<u64> {
    let EventKind::Enter { call, time, file: Some(file), .. } = kind else { return None };
    (waits_for_data(call) && file.kind == FileKind::Socket && time.0 > 0).then_some(time.0)
}

/// Where a call slept.
pub(super) fn place(kind: &EventKind) -> String {
    match kind {
        EventKind::Enter { lock: Lock { read_write: Some(_), .. }, .. } => READ_WRITE.to_owned(),
        _ if waits_for_lock(kind) => "a mutex without priority inheritance".to_owned(),
        _ if inherits(kind) => "a mutex with priority inheritance".to_owned(),
        EventKind::Enter { call, file: Some(file), .. } => {
            format!("{call} on {}", describe(file.kind, &file.name))
        }
        EventKind::Enter { call, .. } => (*call).to_owned(),
        _ => "the kernel".to_owned(),
    }
}

/// Whether the call waits for a lock that inherits priority, which is bounded by its owner.
pub(super) fn inherits(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Enter { call: "futex", arguments, .. } if wait::inherits(arguments))
}

fn describe(kind: FileKind, name: &str) -> String {
    match kind {
        FileKind::Terminal => "a terminal".to_owned(),
        FileKind::Pipe => "a pipe".to_owned(),
        FileKind::Socket => "a socket".to_owned(),
        FileKind::Timer(_) => "a timer".to_owned(),
        _ if name.is_empty() => "a file".to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_of_protection_by_an_allocator_is_an_allocation() {
        let stack = |names: &[&str]| -> Vec<Frame> {
            let named =
                |name: &&str| Frame { function: Some((*name).to_owned()), ..Frame::default() };
            names.iter().map(named).collect()
        };
        let of =
            |names: &[&str]| rule_with_stack(Rule::Protection, "call of mprotect", &stack(names));
        assert_eq!(of(&["mprotect", "malloc", "update"]), Rule::Allocation);
        assert_eq!(of(&["mprotect", "__libc_calloc", "update"]), Rule::Allocation);
        assert_eq!(of(&["mprotect", "stop_threads"]), Rule::Protection);
        let fault = rule_with_stack(Rule::Protection, "protection fault", &stack(&["malloc"]));
        assert_eq!(fault, Rule::Protection);
    }
}
