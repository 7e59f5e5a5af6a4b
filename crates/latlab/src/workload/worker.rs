//! A process of its own that works for a probe: this program again, which has one thread and so
//! may fork.

use crate::failure::{Result, failed};
use crate::part::Params;
use crate::rig::Lane;
use latlab_core::plan::Part;
use latlab_core::time::Nanos;
use latlab_sys::process::{self, Running, SingleThread};
use latlab_sys::samples::Samples;
use latlab_sys::{clock, gate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, ChildStdout, Stdio};

/// What it is told when it is started.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    probe: Part,
    /// The descriptor under which it finds the samples, and for how many writers they are.
    samples: Option<(RawFd, usize)>,
    /// The process that gives the orders.
    parent: u32,
}

/// What comes of one order: what the probe wants to know, or why there is nothing to know.
type Answer<T> = std::result::Result<T, String>;

/// A worker, as its probe sees it. It has the policy and the CPUs of the thread that started it,
/// and dies with that. Dropping it ends it, and all that it has forked.
pub(crate) struct Worker {
    running: Running,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts one, which is to write to these samples if there are any.
    pub(crate) fn start(
        name: &str,
        probe: &impl Params,
        samples: Option<&Samples>,
    ) -> io::Result<Worker> {
        let Value::Object(params) = serde_json::to_value(probe)? else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = process::tied("/proc/self/exe");
        let samples = samples.map(|all| (process::inherit(&mut command, all), all.writers()));
        let probe = Part { name: name.to_owned(), params };
        let orders = Orders { probe, samples, parent: std::process::id() };
        command.arg("probe-worker").arg(serde_json::to_string(&orders)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is for us; and what it forks is ended with it.
        command.process_group(0);
        let mut running = Running::start(&mut command)?;
        let child = running.child();
        let asks = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let answers = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Worker { running, asks, answers: BufReader::new(answers) })
    }

    /// Gives an order.
    pub(crate) fn ask(&mut self, order: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        self.asks.write_all(line.as_bytes()).map_err(|_| self.gone())
    }

    /// The answer to the last order. None where the lane is to stop before it is there.
    pub(crate) fn answer<T: DeserializeOwned>(
        &mut self,
        lane: &mut Lane<'_>,
    ) -> io::Result<Option<T>> {
        // A request to stop interrupts the wait.
        const PATIENCE: Nanos = Nanos::from_secs(1);
        while lane.running() {
            let answer = self.answer_within(PATIENCE)?;
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// The answer of a worker that has been told to stop. None where it does not come to its end.
    pub(crate) fn last_answer<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        const PATIENCE: Nanos = Nanos::from_secs(5);
        let deadline = clock::now() + PATIENCE;
        while clock::now() < deadline {
            let answer = self.answer_within(deadline - clock::now())?;
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// The answer to the last order, if it comes within this time and no signal comes before it.
    pub(crate) fn answer_within<T: DeserializeOwned>(
        &mut self,
        patience: Nanos,
    ) -> io::Result<Option<T>> {
        let there = !self.answers.buffer().is_empty();
        if !there && !gate::readable(self.answers.get_ref(), Some(patience))? {
            return Ok(None);
        }
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(self.gone());
        }
        let answer: Answer<T> = serde_json::from_str(&line)?;
        answer.map(Some).map_err(io::Error::other)
    }

    /// Why there is nothing more to expect.
    fn gone(&mut self) -> io::Error {
        let ended = self.running.kill();
        let ended = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
        io::Error::other(format!("the process that works for the probe has ended ({ended})"))
    }
}

/// A worker's own side: where its orders come from and its answers go.
pub(crate) struct Post {
    single: SingleThread,
    samples: Option<Samples>,
}

impl Post {
    /// Reads the orders it was started with: for which probe it works, and its post.
    pub(crate) fn take_up(orders: &str) -> Result<(Part, Post)> {
        let orders: Orders = serde_json::from_str(orders).map_err(|e| failed("the orders", e))?;
        // The kernel forgets the wish when it starts a program with capabilities of its own.
        process::die_with(orders.parent).map_err(|e| failed("the orders", e))?;
        process::call_itself(&orders.probe.name).map_err(|e| failed("its name", e))?;
        let samples = orders.samples.map(|(fd, writers)| Samples::inherited(fd, writers));
        let samples = samples.transpose();
        let samples = samples.map_err(|e| failed("what was left open for us", e))?;
        let single = SingleThread::prove();
        let single = single.ok_or_else(|| failed("it", "has more than one thread"))?;
        Ok((orders.probe, Post { single, samples }))
    }

    /// Waits for the next order. None when there are no more.
    #[expect(clippy::unused_self, reason = "only a worker has orders")]
    pub(crate) fn order<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }

    /// Answers an order.
    #[expect(clippy::unused_self, reason = "only a worker may answer")]
    pub(crate) fn say(&self, answer: impl Serialize) -> io::Result<()> {
        put(&Answer::Ok(answer))
    }

    /// Says why nothing more is to be expected.
    pub(crate) fn complain(why: &io::Error) -> Result<()> {
        put(&Answer::<()>::Err(why.to_string())).map_err(|e| failed("the answer", e))
    }

    /// The right to fork: a worker has one thread.
    pub(crate) fn single(&self) -> &SingleThread {
        &self.single
    }

    /// Where samples go.
    pub(crate) fn samples(&self) -> io::Result<&Samples> {
        self.samples.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn put(answer: &Answer<impl Serialize>) -> io::Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    io::stdout().write_all(line.as_bytes())
}
