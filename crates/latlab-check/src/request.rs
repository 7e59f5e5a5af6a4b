//! Requests for a real-time policy or for locked memory, and why the kernel refuses them.

use super::event::{StackId, Thread};
use super::finding::{Finding, about};
use super::memory::Size;
use super::place::{library_function, place};
use super::report::{Frame, Report};
use super::rule::Rule;

/// A system call that asks for a real-time policy or for locked memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name of the system call.
    pub call: &'static str,
    /// What it returned; below 0 an error.
    pub result: i64,
    /// What it asked for.
    pub asked: Asked,
    /// The soft limit `RLIMIT_RTPRIO`.
    pub rtprio: u64,
    /// The soft limit `RLIMIT_MEMLOCK`, in bytes.
    pub memlock: u64,
    /// The rights of the thread.
    pub rights: Rights,
    /// Stack of the call; none if it could not be read.
    pub stack: Option<StackId>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A policy and a priority for a thread; without a policy, the thread keeps its own.
    Scheduling {
        /// ID of the thread, 0 for the caller.
        target: u32,
        /// Number of the policy, as in `sched_setscheduler(2)`.
        policy: Option<u32>,
        /// The priority.
        priority: u32,
    },
    /// Locked memory: that many bytes, where known.
    Memory(Option<u64>),
}

/// The rights that the kernel checks before it grants a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel asks for each on its own")]
pub struct Rights {
    /// It has `CAP_SYS_NICE`.
    pub may_schedule: bool,
    /// It has `CAP_IPC_LOCK`.
    pub may_lock: bool,
    /// It is in a user namespace, whose capabilities do not count.
    pub in_namespace: bool,
    /// Its control group has no real-time budget (`CONFIG_RT_GROUP_SCHED`).
    pub without_budget: bool,
}

/// The requests of a program that were refused.
#[derive(Debug, Default)]
pub(super) struct Requests(Vec<Refused>);

/// A request that was refused, and not granted later.
#[derive(Debug)]
struct Refused {
    thread: Thread,
    request: Request,
    count: u64,
    /// Whether the thread that it was for was real-time before.
    was_realtime: bool,
}

/// Largest number of different requests that are kept.
const MOST: usize = 100;
/// The number of an error of the kernel that is no permission.
const EPERM: i64 = -1;
const ENOMEM: i64 = -12;
const EBUSY: i64 = -16;
const EINVAL: i64 = -22;

impl Requests {
    /// Adds a request. `is_realtime` says whether a thread is known as real-time.
    pub(super) fn add(
        &mut self,
        thread: Thread,
        request: &Request,
        is_realtime: &dyn Fn(u32) -> bool,
    ) {
        let Some(target) = request.target(thread) else { return };
        if request.result >= 0 {
            let is_same = |one: &Refused| {
                one.thread.pid == thread.pid
                    && one.request.target(one.thread) == Some(target)
                    && one.request.call.starts_with("mlock") == request.call.starts_with("mlock")
            };
            return self.0.retain(|one| !is_same(one));
        }
        let is_same = |one: &&mut Refused| {
            let (known, new) = (&one.request, request);
            one.thread.tid == thread.tid
                && (known.call, known.result, known.asked) == (new.call, new.result, new.asked)
        };
        if let Some(known) = self.0.iter_mut().find(is_same) {
            known.count += 1;
        } else if self.0.len() < MOST {
            let (request, was_realtime) = (request.clone(), is_realtime(target));
            self.0.push(Refused { thread, request, count: 1, was_realtime });
        }
    }

    /// The findings. A request for a thread that became real-time after all, and one for the memory of a
    /// process that is not real-time and did not want to be, are none.
    pub(super) fn findings(
        &self,
        frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>,
        is_realtime: &dyn Fn(u32) -> bool,
        has_realtime: &dyn Fn(u32) -> bool,
    ) -> Vec<Finding> {
        let asks = |pid: u32| {
            self.0.iter().any(|one| one.thread.pid == pid && one.request.is_for_scheduling())
        };
        let counts = |one: &&Refused| match one.request.target(one.thread) {
            Some(target) if one.request.is_for_scheduling() => {
                one.was_realtime || !is_realtime(target)
            }
            _ => has_realtime(one.thread.pid) || asks(one.thread.pid),
        };
        self.0.iter().filter(counts).map(|one| one.finding(frames)).collect()
    }
}

impl Request {
    fn is_for_scheduling(&self) -> bool {
        matches!(self.asked, Asked::Scheduling { .. })
    }

    /// The thread that it is for. None if it asks for nothing real-time.
    fn target(&self, caller: Thread) -> Option<u32> {
        /// `SCHED_RESET_ON_FORK`.
        const RESET: u32 = 0x4000_0000;
        match self.asked {
            Asked::Scheduling { policy: Some(policy), .. }
                if !matches!(policy & !RESET, 1 | 2 | 6) =>
            {
                None
            }
            Asked::Scheduling { policy: None, priority: 0, .. } => None,
            Asked::Scheduling { target: 0, .. } | Asked::Memory(_) => Some(caller.tid),
            Asked::Scheduling { target, .. } => Some(target),
        }
    }

    /// What it asked for, in words.
    fn what(&self) -> String {
        match self.asked {
            Asked::Memory(_) => "locked memory".to_owned(),
            Asked::Scheduling { policy: None, priority, .. } => format!("priority {priority}"),
            Asked::Scheduling { policy: Some(policy), priority, .. } => match policy & 0xff {
                1 => format!("SCHED_FIFO {priority}"),
                2 => format!("SCHED_RR {priority}"),
                _ => "SCHED_DEADLINE".to_owned(),
            },
        }
    }

    /// What is missing, a sentence each.
    fn lacks(&self) -> Vec<String> {
        match self.asked {
            Asked::Scheduling { policy, priority, .. } => {
                self.lacks_for_policy(policy.is_some_and(|policy| policy & 0xff == 6), priority)
            }
            Asked::Memory(size) => self.lacks_for_memory(size).into_iter().collect(),
        }
    }

    fn lacks_for_policy(&self, by_deadline: bool, priority: u32) -> Vec<String> {
        let Rights { may_schedule, in_namespace, without_budget, .. } = self.rights;
        let capable = may_schedule && !in_namespace;
        let mut missing = Vec::new();
        if self.result == EINVAL && !by_deadline && !(1..=99).contains(&priority) {
            return vec![format!("{priority} is no priority of it: 1 to 99 are")];
        }
        if self.result == EBUSY {
            let budget = "the bandwidth of all SCHED_DEADLINE tasks would exceed sched_rt_runtime_us \
                          of sched_rt_period_us on its CPUs";
            return vec![budget.to_owned()];
        }
        if self.result != EPERM {
            return missing;
        }
        if !capable && by_deadline {
            missing.push(format!(
                "missing: CAP_SYS_NICE, which SCHED_DEADLINE needs{}",
                self.nested()
            ));
        } else if !capable && self.rtprio < u64::from(priority) {
            missing.push(format!(
                "missing: CAP_SYS_NICE, or a limit RLIMIT_RTPRIO of at least {priority} (it is {}){}",
                self.rtprio,
                self.nested()
            ));
        }
        if missing.is_empty() && without_budget {
            let group =
                "missing: a real-time budget of its control group, whose cpu.rt_runtime_us is 0";
            missing.push(group.to_owned());
        }
        if missing.is_empty() {
            let other = if by_deadline {
                "it has the right: its CPUs may not be all of a root domain, as SCHED_DEADLINE needs"
            } else {
                "it has the right: a seccomp filter, a security module or the thread's owner forbids it"
            };
            missing.push(other.to_owned());
        }
        missing
    }

    fn lacks_for_memory(&self, size: Option<u64>) -> Option<String> {
        if self.rights.may_lock && !self.rights.in_namespace {
            return None;
        }
        let limit = Size(self.memlock);
        let needed = size.filter(|size| *size > self.memlock);
        match (self.result, needed) {
            (ENOMEM, Some(size)) => Some(format!(
                "missing: CAP_IPC_LOCK, or a limit RLIMIT_MEMLOCK of at least {} (it is {limit}){}",
                Size(size),
                self.nested()
            )),
            (EPERM | ENOMEM, _) => Some(format!(
                "missing: CAP_IPC_LOCK, or a higher limit RLIMIT_MEMLOCK (it is {limit}){}",
                self.nested()
            )),
            _ => None,
        }
    }

    /// Why a capability that it has does not count.
    fn nested(&self) -> &'static str {
        let has =
            if self.is_for_scheduling() { self.rights.may_schedule } else { self.rights.may_lock };
        if has && self.rights.in_namespace {
            "; the capability that it has is that of a user namespace"
        } else {
            ""
        }
    }
}

impl Refused {
    fn finding(&self, frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>) -> Finding {
        let Refused { thread, request, count, .. } = self;
        let stack = request.stack.map(|stack| frames(thread.pid, stack)).unwrap_or_default();
        let call = request.call;
        let by = library_function(&stack).filter(|name| *name != call);
        let call = by.map_or(call.to_owned(), |by| format!("{by} ({call})"));
        let subject =
            format!("was refused {}: {call} failed with {}", request.what(), error(request.result));
        let (details, place) = (request.lacks(), place(&stack));
        Finding { subject, details, place, stack, count: *count, ..about(*thread, Rule::Refused) }
    }
}

/// Adds to each thread that was refused which real-time threads wait for it.
pub(super) fn add_waiting(report: &mut Report) {
    let Report { findings, threads, .. } = report;
    for finding in findings.iter_mut().filter(|one| one.rule == Rule::Refused) {
        let it = format!("[{}, ", finding.tid);
        for thread in threads.iter() {
            let waits = |by: &Option<String>| by.as_ref().is_some_and(|by| by.contains(&it));
            let count: u64 =
                { &thread.breaches }.iter().filter(|one| waits(&one.by)).map(|one| one.count).sum();
            if count > 0 {
                let (name, tid, policy) = (&thread.name, thread.tid, &thread.policy);
                let waited = format!(
                    "{name} [{tid}], {policy}, waited for it in the longest of {count} waits"
                );
                finding.details.push(waited);
            }
        }
    }
}

/// The name of an error of the kernel.
fn error(result: i64) -> String {
    let name = match result {
        EPERM => "EPERM",
        -3 => "ESRCH",
        -7 => "E2BIG",
        -11 => "EAGAIN",
        ENOMEM => "ENOMEM",
        -14 => "EFAULT",
        EBUSY => "EBUSY",
        EINVAL => "EINVAL",
        -38 => "ENOSYS",
        other => return format!("error {}", other.unsigned_abs()),
    };
    name.to_owned()
}
