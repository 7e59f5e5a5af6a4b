//! Explaining late wake-ups while they happen, of probes or of other tasks.

mod always;
mod collector;
mod live;
mod probes;
pub mod proc;
mod running;
mod summary;
mod tasks;
mod trace;
mod wake_ups;

pub use always::{FlightRecorder, Late};
pub use probes::{ProbeExplainer, Subject};
pub use tasks::TaskExplainer;
pub use trace::TraceExplainer;
pub use wake_ups::WakeUps;

use latlab_bpf::{Detail, Recorder, RecorderError, Watch};
use latlab_core::explain::Window;
use latlab_core::explain::charge::Explanation;
use latlab_core::plan::{ExplainPlan, Watched};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::sched::LargestShare;

/// Most reads between two looks at the time. They empty the recorder's buffer once.
const READS: u32 = 100;

/// A late wake-up.
struct LateWakeUp {
    /// Name of the probe or of the task.
    name: String,
    cpu: u32,
    /// Time at which the task ran, on `CLOCK_MONOTONIC`.
    at: Nanos,
    /// Time at which the measurement began.
    origin: Nanos,
    latency: Nanos,
    /// The recorded events; none where the wake-up was not recorded.
    window: Option<Window>,
    /// Of a gap in a busy loop, which is no wake-up, its explanation.
    gap: Option<Explanation>,
}

impl LateWakeUp {
    /// The wake-up of a window, in a measurement that began at `origin`.
    fn of(window: Window, origin: Nanos) -> LateWakeUp {
        LateWakeUp {
            name: window.task.comm.to_string(),
            cpu: window.cpu,
            at: window.ran,
            origin,
            latency: window.latency(),
            window: Some(window),
            gap: None,
        }
    }
}

/// Refuses a plan that can't be explained here, before anything starts.
pub fn check(plan: &ExplainPlan) -> Result<()> {
    Recorder::check().map_err(|e| refused(&e))?;
    match &plan.watch {
        Some(Watched::Task(pid)) => proc::threads(*pid).map(drop),
        _ => Ok(()),
    }
}

fn refused(error: &RecorderError) -> Failure {
    Failure::unsupported(format!("explain: {error}"))
}

/// Starts the recorder. Loads run already, and an ordinary thread would wait for most of the time.
fn start_recorder(watch: &Watch, above: Nanos, detail: Detail) -> Result<Recorder> {
    let _share = LargestShare::take();
    Recorder::start_with(watch, above, detail).map_err(|e| refused(&e))
}

fn recorder_failed(error: std::io::Error) -> Failure {
    failed("the BPF recorder can't be controlled", error)
}
