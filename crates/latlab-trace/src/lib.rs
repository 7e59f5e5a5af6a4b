//! Traces that other tools have recorded, read as late wake-ups with the events around them.
//!
//! [`Trace`] reads the text of ftrace, of Perfetto's systrace, of `trace-cmd report` and of `perf script`, and the
//! trace of rtla's timerlat. [`section`] reads the tracers irqsoff, preemptoff and preemptirqsoff. What a trace lacks
//! is said in sentences: an explanation from fewer events names fewer causes.
#![forbid(unsafe_code)]

mod clock;
mod cpu;
mod event;
mod functions;
mod line;
pub mod section;
mod seen;
mod stack;
#[cfg(test)]
mod tests;
pub mod timehist;
mod timerlat;
mod trace;
mod wake;
mod watch;

pub use trace::Trace;
