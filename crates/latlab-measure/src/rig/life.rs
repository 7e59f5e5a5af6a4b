//! The body of a measuring thread, from its scheduling policy to its recording.

use super::Sampler;
use super::coordination::{Coordination, FinishGuard};
use super::observer::{Observer, attach};
use super::sampler::Recording;
use super::scheduling::{self, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::failed;
use latlab_sys::memory;
use std::io;

/// Sets the thread up, measures with `body`, and returns the recording. Returns none if this thread
/// or another one could not be set up.
pub(super) fn run_thread<F>(
    mut sampler: Sampler<'_>,
    cpus: &CpuList,
    interval: Option<Nanos>,
    scheduling: &Scheduling,
    observer: Option<(&dyn Observer, &'static str)>,
    coordination: &Coordination,
    body: &F,
) -> Option<(CpuList, Recording)>
where
    F: Fn(&mut Sampler<'_>) -> io::Result<()> + Sync,
{
    let index = sampler.index();
    let _finish = FinishGuard(coordination, index);
    memory::touch_stack();
    // Before it is moved to its CPU: a task of higher priority may keep it from ever running there, and
    // then it has to be demoted and moved away.
    coordination.register_sampler(index);
    scheduling::set_up(cpus, interval, scheduling)
        .and_then(|schedule| {
            sampler.set_schedule(schedule);
            attach(&mut sampler, cpus, observer)
        })
        .map_err(|failure| {
            // It was demoted and moved away meanwhile, which is why it could not be set up.
            let kept = coordination.is_demoted(index);
            let why = "tasks of higher priority kept its thread from running: raise priority=, or \
                       measure on other CPUs with --cpus";
            coordination.fail(if kept { failed(&format!("CPU {cpus}"), why) } else { failure });
        })
        .ok()?;
    let start = coordination.wait_for_start()?;
    sampler.start_at(start);
    if let Err(error) = body(&mut sampler)
        && !coordination.is_stopped(index)
    {
        coordination.fail(failed(&format!("measuring on CPU {cpus}"), error));
    }
    Some((cpus.clone(), sampler.finish()))
}
