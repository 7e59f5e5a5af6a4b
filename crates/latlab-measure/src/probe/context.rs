//! Processes that pass a token around a ring: time of a switch from one to the next.

mod ring_result;

use super::Probe;
use crate::rig::{Pacing, Rig, Sampler, TaskScheduling};
use crate::workload::token_ring::{self, Ring};
use crate::workload::worker::{Worker, WorkerChannel};
use latlab_core::cpulist::CpuList;
use latlab_core::histogram::Histogram;
use latlab_core::list::List;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_part::failure::{Result, lock, unpoisoned};
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::samples::{self, Sample, Samples};
use ring_result::RingResult;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Mutex;

/// Measures the time from when a process in a ring gives up the CPU until the next process runs.
///
/// The processes pass a token around through pipes, and each sums up a working set of its own
/// before it passes the token on. A sample is the time of one round, divided by the number of
/// processes, minus the time that the pipe and the sum take in a single process.
///
/// This is `lat_ctx` of lmbench (USENIX 1996), with which Zhang and Ran compare Linux 2.4 and 2.6
/// (figures 1 and 2). Each pair of a number of processes and a size gets an equal share of the run,
/// and its median is a figure; the series contains all samples. The time of the pipe and the sum is
/// measured as in `lat_ctx`, in one process and with as many pipes as the largest ring has, but
/// before each ring, for 10 ms, so that other activity on the machine is about the same. Rounds are
/// measured for 10 ms at a time. latlab takes the samples in between, and the first round after that
/// does not count. As in `lat_ctx` by default, the processes are not pinned: all may use all measured
/// CPUs (`--cpus 0` restricts them to one).
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Context {
    /// Numbers of processes in the ring, measured one after another
    #[arg(long, default_value = "2/4/8/16/24/32/64/96", value_parser = numbers)]
    processes: List<u32>,
    /// Sizes of the working set of each process, measured one after another
    #[arg(long, default_value = "0/4KiB/8KiB/16KiB/32KiB/64KiB", value_parser = sizes)]
    size: List<Bytes>,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: TaskScheduling,
}

impl Describe for Context {
    const ABOUT: About =
        About { name: "context", summary: "time to switch from one process to the next" };
}

impl Probe for Context {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("process gives up the CPU", "next process running")];
        let results = Mutex::new(Vec::new());
        let done = rig.on_all_cpus(
            Self::ABOUT.name,
            &spans,
            Pacing::BackToBack(Nanos::from_secs(20)),
            &self.scheduling.scheduling(),
            |sampler| {
                let mut results = lock(&results);
                self.measure(sampler, &mut results)
            },
        );
        self.report(rig, &unpoisoned(results.into_inner()));
        done
    }

    fn run_worker(&self, channel: &WorkerChannel) -> io::Result<()> {
        let samples = channel.samples()?;
        samples.touch(0);
        let clock_read = clock::read_cost();
        let mut ring = None;
        while let Some(order) = channel.next_order()? {
            match (order, &mut ring) {
                (Order::MakeRing(processes, size), _) => {
                    drop(ring.take());
                    let overhead = token_ring::overhead(self.most_processes(), size, clock_read)?;
                    ring = Some(Ring::new(processes, size, channel.single())?);
                    channel.answer(overhead)?;
                }
                (Order::Circulate, Some(ring)) => {
                    circulate(ring, samples)?;
                    channel.answer(())?;
                }
                (Order::Circulate, None) => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        Ok(())
    }
}

impl Context {
    /// Returns the number of processes of the largest ring.
    fn most_processes(&self) -> u32 {
        self.processes.get().iter().copied().max().unwrap_or(0)
    }

    /// Measures one ring after another.
    fn measure(&self, sampler: &mut Sampler<'_>, results: &mut Vec<RingResult>) -> io::Result<()> {
        sampler.set_collecting();
        let shared = Samples::of(1)?;
        let mut worker = Worker::start(Self::ABOUT.name, self, Some(&shared))?;
        let clock_read = clock::read_cost();
        let (sizes, numbers) = (self.size.get(), self.processes.get());
        let all = sizes.iter().flat_map(|size| numbers.iter().map(|number| (*number, *size)));
        let mut left = self.rings();
        for (processes, size) in all {
            worker.send(&Order::MakeRing(processes, size))?;
            let Some(overhead) = worker.receive(sampler)? else { break };
            let switches = Histogram::new();
            results.push(RingResult { processes, size, overhead, clock_read, switches });
            if let Some(result) = results.last_mut() {
                result.collect(sampler, left, &shared, &mut worker)?;
            }
            left -= 1;
        }
        Ok(())
    }

    /// Returns the number of pairs of a number of processes and a size.
    fn rings(&self) -> u64 {
        (self.size.get().len() * self.processes.get().len()) as u64
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
    fn report(&self, rig: &mut Rig<'_>, results: &[RingResult]) {
        let name = Self::ABOUT.name;
        for of_size in results.chunk_by(|one, next| one.size == next.size) {
            let size = of_size[0].size;
            let mut overheads: Vec<Nanos> = of_size.iter().map(|ring| ring.overhead).collect();
            overheads.sort_unstable();
            let overhead = overheads[overheads.len() / 2].0 as f64;
            rig.add_figure(name, &format!("pipe and {size} alone"), overhead, "ns");
            for ring in of_size.iter().filter(|ring| ring.switches.count() > 0) {
                let what = format!("{} processes, {size}", ring.processes);
                match ring.switches.quantile(0.5) {
                    Nanos(0) => rig.warnings.push(below_overhead(&what)),
                    switch => rig.add_figure(name, &what, switch.0 as f64, "ns"),
                }
            }
        }
        let measured = results.iter().filter(|ring| ring.switches.count() > 0);
        let (measured, all) = (measured.count() as u64, self.rings());
        if 0 < measured && measured < all {
            let text = format!(
                "context: the run ended after {measured} of {all} pairs of a number of processes \
                 and a size: measure longer, or fewer of them"
            );
            rig.warnings.push(Warning::new(WarningCode::NotMeasured, text));
        }
    }
}

fn below_overhead(what: &str) -> Warning {
    let text = format!(
        "context: {what}: most switches took less than the variation of the pipe and the sum, so \
         there is no figure: other tasks run on these CPUs, or the working set is too large"
    );
    Warning::new(WarningCode::BelowOverhead, text)
}

/// What the worker is to do.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Start a ring of this many processes with working sets of this size. The answer is the time of
    /// the pipe and the sum in a single process.
    MakeRing(u32, Bytes),
    /// Send the token around for a while. The answer comes when the samples can be taken.
    Circulate,
}

/// Sends the token around for a while.
fn circulate(ring: &mut Ring, samples: &Samples) -> io::Result<()> {
    const LENGTH: Nanos = Nanos::from_millis(10);
    // The first round finds caches as the process that takes samples left them.
    ring.go_around()?;
    let start = clock::now();
    let mut begin = start;
    // No more samples than there is room for.
    for _ in 0..samples::ENTRIES {
        ring.go_around()?;
        let at = clock::now();
        samples.write(0, Sample { at, latency: at - begin, amount: 1 });
        if at - start > LENGTH {
            break;
        }
        // The next round begins after the sample is written.
        begin = clock::now();
    }
    Ok(())
}

/// Parses numbers of processes.
fn numbers(text: &str) -> std::result::Result<List<u32>, String> {
    let number = |word: &str| match word.parse() {
        Ok(number) if (2..=256).contains(&number) => Ok(number),
        _ => {
            Err(format!("'{word}' is not a number from 2 to 256: write one, or several as 2/8/16"))
        }
    };
    List::read(text, number)
}

/// Parses sizes of working sets.
fn sizes(text: &str) -> std::result::Result<List<Bytes>, String> {
    let size = |word: &str| {
        let size = if word == "0" { Bytes(0) } else { word.parse().map_err(|e| format!("{e}"))? };
        if size.0 <= 1 << 20 && size.0.is_multiple_of(8) {
            return Ok(size);
        }
        Err(format!("'{word}' is not a multiple of 8B up to 1MiB"))
    };
    List::read(text, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_parsed_as_lists_or_refused() {
        assert_eq!(numbers("2/96").unwrap().get(), [2, 96]);
        assert_eq!(sizes("0/4KiB").unwrap().get(), [Bytes(0), Bytes(4096)]);
        assert_eq!(sizes("4KiB/4096B"), Err("4KiB is given twice".to_owned()));
        for wrong in ["", "1", "2/", "257", "two"] {
            assert!(numbers(wrong).unwrap_err().contains("2 to 256"), "{wrong}");
        }
        assert!(sizes("4").unwrap_err().contains("unit"));
        assert!(sizes("9B").unwrap_err().contains("multiple of 8B"));
        assert!(sizes("2MiB").unwrap_err().contains("1MiB"));
    }
}
