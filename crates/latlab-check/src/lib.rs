//! Whether a program is real-time: its cycles, and breaches of the rules of real-time programming.
//!
//! [`Judge`] receives the [events](Event) of a program's real-time threads in the order of time. A
//! thread's cycle is found from the way it sleeps: a cycle lasts from the end of one such wait to
//! the start of the next. What happens outside of cycles, as at the start of the program, breaches
//! no rule.
#![forbid(unsafe_code)]

mod awake;
mod breach;
mod call;
mod cycle;
mod event;
mod fault;
mod finding;
mod judge;
mod library;
mod lock;
mod mapping;
mod margin;
mod marks;
mod marks_of_file;
mod memory;
mod perf_map;
mod place;
mod reason;
mod report;
mod request;
mod rule;
mod spin;
mod stops;
mod summary;
mod thread;
mod wait;
mod wake_up;
mod warm_up;
mod watched;

pub use breach::{Breach, Held};
pub use call::{takes_file, waits_for_data};
pub use event::{
    Event, EventKind, File, FileKind, Locks, OutReason, StackId, Stopper, Thread, WakeContext,
};
pub use finding::Finding;
pub use judge::Judge;
pub use library::is_of_library;
pub use lock::{Lock, ReadWrite, WORDS};
pub use mapping::Mapping;
pub use margin::Margin;
pub use marks_of_file::{MarkOfFile, marks_of_file};
pub use memory::Memory;
pub use perf_map::{PerfMap, how_to_name, is_run_time};
pub use report::{
    BreachReport, CyclePart, CycleReport, Frame, MarkedPart, PartReport, PartsReport, Reason,
    Report, Spread, StopsReport, ThreadReport, Verdict, WorstCycle, some_of,
};
pub use request::{Asked, Request, Rights};
pub use rule::{Level, RULES, Rule};
pub use wait::Wait;
pub use wake_up::{Charged, WakeUp};
pub use warm_up::WarmUp;

#[cfg(test)]
mod tests;
