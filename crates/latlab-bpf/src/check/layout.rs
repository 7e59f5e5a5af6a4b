//! The data layout of `check.h`: events are decoded from bytes.

use latlab_check::{
    Asked, Event, EventKind, File, FileKind, Lock, Locks, OutReason, Request, Rights, Stopper,
    Thread, WORDS, WakeContext, takes_file,
};
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;
use std::ops::Range;
use syscalls::Sysno;

/// An event, and the stack of the user's code if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The event, without its stack.
    pub event: Event,
    /// The stack. A sleep without a stack has the same stack as the last sleep of its thread.
    pub stack: Option<UserStack>,
}

/// Registers of the user's code and the top of its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserStack {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub bp: u64,
    /// Link register; arm64 only.
    pub lr: u64,
    /// The bytes from the stack pointer on.
    pub bytes: Vec<u8>,
}

const VALUES: usize = 11;
/// Size of a `struct process` in bytes.
pub(super) const PROCESS: usize = 48;
/// Size of a `struct note` in bytes.
const NOTE: usize = 40 + VALUES * 8;
/// Offset of the stack in a `struct long_note`.
const STACK: usize = NOTE + 16 + 32 + 8;

/// The kernel's priorities: deadline, real-time, and those of nice values.
const PRIORITIES: Range<i16> = -1..140;

/// Decodes a `struct note` or a `struct long_note`. None if it is incomplete or of another kind, or
/// has a priority that no task has.
pub(crate) fn observed(bytes: &[u8]) -> Option<Observed> {
    let [tid, pid] = [word(bytes, 8)?, word(bytes, 12)?];
    let prio = i16::from_ne_bytes(bytes.get(16..18)?.try_into().ok()?);
    if !PRIORITIES.contains(&prio) {
        return None;
    }
    let (policy, kind) = (*bytes.get(18)?, *bytes.get(19)?);
    let comm = Comm(bytes.get(24..40)?.try_into().ok()?);
    let mut value = [0; VALUES];
    for (nth, value) in value.iter_mut().enumerate() {
        *value = long(bytes, 40 + nth * 8)?;
    }
    let stack = stack(bytes);
    let kind = what(kind, &value, bytes, stack.as_ref())?;
    let thread = Thread { tid, pid, prio, policy, comm };
    Some(Observed { event: Event { at: Nanos(long(bytes, 0)?), thread, kind }, stack })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn stack(bytes: &[u8]) -> Option<UserStack> {
    let register = |nth: usize| long(bytes, NOTE + 16 + nth * 8);
    let (ip, sp, bp, lr) = (register(0)?, register(1)?, register(2)?, register(3)?);
    let length = word(bytes, NOTE + 48)? as usize;
    Some(UserStack { ip, sp, bp, lr, bytes: bytes.get(STACK..STACK + length)?.to_vec() })
}

fn what(
    kind: u8,
    value: &[u64; VALUES],
    bytes: &[u8],
    stack: Option<&UserStack>,
) -> Option<EventKind> {
    Some(match kind {
        1 => enter(value, bytes, stack),
        2 => EventKind::Leave {
            result: value[0].cast_signed(),
            call: (value[1].cast_signed() >= 0).then(|| name(value[1])),
        },
        3 => EventKind::Fault {
            address: value[0],
            stack_pointer: stack.map_or(0, |stack| stack.sp),
            // Bits of the error code: the page is there, and it was written.
            protection: value[1] & 3 == 3,
            in_kernel: value[3] != 0,
            stack: None,
        },
        // VM_FAULT_MAJOR.
        4 => EventKind::Faulted { major: value[0] & 4 != 0 },
        5 => EventKind::Waking {
            waker: narrow(value[0]),
            prio: priority(value[1]),
            comm: comm(value[3], value[4]),
            context: match value[2] {
                1 => WakeContext::Interrupt,
                2 => WakeContext::Task,
                3 => WakeContext::Lock,
                _ => WakeContext::Unknown,
            },
        },
        6 => EventKind::Out {
            reason: stopped(value).unwrap_or_else(|| reason(value[0], value[1] != 0)),
            next: narrow(value[2]),
            prio: priority(value[3]),
            comm: comm(value[4], value[5]),
            kernel: value[7] != 0,
        },
        7 => EventKind::In,
        8 => EventKind::Migrate,
        9 => EventKind::Fork,
        10 => EventKind::Exec,
        11 => EventKind::Exit { last: value[0] != 0 },
        12 => EventKind::Begin { name: part(bytes)?, id: value[0].cast_signed() },
        13 => EventKind::End { name: part(bytes)? },
        14 => EventKind::Mapped,
        15 => EventKind::Request(request(value)),
        _ => return None,
    })
}

fn enter(value: &[u64; VALUES], bytes: &[u8], stack: Option<&UserStack>) -> EventKind {
    let call = name(value[0]);
    let refused = stack.filter(|_| call == "rt_sigreturn").map(refused_address);
    // The BPF program takes any small number for the descriptor of an open file.
    let file_name = bytes.get(NOTE..NOTE + 16).filter(|_| takes_file(call));
    let arguments = match refused {
        Some(address) => [address.unwrap_or(0), 0, 0, 0, 0, 0],
        None => [value[1], value[2], value[3], value[4], value[5], value[6]],
    };
    let words = if call == "futex" { words_of_lock(value, bytes) } else { None };
    EventKind::Enter {
        call,
        lock: words.map_or(Lock::default(), |words| Lock::of(&arguments, &words)),
        arguments,
        time: Nanos(value[7]),
        file: file_name.and_then(|name| file(value[8], name)),
        locks: Locks { future: value[9] & 1 != 0, any: value[9] & 2 != 0 },
        stack: None,
    }
}

fn request(value: &[u64; VALUES]) -> Request {
    /// Bytes of a page of memory, as those of x86; arm64 may have larger ones.
    const PAGE: u64 = 4096;
    let call = name(value[0]);
    let has = |bit: u64| value[7] & bit != 0;
    Request {
        call,
        result: value[1].cast_signed(),
        asked: match call {
            "mlockall" => Asked::Memory(Some(value[8] * PAGE)),
            "mlock" | "mlock2" => Asked::Memory(Some(value[3])),
            _ => Asked::Scheduling {
                target: narrow(value[2]),
                policy: u32::try_from(value[3]).ok(),
                priority: narrow(value[4]),
            },
        },
        rtprio: value[5],
        memlock: value[6],
        rights: Rights {
            may_schedule: has(1),
            may_lock: has(2),
            in_namespace: has(4),
            without_budget: has(8),
        },
        stack: None,
    }
}

/// The memory around a futex, in the value of a file, the last value and the place of the name of a file.
fn words_of_lock(value: &[u64; VALUES], bytes: &[u8]) -> Option<[u32; WORDS]> {
    let values = [value[8].to_ne_bytes(), value[10].to_ne_bytes()].concat();
    let (values, name) =
        (values.as_chunks::<4>().0, bytes.get(NOTE..NOTE + 16)?.as_chunks::<4>().0);
    let words: Vec<u32> = values.iter().chain(name).map(|word| u32::from_ne_bytes(*word)).collect();
    words.try_into().ok()
}

/// The address of the access that raised a signal. The thread returns from the signal's handler;
/// the kernel wrote the address to the stack for that handler (`struct rt_sigframe`). None if
/// another signal has come.
fn refused_address(stack: &UserStack) -> Option<u64> {
    /// Offset of the address on arm64, where the stack pointer points to the information of the signal.
    const ON_ARM64: usize = 304;
    /// Offsets on x86, where it points to the registers that are restored: of the number of the last
    /// exception, and of the address that it was about.
    const EXCEPTION: usize = 200;
    const ADDRESS: usize = 216;
    const PAGE_FAULT: u64 = 14;
    if cfg!(target_arch = "aarch64") {
        return long(&stack.bytes, ON_ARM64);
    }
    let is_fault = long(&stack.bytes, EXCEPTION)? == PAGE_FAULT;
    is_fault.then(|| long(&stack.bytes, ADDRESS)).flatten()
}

/// What stops the task, if something does (`enum stop`).
fn stopped(value: &[u64; VALUES]) -> Option<OutReason> {
    let (by, name) = (narrow(value[6] >> 8), comm(value[8], value[9]));
    let stopper = match value[6] & 0xff {
        1 => Stopper::Signal(by, name),
        2 => Stopper::Tracer(by, name),
        3 => Stopper::Freezer,
        _ => return None,
    };
    Some(OutReason::Stopped(stopper))
}

fn reason(state: u64, preempted: bool) -> OutReason {
    /// `TASK_RTLOCK_WAIT`, since Linux 5.16.
    const LOCK: u64 = 0x1000;
    /// `TASK_INTERRUPTIBLE`.
    const INTERRUPTIBLE: u64 = 1;
    match state {
        _ if preempted => OutReason::Preempted,
        0 => OutReason::Preempted,
        state if state & LOCK != 0 => OutReason::KernelLock,
        state if state & INTERRUPTIBLE != 0 => OutReason::Sleeps,
        _ => OutReason::SleepsInKernel,
    }
}

/// The name of a system call.
fn name(number: u64) -> &'static str {
    let number = usize::try_from(number).ok().and_then(Sysno::new);
    number.map_or("unknown system call", |call| call.name())
}

/// Decodes the mode and the device of a file.
fn file(value: u64, name: &[u8]) -> Option<File> {
    /// Set where there is a file.
    const THERE: u64 = 1 << 16;
    /// Major numbers of terminals: consoles, `/dev/tty`, serial lines and pseudo-terminals.
    const TERMINALS: std::ops::RangeInclusive<u64> = 136..=143;
    if value & THERE == 0 {
        return None;
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    let device = value >> 32;
    let major = device >> 20;
    let kind = match value & 0o170_000 {
        _ if name.starts_with("[timerfd") => FileKind::Timer(narrow(device)),
        0o100_000 | 0o040_000 => FileKind::Regular,
        0o010_000 => FileKind::Pipe,
        0o140_000 => FileKind::Socket,
        0o020_000 if matches!(major, 4 | 5 | 204) || TERMINALS.contains(&major) => {
            FileKind::Terminal
        }
        0o020_000 | 0o060_000 => FileKind::Device,
        _ => FileKind::Object,
    };
    Some(File { kind, name, peer: None })
}

/// The name of a part of a cycle, in the values after the first.
fn part(bytes: &[u8]) -> Option<String> {
    /// Most bytes of a name, with its zero.
    const NAME: usize = 64;
    let name = bytes.get(48..48 + NAME)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}

fn comm(low: u64, high: u64) -> Comm {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_ne_bytes());
    bytes[8..].copy_from_slice(&high.to_ne_bytes());
    Comm(bytes)
}

fn priority(value: u64) -> i16 {
    i16::try_from(value.cast_signed()).unwrap_or(i16::MAX)
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: u8, value: [u64; VALUES]) -> Vec<u8> {
        let mut bytes = 7_u64.to_ne_bytes().to_vec();
        bytes.extend([12_u32, 11].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(29_i16.to_ne_bytes());
        bytes.extend([1, kind, 0, 0, 0, 0]);
        bytes.extend(b"loop\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend(value.iter().flat_map(|value| value.to_ne_bytes()));
        bytes
    }

    #[test]
    fn event_is_read_with_the_layout_of_the_c_header() {
        let seen = observed(&bytes(2, [0; VALUES])).unwrap();
        let leave = EventKind::Leave { result: 0, call: Some(name(0)) };
        assert_eq!((seen.event.at, seen.event.kind), (Nanos(7), leave));
        let thread = seen.event.thread;
        assert_eq!((thread.tid, thread.pid, thread.prio, thread.policy), (12, 11, 29, 1));
        assert_eq!(thread.comm, Comm::from("loop"));
        assert_eq!(observed(&bytes(2, [9; VALUES])[..100]), None);
        assert_eq!(observed(&bytes(99, [9; VALUES])), None);
        for (prio, exists) in
            [(-2, false), (-1, true), (139, true), (140, false), (i16::MIN, false)]
        {
            let mut bytes = bytes(2, [0; VALUES]);
            bytes[16..18].copy_from_slice(&i16::to_ne_bytes(prio));
            assert_eq!(observed(&bytes).is_some(), exists, "{prio}");
        }
    }

    #[test]
    fn request_has_what_it_asked_for_and_its_rights() {
        let of = |call: Sysno, value: [u64; 9]| {
            let [first, rest @ ..] = value;
            let number = call.id().try_into().unwrap();
            let mut all = [0; VALUES];
            (all[0], all[1]) = (number, first);
            all[2..2 + rest.len()].copy_from_slice(&rest);
            let EventKind::Request(request) = observed(&bytes(15, all)).unwrap().event.kind else {
                panic!("it is a request");
            };
            request
        };
        let refused = u64::MAX;
        let fifo = of(Sysno::sched_setscheduler, [refused, 0, 1, 80, 10, 8 << 20, 9, 0, 0]);
        let asked = Asked::Scheduling { target: 0, policy: Some(1), priority: 80 };
        assert_eq!((fifo.call, fifo.result, fifo.asked), ("sched_setscheduler", -1, asked));
        assert_eq!((fifo.rtprio, fifo.memlock), (10, 8 << 20));
        assert!(fifo.rights.may_schedule && fifo.rights.without_budget && !fifo.rights.may_lock);
        let param = of(Sysno::sched_setparam, [refused, 7, u64::MAX, 20, 0, 0, 0, 0, 0]);
        assert_eq!(param.asked, Asked::Scheduling { target: 7, policy: None, priority: 20 });
        let all = of(Sysno::mlockall, [refused, 3, 0, 0, 0, 0, 0, 100, 0]);
        assert_eq!(all.asked, Asked::Memory(Some(409_600)));
        assert_eq!(
            of(Sysno::mlock, [0, 4096, 64, 0, 0, 0, 0, 0, 0]).asked,
            Asked::Memory(Some(64))
        );
    }

    #[test]
    fn task_that_is_stopped_has_who_stops_it() {
        let of = |how: u64| {
            let mut value = [0; VALUES];
            value[6] = 77 << 8 | how;
            value[8] = u64::from_ne_bytes(*b"kill\0\0\0\0");
            match observed(&bytes(6, value)).unwrap().event.kind {
                EventKind::Out { reason, .. } => reason,
                other => panic!("it leaves the CPU: {other:?}"),
            }
        };
        let kill = Comm::from("kill");
        assert_eq!(of(1), OutReason::Stopped(Stopper::Signal(77, kill)));
        assert_eq!(of(2), OutReason::Stopped(Stopper::Tracer(77, kill)));
        assert_eq!((of(3), of(0)), (OutReason::Stopped(Stopper::Freezer), OutReason::Preempted));
    }

    #[test]
    fn mark_has_the_name_and_the_id_of_its_part() {
        let mut value = [u64::MAX; VALUES];
        value[1] = u64::from_ne_bytes(*b"control\0");
        let kind = |kind| observed(&bytes(kind, value)).unwrap().event.kind;
        let name = "control".to_owned();
        assert_eq!(kind(12), EventKind::Begin { name: name.clone(), id: -1 });
        assert_eq!(kind(13), EventKind::End { name });
        assert_eq!(kind(14), EventKind::Mapped);
        assert_eq!(kind(11), EventKind::Exit { last: true });
        value[1] = u64::MAX;
        let EventKind::End { name } = observed(&bytes(13, value)).unwrap().event.kind else {
            panic!("it is a mark");
        };
        assert_eq!(name.chars().count(), 64);
    }

    #[test]
    fn return_from_a_handler_has_the_address_of_the_access() {
        let first = |call: Sysno, exception: u64| {
            let mut value = [7; VALUES];
            value[0] = call.id().try_into().unwrap();
            let mut bytes = bytes(1, value);
            bytes.extend([0; 16 + 32]);
            let mut stack = vec![0; 512];
            stack[200..208].copy_from_slice(&exception.to_ne_bytes());
            for offset in [216, 304] {
                stack[offset..offset + 8].copy_from_slice(&0x5000_u64.to_ne_bytes());
            }
            bytes.extend(512_u32.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes.extend(stack);
            let EventKind::Enter { arguments, .. } = observed(&bytes).unwrap().event.kind else {
                panic!("it is the start of a call");
            };
            arguments[0]
        };
        assert_eq!(first(Sysno::rt_sigreturn, 14), 0x5000);
        assert_eq!(first(Sysno::mmap, 14), 7);
        let of_another = if cfg!(target_arch = "aarch64") { 0x5000 } else { 0 };
        assert_eq!(first(Sysno::rt_sigreturn, 6), of_another);
    }

    #[test]
    fn lock_is_read_from_the_memory_around_a_futex() {
        let mut value = [0; VALUES];
        (value[0], value[2], value[3]) = (Sysno::futex.id().try_into().unwrap(), 128, 2);
        (value[7], value[10]) = (9, 2 << 32);
        let mut bytes = bytes(1, value);
        bytes.extend([0_u32, 77, 1, 0].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend([0; 40]);
        let EventKind::Enter { lock, time, .. } = observed(&bytes).unwrap().event.kind else {
            panic!("it is the start of a call");
        };
        assert_eq!((lock.owner, time), (Some(77), Nanos(9)));
    }

    #[test]
    fn file_is_read_only_where_the_call_takes_one() {
        let has_file = |call: Sysno| {
            let mut value = [0; VALUES];
            value[0] = call.id().try_into().unwrap();
            value[8] = 136 << 52 | 1 << 16 | 0o020_620;
            let mut bytes = bytes(1, value);
            bytes.extend(b"0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
            let EventKind::Enter { file, .. } = observed(&bytes).unwrap().event.kind else {
                panic!("it is the start of a call");
            };
            file.is_some()
        };
        assert!(has_file(Sysno::read) && has_file(Sysno::ioctl) && has_file(Sysno::epoll_pwait));
        for call in [Sysno::futex, Sysno::timer_settime, Sysno::rt_sigprocmask, Sysno::pselect6] {
            assert!(!has_file(call), "{call:?}");
        }
    }

    #[test]
    fn kinds_of_files_are_told_apart() {
        let kind = |mode: u64, device: u64, name: &str| {
            let mut bytes = name.as_bytes().to_vec();
            bytes.resize(16, 0);
            file(device << 32 | 1 << 16 | mode, &bytes).unwrap().kind
        };
        assert_eq!(kind(0o100_644, 0, "log"), FileKind::Regular);
        assert_eq!(kind(0o020_620, 136 << 20, "0"), FileKind::Terminal);
        assert_eq!(kind(0o020_600, 1 << 20, "null"), FileKind::Device);
        assert_eq!(kind(0o600, 1, "[timerfd]"), FileKind::Timer(1));
        assert_eq!(kind(0o600, 0, "[eventfd]"), FileKind::Object);
        assert_eq!(file(0, &[0; 16]), None);
    }
}
