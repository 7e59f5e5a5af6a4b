//! The life of a measuring thread, from its policy to its last sample.

use super::Lane;
use super::lane::Finished;
use super::meeting::{Done, Meeting};
use super::observing::{Observer, observe};
use super::scheduling::{self, Scheduling};
use crate::failure::failed;
use latlab_core::cpulist::CpuList;
use latlab_core::record::Schedule;
use latlab_core::time::Nanos;
use latlab_sys::memory;
use std::io;

/// Sets it up, measures, and says what came out. None if it, or another, could not be set up.
pub(super) fn live<F>(
    mut lane: Lane<'_>,
    cpus: &CpuList,
    interval: Option<Nanos>,
    scheduling: &Scheduling,
    observer: Option<(&dyn Observer, &'static str)>,
    meeting: &Meeting,
    body: &F,
) -> Option<(CpuList, Schedule, Finished)>
where
    F: Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
{
    let place = lane.place();
    let _done = Done(meeting, place);
    memory::touch_stack();
    let schedule = scheduling::set_up(cpus, interval, scheduling)
        .and_then(|schedule| {
            observe(&mut lane, cpus, observer)?;
            Ok(schedule)
        })
        .map_err(|failure| meeting.fail(failure))
        .ok()?;
    let start = meeting.gather()?;
    meeting.here(place);
    lane.prepare(start);
    if let Err(error) = body(&mut lane)
        && !meeting.is_stopped(place)
    {
        meeting.fail(failed(&format!("measuring on CPU {cpus}"), error));
    }
    Some((cpus.clone(), schedule, lane.finish()))
}
