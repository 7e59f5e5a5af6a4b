//! The wake-ups of tasks that are there without us.

use super::summing::{Explanations, Sum};
use super::{Late, has_ended, is_anybody, lost, start, started, threads};
use crate::failure::Result;
use crate::rig;
use latlab_bpf::{Recorder, Watch};
use latlab_core::explain::{Comm, Window};
use latlab_core::machine::Machine;
use latlab_core::plan::{Length, Plan, Watched};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::signal::{Event, Signals};
use std::collections::HashSet;

/// Other tasks, and what is known of their wake-ups so far.
pub(crate) struct Others {
    recorder: Recorder,
    /// The threads of the process that is watched, as far as they are known.
    known: HashSet<u32>,
    /// When that process was started.
    started: Option<String>,
    sum: Sum,
    /// How many were late.
    seen: u64,
    /// From where on a wake-up is late by now.
    above: Nanos,
    began: Nanos,
    interrupted: bool,
    /// Into the watching, the process was seen to have ended.
    ended: Option<Nanos>,
}

/// How often some windows are taken before the time is looked at again: as often as empties the room
/// that the kernel has for them.
const AT_A_TIME: u32 = 100;

impl Others {
    /// Watches until the plan's time is up, its number of late wake-ups was seen, the process has
    /// ended, or the user has had enough, and says whether it was the latter.
    pub(crate) fn explain(
        plan: &Plan,
        (watched, asked): (&Watched, Option<Nanos>),
        machine: &Machine,
        signals: &Signals,
        watch: &mut dyn rig::Watch,
    ) -> Result<(bool, Explanations)> {
        let (mut known, mut process) = (HashSet::new(), None);
        let whom = match watched {
            Watched::Task(pid) => {
                process = started(*pid);
                let threads = threads(*pid)?;
                known.extend(&threads);
                Watch::Tasks(threads)
            }
            Watched::Name(name) => Watch::Name(Comm::from(name.as_str())),
            Watched::Realtime => Watch::RealTime,
        };
        let recorder = start(&whom, asked.unwrap_or_default())?;
        let above = asked.unwrap_or_default();
        let (sum, began) = (Sum::new(machine, asked.is_some()), clock::now());
        let (seen, interrupted, ended) = (0, false, None);
        let started = process;
        let mut others =
            Others { recorder, known, started, sum, seen, above, began, interrupted, ended };
        watch.begin("watching", &[]);
        let watched_all = others.watch(plan, watched, signals, watch);
        watch.end();
        watched_all?;
        let nobody = others.nobody(watched);
        // How many were on time, nobody counted.
        let mut explanations = others.sum.finish(0, others.above, &others.recorder);
        let missing = &mut explanations.explained.missing;
        missing.extend(nobody);
        missing.extend(others.ended.map(|at| format!("the process ended: {at} were watched")));
        Ok((others.interrupted, explanations))
    }

    fn watch(
        &mut self,
        plan: &Plan,
        watched: &Watched,
        signals: &Signals,
        watch: &mut dyn rig::Watch,
    ) -> Result<()> {
        while !self.is_over(plan) {
            if signals.wait(watch.pace()) == Event::End {
                self.interrupted = true;
                break;
            }
            self.look()?;
            if let Watched::Task(pid) = watched {
                self.look_for_threads(*pid)?;
            }
            watch.note(&self.so_far());
            let elapsed = clock::now() - self.began;
            watch.update(elapsed, about(plan, elapsed, self.seen));
            watch.causes(elapsed, &mut || Some(self.sum.so_far(0, self.above)));
        }
        self.look()
    }

    fn is_over(&self, plan: &Plan) -> bool {
        match plan.length {
            _ if self.ended.is_some() => true,
            Length::For(time) => clock::now() - self.began >= time,
            Length::Count(count) => self.seen >= count,
        }
    }

    /// Takes what has come.
    fn look(&mut self) -> Result<()> {
        for _ in 0..AT_A_TIME {
            if !self.take()? {
                break;
            }
        }
        Ok(())
    }

    /// Takes some of it, and says whether there is more.
    fn take(&mut self) -> Result<bool> {
        let (sum, above, origin) = (&mut self.sum, self.above, self.began);
        let mut seen = 0;
        let mut take = |window: Window| {
            if window.is_reported() && window.latency() > above {
                seen += 1;
                sum.add(Late::of(window, origin));
            }
        };
        let more = self.recorder.read(Nanos(0), &mut take).map_err(lost)?;
        self.seen += seen;
        if self.sum.above() > self.above {
            self.above = self.sum.above();
            self.recorder.set_above(self.above).map_err(lost)?;
        }
        Ok(more)
    }

    /// A process may start threads while it is watched.
    fn look_for_threads(&mut self, pid: u32) -> Result<()> {
        // One that has ended is no error: what it did until then is here. Whoever has its number
        // by now is another.
        let threads: HashSet<u32> = threads(pid).unwrap_or_default().into_iter().collect();
        if started(pid) != self.started || threads.iter().all(|thread| has_ended(*thread)) {
            self.ended = Some(clock::now() - self.began);
            return Ok(());
        }
        // A number that nobody has any more may be that of a new thread the next time.
        let known = std::mem::replace(&mut self.known, threads);
        let mut new = self.known.difference(&known);
        new.try_for_each(|thread| self.recorder.watch(*thread)).map_err(lost)
    }

    /// Why there was nothing to see, where that is for want of a task.
    fn nobody(&self, watched: &Watched) -> Option<String> {
        match watched {
            Watched::Name(name) if self.seen == 0 && !is_anybody(name) => {
                Some(format!("no task is named '{name}', and none of that name was late before"))
            }
            _ => None,
        }
    }

    fn so_far(&self) -> String {
        match self.sum.worst() {
            None => "no wake-up was late yet".to_owned(),
            Some((name, latency)) => {
                format!("{} wake-ups late, the worst {name} after {latency}", self.seen)
            }
        }
    }
}

impl Late {
    fn of(window: Window, origin: Nanos) -> Late {
        Late {
            probe: window.task.comm.to_string(),
            cpu: window.cpu,
            at: window.ran,
            origin,
            latency: window.latency(),
            window: Some(window),
        }
    }
}

/// How long it will have taken in all.
fn about(plan: &Plan, elapsed: Nanos, seen: u64) -> Nanos {
    match plan.length {
        Length::For(time) => time,
        Length::Count(count) => Nanos(elapsed.0.saturating_mul(count) / seen.max(1)),
    }
}
