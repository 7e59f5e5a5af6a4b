//! Reads the events of CPUs for the account of threads that are to run.

use super::proc::{self, Usage};
use super::recorder_failed;
use latlab_bpf::Recorder;
use latlab_core::cpulist::CpuList;
use latlab_core::explain::names::Names;
use latlab_core::explain::running::Account;
use latlab_core::record::running::RunningThread;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_sys::clock;
use std::collections::BTreeMap;

/// Time after which an event is surely complete.
const SETTLED: Nanos = Nanos::from_millis(1);

/// The events read so far, and the account from them.
#[derive(Default)]
pub(super) struct Events {
    pub(super) account: Account,
    /// Up to when events have been added.
    pub(super) until: Nanos,
    /// Entries of each CPU that were read.
    seen: BTreeMap<u32, u64>,
    /// How often events were overwritten before they were read.
    torn: u64,
}

impl Events {
    /// Adds the new events of these CPUs; of threads that have ended, all of them.
    pub(super) fn read(
        &mut self,
        recorder: &Recorder,
        cpus: impl Iterator<Item = u32>,
        ended: bool,
    ) -> Result<()> {
        let until = if ended { clock::now() } else { clock::now() - SETTLED };
        let mut events = Vec::new();
        for cpu in cpus {
            let seen = self.seen.get(&cpu).copied();
            // The reader may have lost the CPU for long since `until`: later events come with the
            // next call.
            let latest = recorder.events_after(cpu, seen.unwrap_or_default(), until);
            let latest = latest.map_err(recorder_failed)?;
            if latest.torn && seen.is_some() {
                self.account.lose(cpu);
                self.torn += 1;
            }
            self.seen.insert(cpu, latest.seen);
            let new = latest.events.into_iter().filter(|event| event.at > self.until);
            events.extend(new.map(|event| (cpu, event)));
        }
        self.account.add(events, until);
        self.until = until;
        Ok(())
    }

    /// What is missing, as a sentence.
    pub(super) fn missing(&self) -> Option<String> {
        let torn = self.torn;
        (torn > 0).then(|| {
            format!(
                "{torn} times events were overwritten before they were read: that time is left out"
            )
        })
    }
}

/// The watched threads that are to run: all of them, or those that do not sleep.
pub(super) struct RunningTasks {
    events: Events,
    /// Whether all watched threads count, not only those that never sleep.
    all: bool,
    /// The threads known so far, and their usage when they were first seen. The usage is none for
    /// threads that do not count because they sleep.
    threads: BTreeMap<u32, Option<Usage>>,
    /// CPUs whose events are read; all where threads may sleep, as any CPU may wake them.
    cpus: CpuList,
    /// Whether a thread is accounted for.
    is_active: bool,
}

/// CPU time without a sleep after which a thread seems to be one that never sleeps.
const BUSY: Nanos = Nanos::from_millis(50);

impl RunningTasks {
    pub(super) fn new(all: bool, recorder: &Recorder) -> RunningTasks {
        let cpus = if all { (0..recorder.cpus()).collect() } else { CpuList::default() };
        let (events, threads) = (Events::default(), BTreeMap::new());
        RunningTasks { events, all, threads, cpus, is_active: false }
    }

    /// Watches the threads that count, and reads the new events.
    pub(super) fn read(
        &mut self,
        recorder: &Recorder,
        threads: impl Iterator<Item = u32>,
    ) -> Result<()> {
        for thread in threads {
            self.consider(thread);
        }
        let cpus: Vec<u32> = self.cpus.iter().filter(|cpu| *cpu < recorder.cpus()).collect();
        self.events.read(recorder, cpus.into_iter(), false)
    }

    /// Watches a thread once it counts.
    fn consider(&mut self, thread: u32) {
        if self.events.account.is_watched(thread) || self.threads.get(&thread) == Some(&None) {
            return;
        }
        let Some(now) = proc::usage(thread) else { return };
        let known = self.threads.entry(thread).or_insert(Some(now));
        let Some(first) = *known else { return };
        if !self.all && now.sleeps != first.sleeps {
            *known = None;
        } else if self.all || now.ran - first.ran >= BUSY {
            self.events.account.watch(thread);
            self.is_active = true;
            let allowed = proc::allowed_cpus(thread).unwrap_or_default();
            self.cpus = self.cpus.iter().chain(allowed.iter()).collect();
        }
    }

    /// How often the tasks that are watched by name or policy have to be listed, which takes
    /// milliseconds.
    pub(super) fn listed_each(&self) -> Nanos {
        Nanos::from_secs(if self.all { 1 } else { 10 })
    }

    /// Whether a thread is accounted for.
    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }

    /// The accounts of all threads, or of the threads that have not slept; and a sentence on
    /// missing data.
    pub(super) fn finish(self, names: &Names) -> (Vec<RunningThread>, Option<String>) {
        let account = |(thread, first): (&u32, &Option<Usage>)| {
            let one = self.events.account.thread(*thread, names)?;
            let before = first.map_or(0, |first| first.faults);
            let faults = proc::usage(*thread).map_or(0, |now| now.faults - before);
            (self.all || one.sleeps == 0).then_some(RunningThread { faults, ..one })
        };
        (self.threads.iter().filter_map(account).collect(), self.events.missing())
    }
}
