//! Requests and replies over TCP: how long each takes, and how much passes.

use super::Probe;
use crate::failure::Result;
use crate::meter::{self, Meter, Reading};
use crate::registry::About;
use crate::rig::{Lane, Rhythm, Rig, Tasks};
use crate::traffic::{self, Client, Exchange};
use crate::worker::{Post, Worker};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::gate::Gate;
use latlab_sys::samples::{Sample, Samples};
use latlab_sys::{clock, process};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Mutex, PoisonError};

/// Clients that ask a server process each for files over TCP, on the loopback: records from the
/// moment at which a request is sent to that at which all of its reply has come.
///
/// tbench (A. Tridgell; dbench), with which Seo et al. 2009 measure what full preemption costs
/// (figure 8): its protocol, message lengths and socket options (`TCP_NODELAY`), and the rates of
/// operations of dbench's load for clients, as a thousand requests in an order that looks random,
/// again and again. The throughput counts what tbench counts: bytes that are read from or written
/// to files, in a million bytes a second, without the heads of messages. Context switches and
/// misses are those of clients and servers, from their beginning to their end, for each request.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Netbench {
    /// Clients, and as many servers
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Tasks,
}

/// What passed while it was counted, and what all of it cost.
#[derive(Debug, Default)]
struct Passed {
    since: Nanos,
    until: Nanos,
    bytes: u64,
    /// Requests of which the cost is, the warm-up's included.
    requests: u64,
    cost: Option<Reading>,
}

impl Probe for Netbench {
    const ABOUT: About =
        About { name: "netbench", summary: "how long requests for files take over TCP" };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("request sent", "reply received")];
        let passed = Mutex::new(Passed::default());
        let done = rig.on_all_cpus(
            Self::ABOUT.name,
            &spans,
            Rhythm::Within(Nanos::from_secs(20)),
            &self.scheduling.scheduling(),
            |lane| self.listen(lane, &mut passed.lock().unwrap_or_else(PoisonError::into_inner)),
        );
        report(rig, &passed.into_inner().unwrap_or_else(PoisonError::into_inner));
        done
    }

    fn work(&self, post: &Post) -> io::Result<()> {
        let clients = self.clients as usize;
        let (gate, meter) = (Gate::new()?, Meter::start());
        let (mix, samples) = (traffic::mix(), post.samples()?);
        let children = traffic::start(post.single(), clients, |nth, client| {
            samples.touch(nth);
            gate.wait()?;
            ask(nth, client, &mix, samples)
        })?;
        gate.gather(clients, process::all_at_work)?;
        gate.open()?;
        process::await_all(children)?;
        post.say(meter.read())
    }
}

impl Netbench {
    /// Keeps what the clients see, until the run is over.
    fn listen(&self, lane: &mut Lane<'_>, passed: &mut Passed) -> io::Result<()> {
        const PACE: Nanos = Nanos::from_millis(10);
        lane.collect();
        let samples = Samples::of(self.clients as usize)?;
        let mut worker = Worker::start(Self::ABOUT.name, self, Some(&samples))?;
        let (mut taken, mut lost) = (Vec::new(), 0);
        while lane.running() {
            if worker.answer_within::<Reading>(PACE)?.is_some() {
                return Err(io::Error::other("the clients ended before they were told to"));
            }
            samples.take(&mut taken);
            taken.iter().all(|sample| keep(lane, *sample, passed));
            if let Some(last) = taken.last() {
                lane.pass(last.at, samples.lost() - lost);
                lost = samples.lost();
            }
        }
        samples.set_stopped(true);
        passed.cost = worker.last_answer()?;
        passed.requests = samples.written() + samples.lost();
        Ok(())
    }
}

/// Records a sample. Whether to go on.
fn keep(lane: &mut Lane<'_>, sample: Sample, passed: &mut Passed) -> bool {
    lane.sample(0, sample.at, sample.latency);
    lane.pass(sample.at, 0);
    if let Some(since) = lane.counting_since() {
        passed.since = since;
        passed.until = sample.at;
        passed.bytes += sample.amount;
    }
    lane.running()
}

/// The life of a client: it asks until it is told to stop.
fn ask(nth: usize, mut client: Client, mix: &[Exchange], samples: &Samples) -> io::Result<()> {
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
fn report(rig: &mut Rig<'_>, passed: &Passed) {
    let name = Netbench::ABOUT.name;
    let time = (passed.until - passed.since).0 as f64;
    if time > 0.0 {
        rig.figure(name, "throughput", passed.bytes as f64 * 1e3 / time, "MB/s");
    }
    let cost = passed.cost.as_slice();
    meter::report(rig, name, cost, passed.requests, "per request");
}
