//! Requests and replies over TCP: their latency, and the throughput.

use super::Probe;
use crate::rig::{Pacing, Rig, Sampler, TaskScheduling};
use crate::workload::netbench::{self, Client, Exchange};
use crate::workload::perf_counters::{self, Meter, Reading};
use crate::workload::worker::{Worker, WorkerChannel};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::{Result, lock, unpoisoned};
use latlab_part::part::{About, Describe};
use latlab_sys::samples::{Sample, Samples};
use latlab_sys::start_barrier::StartBarrier;
use latlab_sys::{clock, process};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Mutex;

/// Measures the time from sending a file request over TCP until its whole reply is received.
///
/// Each client has a server process of its own and talks to it over the loopback interface. This is
/// tbench (A. Tridgell; dbench), with which Seo et al. 2009 measure the cost of full preemption
/// (figure 8): the same protocol, message lengths and socket options (`TCP_NODELAY`), and the rates
/// of operations of dbench's client load file, as a thousand requests in a pseudo-random order,
/// repeated. Throughput is that of tbench: bytes of file data read or written, in 10^6 bytes per
/// second, without message headers. Context switches and misses are those of clients and servers
/// over their whole lifetime, per request. latlab takes the samples a hundred times a second; on a
/// CPU that clients or servers use, the requests of that moment are late.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Netbench {
    /// Number of clients, each with a server of its own
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: TaskScheduling,
}

/// File data transferred while samples counted, and the cost of all requests.
#[derive(Debug, Default)]
struct Transferred {
    since: Nanos,
    until: Nanos,
    bytes: u64,
    /// Requests that `cost` belongs to, including those of the warm-up.
    requests: u64,
    cost: Option<Reading>,
}

impl Describe for Netbench {
    const ABOUT: About = About {
        name: "netbench",
        summary: "time from a file request over TCP until its reply is received",
    };
}

impl Probe for Netbench {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("request sent", "reply received")];
        let transferred = Mutex::new(Transferred::default());
        let done = rig.on_all_cpus(
            Self::ABOUT.name,
            &spans,
            Pacing::BackToBack(Nanos::from_secs(20)),
            &self.scheduling.scheduling(),
            |sampler| {
                let mut transferred = lock(&transferred);
                self.collect(sampler, &mut transferred)
            },
        );
        report(rig, &unpoisoned(transferred.into_inner()));
        done
    }

    fn run_worker(&self, channel: &WorkerChannel) -> io::Result<()> {
        let clients = self.clients as usize;
        let (barrier, meter) = (StartBarrier::new()?, Meter::start());
        let (mix, samples) = (netbench::mix(), channel.samples()?);
        let children = netbench::start(channel.single(), clients, |nth, client| {
            samples.touch(nth);
            barrier.wait()?;
            send_requests(nth, client, &mix, samples)
        })?;
        barrier.gather(clients, process::check_all_running)?;
        barrier.open()?;
        process::wait_for_all(children)?;
        channel.answer(meter.read())
    }
}

impl Netbench {
    /// Records the samples of the clients until the end of the run.
    fn collect(&self, sampler: &mut Sampler<'_>, transferred: &mut Transferred) -> io::Result<()> {
        const PACE: Nanos = Nanos::from_millis(10);
        sampler.set_collecting();
        let shared = Samples::of(self.clients as usize)?;
        let mut worker = Worker::start(Self::ABOUT.name, self, Some(&shared))?;
        let (mut taken, mut lost) = (Vec::new(), 0);
        while sampler.running() {
            if worker.receive_within::<Reading>(PACE)?.is_some() {
                return Err(io::Error::other("the clients ended before they were told to stop"));
            }
            shared.take(&mut taken);
            taken.iter().all(|sample| record(sampler, *sample, transferred));
            if let Some(last) = taken.last() {
                // Read once: other processes count.
                let lost_until_now = shared.lost();
                sampler.advance(last.at, lost_until_now - lost);
                lost = lost_until_now;
            }
        }
        shared.set_stopped(true);
        transferred.cost = worker.receive_last()?;
        transferred.requests = shared.written() + shared.lost();
        Ok(())
    }
}

/// Records a sample. Returns whether to go on.
fn record(sampler: &mut Sampler<'_>, sample: Sample, transferred: &mut Transferred) -> bool {
    sampler.record(0, sample.at, sample.latency);
    sampler.advance(sample.at, 0);
    if let Some(since) = sampler.counting_since() {
        transferred.since = since;
        transferred.until = sample.at;
        transferred.bytes += sample.amount;
    }
    sampler.running()
}

/// Body of a client: sends requests until it is told to stop.
fn send_requests(
    nth: usize,
    mut client: Client,
    mix: &[Exchange],
    samples: &Samples,
) -> io::Result<()> {
    loop {
        for exchange in mix {
            if samples.is_stopped() {
                return Ok(());
            }
            let begin = clock::now();
            client.exchange(*exchange)?;
            let at = clock::now();
            let amount = u64::from(exchange.payload);
            samples.write(nth, Sample { at, latency: at - begin, amount });
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
fn report(rig: &mut Rig<'_>, transferred: &Transferred) {
    let name = Netbench::ABOUT.name;
    let time = (transferred.until - transferred.since).0 as f64;
    if time > 0.0 {
        rig.add_figure(name, "throughput", transferred.bytes as f64 * 1e3 / time, "MB/s");
    }
    if let Some(cost) = &transferred.cost {
        perf_counters::report(rig, name, cost, transferred.requests, "per request");
    }
}
