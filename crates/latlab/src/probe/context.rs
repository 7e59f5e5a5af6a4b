//! Processes that pass a token around: what a switch from one to the next takes.

use super::Probe;
use crate::failure::Result;
use crate::registry::About;
use crate::rig::{Lane, Rhythm, Rig, Share, Tasks};
use crate::token::{self, Ring};
use crate::worker::{Post, Worker};
use latlab_core::cpulist::CpuList;
use latlab_core::histogram::Histogram;
use latlab_core::list::List;
use latlab_core::record::Warning;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::samples::{Sample, Samples};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Mutex, PoisonError};

/// Processes in a ring that pass a token through pipes, each of which sums up a working set of its
/// own before it passes it on: records how long the token's way around takes, divided by the
/// processes, less what the pipe and the sum take in a single process.
///
/// `lat_ctx` of lmbench (USENIX 1996), with which Zhang and Ran compare Linux 2.4 and
/// 2.6 (figures 1 and 2). Each number of processes is measured with each size for an equal part of
/// the run, and has its median as a figure; the series holds all samples. What the pipe and the
/// sum take is measured as `lat_ctx` does, in one process and with as many pipes as the largest
/// ring has, but before each ring, for 10 ms: what else goes on is about the same then. As
/// `lat_ctx` does unless told otherwise, it binds no process to a CPU: all may use all the CPUs
/// under test (`--cpus 0` keeps them on one).
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Context {
    /// Processes in the ring, one number after another
    #[arg(long, default_value = "2/4/8/16/24/32/64/96", value_parser = numbers)]
    processes: List<u32>,
    /// Working set of each process, one size after another
    #[arg(long, default_value = "0/4KiB/8KiB/16KiB/32KiB/64KiB", value_parser = sizes)]
    size: List<Bytes>,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Tasks,
}

/// What came of one size and number of processes.
struct Cell {
    processes: u32,
    size: Bytes,
    overhead: Nanos,
    clock_read: Nanos,
    switches: Histogram,
}

impl Probe for Context {
    const ABOUT: About =
        About { name: "context", summary: "what switching from one process to the next takes" };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("process gives up the CPU", "next process running")];
        let cells = Mutex::new(Vec::new());
        let done = rig.on_all_cpus(
            Self::ABOUT.name,
            &spans,
            Rhythm::Within(Nanos::from_secs(20)),
            &self.scheduling.scheduling(),
            |lane| self.go_through(lane, &mut cells.lock().unwrap_or_else(PoisonError::into_inner)),
        );
        self.report(rig, &cells.into_inner().unwrap_or_else(PoisonError::into_inner));
        done
    }

    fn work(&self, post: &Post) -> io::Result<()> {
        let samples = post.samples()?;
        samples.touch(0);
        let clock_read = clock::read_cost();
        while let Some((processes, size)) = post.order::<(u32, Bytes)>()? {
            let overhead = token::overhead(self.most(), size, clock_read)?;
            let mut ring = Ring::of(processes, size, post.single())?;
            samples.set_stopped(false);
            post.say(overhead)?;
            go_around(&mut ring, samples)?;
            drop(ring);
            post.say(Nanos(0))?;
        }
        Ok(())
    }
}

impl Context {
    /// The most processes of a ring.
    fn most(&self) -> u32 {
        self.processes.get().iter().copied().max().unwrap_or(0)
    }

    /// Measures one cell after another.
    fn go_through(&self, lane: &mut Lane<'_>, cells: &mut Vec<Cell>) -> io::Result<()> {
        lane.collect();
        let samples = Samples::of(1)?;
        let mut worker = Worker::start(Self::ABOUT.name, self, Some(&samples))?;
        let clock_read = clock::read_cost();
        let (sizes, numbers) = (self.size.get(), self.processes.get());
        let all = sizes.iter().flat_map(|size| numbers.iter().map(|number| (*number, *size)));
        let mut left = self.cells();
        for (processes, size) in all {
            worker.ask(&(processes, size))?;
            let Some(overhead) = worker.answer(lane)? else { break };
            let switches = Histogram::new();
            cells.push(Cell { processes, size, overhead, clock_read, switches });
            if let Some(cell) = cells.last_mut() {
                cell.listen(lane, left, &samples, &mut worker)?;
            }
            left -= 1;
        }
        Ok(())
    }

    /// How many sizes and numbers of processes there are together.
    fn cells(&self) -> u64 {
        (self.size.get().len() * self.processes.get().len()) as u64
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
    fn report(&self, rig: &mut Rig<'_>, cells: &[Cell]) {
        let name = Self::ABOUT.name;
        for of_size in cells.chunk_by(|one, next| one.size == next.size) {
            let size = of_size[0].size;
            let mut overheads: Vec<Nanos> = of_size.iter().map(|cell| cell.overhead).collect();
            overheads.sort_unstable();
            let overhead = overheads[overheads.len() / 2].0 as f64;
            rig.figure(name, &format!("pipe and {size} alone"), overhead, "ns");
            for cell in of_size.iter().filter(|cell| cell.switches.count() > 0) {
                let what = format!("{} processes, {size}", cell.processes);
                match cell.switches.quantile(0.5) {
                    Nanos(0) => rig.warnings.push(too_small(&what)),
                    switch => rig.figure(name, &what, switch.0 as f64, "ns"),
                }
            }
        }
        let measured = cells.iter().filter(|cell| cell.switches.count() > 0);
        let (measured, all) = (measured.count() as u64, self.cells());
        if 0 < measured && measured < all {
            let text = format!(
                "context: the run ended after {measured} of {all} pairs of a number of processes \
                 and a size: measure longer, or fewer of them"
            );
            rig.warnings.push(Warning::new("not-measured", text));
        }
    }
}

impl Cell {
    /// Keeps the samples of a ring that goes around, for one of `left` parts of what is left of
    /// the run, and has it stopped.
    fn listen(
        &mut self,
        lane: &mut Lane<'_>,
        left: u64,
        samples: &Samples,
        worker: &mut Worker,
    ) -> io::Result<()> {
        const PACE: Nanos = Nanos::from_millis(10);
        let (share, mut taken, lost) = (lane.share(left), Vec::new(), samples.lost());
        while lane.running_in(share) {
            if worker.answer_within::<Nanos>(PACE)?.is_some() {
                return Err(io::Error::other("the ring ended before it was told to"));
            }
            samples.take(&mut taken);
            taken.iter().all(|sample| self.keep(lane, share, *sample));
        }
        samples.set_stopped(true);
        worker.last_answer::<Nanos>()?;
        // What came after the end is nobody's.
        samples.take(&mut taken);
        lane.pass(clock::now(), samples.lost() - lost);
        Ok(())
    }

    /// Records one way around. Whether to go on.
    fn keep(&mut self, lane: &mut Lane<'_>, share: Share, around: Sample) -> bool {
        let each = each(around.latency, self.clock_read, self.processes);
        if each < self.overhead {
            lane.early();
        }
        let switch = each - self.overhead;
        lane.sample(0, around.at, switch);
        lane.pass(around.at, 0);
        if lane.counts() {
            self.switches.record(switch);
        }
        lane.running_in(share)
    }
}

fn too_small(what: &str) -> Warning {
    let text = format!(
        "context: {what}: most switches took less than the pipe and the sum vary by, so there is no \
         figure: something else runs on these CPUs, or the working set is too large"
    );
    Warning::new("below-overhead", text)
}

/// What each process had of the token's way around, in which the clock was read once.
fn each(around: Nanos, clock_read: Nanos, processes: u32) -> Nanos {
    Nanos((around - clock_read).0 / u64::from(processes.max(1)))
}

/// Sends the token around until it is to stop.
fn go_around(ring: &mut Ring, samples: &Samples) -> io::Result<()> {
    let mut begin = clock::now();
    while !samples.is_stopped() {
        ring.go_around()?;
        let at = clock::now();
        samples.write(0, Sample { at, latency: at - begin, amount: 1 });
        // To write it down is no part of the next way around.
        begin = clock::now();
    }
    Ok(())
}

/// Reads numbers of processes.
fn numbers(text: &str) -> std::result::Result<List<u32>, String> {
    let number = |word: &str| match word.parse() {
        Ok(number) if (2..=256).contains(&number) => Ok(number),
        _ => {
            Err(format!("'{word}' is not a number from 2 to 256: write one, or several as 2/8/16"))
        }
    };
    List::read(text, number)
}

/// Reads sizes of working sets.
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
    fn numbers_and_sizes_are_lists_and_others_get_a_sentence() {
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

    #[test]
    fn the_way_around_is_shared_by_the_processes_and_the_clock_is_not_theirs() {
        assert_eq!(each(Nanos(8_040), Nanos(40), 8), Nanos(1_000));
        assert_eq!(each(Nanos(10), Nanos(40), 8), Nanos(0));
    }
}
