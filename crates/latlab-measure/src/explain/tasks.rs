//! Explaining the wake-ups of tasks that are not probes.

use super::running::RunningTasks;
use super::summary::Summarizer;
use super::{LateWakeUp, READS, proc, recorder_failed, refused};
use crate::rig::Keeping;
use latlab_bpf::{Detail, Recorder, Watch};
use latlab_core::explain::{Comm, Window};
use latlab_core::machine::Machine;
use latlab_core::plan::{ExplainPlan, Length, Plan, Watched};
use latlab_core::record::explained::Explanations;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::progress;
use latlab_sys::root::Root;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, quota};
use std::collections::BTreeSet;

/// The watched tasks, and their late wake-ups so far.
pub struct TaskExplainer {
    recorder: Recorder,
    watched: Watched,
    process: Option<Process>,
    summarizer: Summarizer,
    running: RunningTasks,
    /// Number of late wake-ups.
    late: u64,
    /// Threshold above which a wake-up is late now.
    above: Nanos,
    began: Nanos,
    /// Tasks that are watched by name or policy, and when they were listed.
    listed: (Vec<u32>, Option<Nanos>),
    interrupted: bool,
}

/// The process that is watched with `--pid`.
pub(super) struct Process {
    pid: u32,
    start_time: Option<String>,
    /// Its threads that are watched.
    threads: BTreeSet<u32>,
    /// Time from the start until the process ended.
    pub(super) ended_after: Option<Nanos>,
}

impl TaskExplainer {
    /// Explains late wake-ups, and what took the CPU from threads that never sleep. Ends when the
    /// plan's time is up, its number of wake-ups is reached, a wake-up is above its limit, the
    /// process has ended, or the user ends it. Returns whether the user ended it.
    pub fn explain(
        plan: &Plan,
        (watched, explain): (&Watched, &ExplainPlan),
        machine: &Machine,
        signals: &Signals,
        watch: &mut dyn progress::Watch,
        keeping: Option<&mut Keeping<'_>>,
    ) -> Result<(bool, Explanations)> {
        let ExplainPlan { above, running, .. } = *explain;
        let mut explainer = TaskExplainer::start(watched, above, running, machine)?;
        watch.begin("watching", &[]);
        let result = explainer.watch(plan, signals, watch, keeping);
        watch.end();
        result?;
        explainer.check_task_exists(above)?;
        Ok((explainer.interrupted, explainer.finish()))
    }

    fn start(
        watched: &Watched,
        above: Option<Nanos>,
        running: bool,
        machine: &Machine,
    ) -> Result<TaskExplainer> {
        let (process, tasks) = find(watched)?;
        let detail = if running { Detail::Running } else { Detail::UntilSwitch };
        let recorder = Recorder::start_with(&tasks, above.unwrap_or_default(), detail);
        let recorder = recorder.map_err(|e| refused(&e))?;
        Ok(TaskExplainer {
            running: RunningTasks::new(running, &recorder),
            recorder,
            watched: watched.clone(),
            process,
            summarizer: Summarizer::new(machine, above.is_some()),
            late: 0,
            above: above.unwrap_or_default(),
            began: clock::now(),
            listed: (Vec::new(), None),
            interrupted: false,
        })
    }

    fn finish(self) -> Explanations {
        let (running, torn) = self.running.finish(self.summarizer.names());
        // The number of wake-ups in time is not known.
        let mut explanations = self.summarizer.finish(0, self.above, &self.recorder);
        let missing = &mut explanations.explained.missing;
        let ended_after = self.process.and_then(|process| process.ended_after);
        missing.extend(ended_after.map(|time| format!("the process ended after {time}")));
        missing.extend(torn);
        explanations.explained.running = running;
        explanations
    }

    fn watch(
        &mut self,
        plan: &Plan,
        signals: &Signals,
        watch: &mut dyn progress::Watch,
        mut keeping: Option<&mut Keeping<'_>>,
    ) -> Result<()> {
        while !self.is_over(plan) {
            if signals.wait(watch.pace()) == Event::End {
                self.interrupted = true;
                break;
            }
            self.read()?;
            self.watch_new_threads()?;
            self.read_running()?;
            watch.note(&self.progress());
            let elapsed = clock::now() - self.began;
            watch.update(elapsed, expected_duration(plan, elapsed, self.late));
            let so_far = || self.summarizer.interim(0, self.above);
            watch.causes(elapsed, &mut || Some(so_far().explained));
            if let Some(record) = keeping.as_mut().and_then(|keeping| keeping.explained(so_far)) {
                watch.keep(&record);
            }
        }
        self.read()
    }

    fn is_over(&self, plan: &Plan) -> bool {
        let ended = self.process.as_ref().is_some_and(|process| process.ended_after.is_some());
        match plan.length {
            _ if ended || self.exceeds(plan.stop_above) => true,
            Length::For(time) => clock::now() - self.began >= time,
            Length::Count(count) => self.late >= count,
        }
    }

    /// Whether a wake-up was later than the limit.
    fn exceeds(&self, limit: Option<Nanos>) -> bool {
        let worst = self.summarizer.worst();
        limit.zip(worst).is_some_and(|(limit, (_, latency))| latency > limit)
    }

    /// Reads the recorded wake-ups.
    fn read(&mut self) -> Result<()> {
        for _ in 0..READS {
            if !self.read_once()? {
                break;
            }
        }
        Ok(())
    }

    /// Reads some of the recorded wake-ups. Whether there are more.
    fn read_once(&mut self) -> Result<bool> {
        let (summarizer, above, origin) = (&mut self.summarizer, self.above, self.began);
        let mut late = 0;
        let mut add = |window: Window| {
            if window.is_reported() && window.latency() > above {
                late += 1;
                summarizer.add(LateWakeUp::from_window(window, origin));
            }
        };
        let more = self.recorder.read(Nanos(0), &mut add).map_err(recorder_failed)?;
        self.late += late;
        if self.summarizer.above() > self.above {
            self.above = self.summarizer.above();
            self.recorder.set_threshold(self.above).map_err(recorder_failed)?;
        }
        Ok(more)
    }

    /// Reads what took the CPU from watched threads that are to run.
    fn read_running(&mut self) -> Result<()> {
        let threads = match (&self.process, &self.watched) {
            (Some(process), _) => process.ids().collect(),
            (None, watched) => {
                let (tasks, at) = &mut self.listed;
                if at.is_none_or(|at| clock::now() - at >= self.running.listed_each()) {
                    *tasks = match watched {
                        Watched::Name(name) => proc::named(name),
                        _ => proc::realtime(),
                    };
                    *at = Some(clock::now());
                }
                tasks.clone()
            }
        };
        self.running.read(&self.recorder, threads.into_iter())
    }

    /// Watches threads that the process has started since the last call.
    fn watch_new_threads(&mut self) -> Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        for thread in process.new_threads(self.began) {
            self.recorder.watch(thread).map_err(recorder_failed)?;
        }
        Ok(())
    }

    /// Fails if no late wake-up was recorded and there was no task that could have had one: nothing
    /// late would seem to have happened.
    fn check_task_exists(&self, above: Option<Nanos>) -> Result<()> {
        if self.late > 0 || self.interrupted || self.running.is_active() {
            return Ok(());
        }
        let absent = match &self.watched {
            Watched::Name(name) if !proc::has_task_named(name) => format!(
                "no task is named '{name}', and no late wake-up of that name was recorded: \
                 ps -eLo comm lists the names"
            ),
            Watched::Realtime if !proc::has_realtime_task() => {
                "no program has a real-time task, and no late wake-up of one was recorded: \
                 ps -eLo class,rtprio,comm lists the policies"
                    .to_owned()
            }
            Watched::Task(pid) => match self.ended_at_once(above) {
                Some(time) => format!(
                    "--pid {pid}: the process ended after {time}, and no late wake-up of it was \
                     recorded: start watching earlier, or use --comm"
                ),
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        Err(Failure::failed(absent))
    }

    /// Time after which the watched process ended, if that was too early for a result: before a
    /// wake-up was recorded or, if only wake-ups above a threshold are recorded, within a second.
    fn ended_at_once(&self, above: Option<Nanos>) -> Option<Nanos> {
        const AT_ONCE: Nanos = Nanos::from_secs(1);
        let ended_after = self.process.as_ref()?.ended_after?;
        (above.is_none() || ended_after < AT_ONCE).then_some(ended_after)
    }

    fn progress(&self) -> String {
        match self.summarizer.worst() {
            None if self.running.is_active() => {
                "no late wake-up yet; a thread does not sleep: what takes its CPU is recorded"
                    .to_owned()
            }
            None => "no late wake-up yet".to_owned(),
            Some((name, latency)) => {
                format!("{} late wake-ups, the worst: {name}, {latency}", self.late)
            }
        }
    }
}

/// The process of `--pid`, and what the recorder is to watch.
pub(super) fn find(watched: &Watched) -> Result<(Option<Process>, Watch)> {
    Ok(match watched {
        Watched::Name(name) => (None, Watch::Name(Comm::from(name.as_str()))),
        Watched::Realtime => (None, Watch::RealTime),
        Watched::Task(pid) => {
            let process = Process::find(*pid)?;
            let threads = process.ids().collect();
            (Some(process), Watch::Tasks(threads))
        }
    })
}

impl Process {
    pub(super) fn find(pid: u32) -> Result<Process> {
        let start_time = proc::start_time(pid);
        let threads = proc::threads(pid)?.into_iter().collect();
        Ok(Process { pid, start_time, threads, ended_after: None })
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.threads.iter().copied()
    }

    /// Updates the list of threads, and returns the new ones. If the process has ended, or its id
    /// belongs to another one, this is noted and not an error.
    pub(super) fn new_threads(&mut self, began: Nanos) -> Vec<u32> {
        if proc::has_process_ended(self.pid, self.start_time.as_deref()) {
            self.ended_after = Some(clock::now() - began);
            return Vec::new();
        }
        let Ok(threads) = proc::threads(self.pid) else { return Vec::new() };
        // An id that is not in use any more may belong to a new thread later.
        let known = std::mem::replace(&mut self.threads, threads.into_iter().collect());
        self.threads.difference(&known).copied().collect()
    }
}

impl LateWakeUp {
    pub(super) fn from_window(mut window: Window, origin: Nanos) -> LateWakeUp {
        if window.meets_quota() {
            window.quota = quota::of_task(&Root::default(), window.task.pid);
        }
        LateWakeUp::of(window, origin)
    }
}

/// The whole time that watching will take.
fn expected_duration(plan: &Plan, elapsed: Nanos, late: u64) -> Nanos {
    match plan.length {
        Length::For(time) => time,
        Length::Count(count) => Nanos(elapsed.0.saturating_mul(count) / late.max(1)),
    }
}
