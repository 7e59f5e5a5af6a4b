//! Worker process of a probe: this program again, single-threaded, so that it may fork.

use crate::rig::Sampler;
use latlab_core::plan::Part;
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Result, failed};
use latlab_part::part::Params;
use latlab_sys::process::{self, Running, SingleThread};
use latlab_sys::samples::Samples;
use latlab_sys::{clock, start_barrier};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, ChildStdout, Stdio};

/// Start parameters of a worker, on its command line.
#[derive(Debug, Serialize, Deserialize)]
struct WorkerOrders {
    probe: Part,
    /// File descriptor of the samples, and the number of their writers.
    samples: Option<(RawFd, usize)>,
    /// Process ID of the parent.
    parent: u32,
}

/// Answer to one order: the result, or an error message.
type WorkerAnswer<T> = std::result::Result<T, String>;

/// The probe's side of a worker. The worker inherits the policy and the CPUs of the thread that
/// starts it, and is killed with it. Dropping this kills the worker and all processes it forked.
pub struct Worker {
    running: Running,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker, which writes to `samples` if there are any.
    pub fn start(name: &str, probe: &impl Params, samples: Option<&Samples>) -> io::Result<Worker> {
        let Value::Object(params) = serde_json::to_value(probe)? else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = process::command("/proc/self/exe");
        let samples = samples.map(|all| (process::inherit(&mut command, all), all.writers()));
        let probe = Part { name: name.to_owned(), params };
        let orders = WorkerOrders { probe, samples, parent: std::process::id() };
        command.arg(crate::worker::PROBE).arg(serde_json::to_string(&orders)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // In a process group of its own, the worker does not get Ctrl-C, and can be killed together
        // with the processes it forked.
        command.process_group(0);
        let mut running = Running::start(&mut command)?;
        let child = running.child();
        let orders = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let answers = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Worker { running, orders, answers: BufReader::new(answers) })
    }

    /// Sends an order.
    pub fn send(&mut self, order: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        self.orders.write_all(line.as_bytes()).map_err(|_| self.ended())
    }

    /// Waits for the answer to the last order. Returns none if the sampler is to stop before.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        sampler: &mut Sampler<'_>,
    ) -> io::Result<Option<T>> {
        // A request to stop interrupts the wait.
        const PATIENCE: Nanos = Nanos::from_secs(1);
        while sampler.running() {
            let answer = self.receive_within(PATIENCE)?;
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Waits up to 5 s for the answer of a worker that has been told to stop.
    pub fn receive_last<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        const PATIENCE: Nanos = Nanos::from_secs(5);
        let deadline = clock::now() + PATIENCE;
        while clock::now() < deadline {
            let answer = self.receive_within(deadline - clock::now())?;
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Waits for the answer to the last order, until `patience` has passed or a signal arrives.
    pub fn receive_within<T: DeserializeOwned>(
        &mut self,
        patience: Nanos,
    ) -> io::Result<Option<T>> {
        let buffered = !self.answers.buffer().is_empty();
        if !buffered && !start_barrier::readable(self.answers.get_ref(), Some(patience))? {
            return Ok(None);
        }
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(self.ended());
        }
        let answer: WorkerAnswer<T> = serde_json::from_str(&line)?;
        answer.map(Some).map_err(io::Error::other)
    }

    /// Returns the error that the worker has ended, with its exit status.
    fn ended(&mut self) -> io::Error {
        let status = self.running.kill();
        let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
        io::Error::other(format!("the worker process of the probe has ended ({status})"))
    }
}

/// The worker's own side: it reads orders from stdin and answers on stdout.
pub struct WorkerChannel {
    single: SingleThread,
    samples: Option<Samples>,
}

impl WorkerChannel {
    /// Reads the start parameters. Returns the probe and the worker's channel to it.
    pub fn open(orders: &str) -> Result<(Part, WorkerChannel)> {
        let orders: WorkerOrders =
            serde_json::from_str(orders).context("the orders of the worker")?;
        // The kernel clears the parent-death signal when it executes a program with capabilities of
        // its own, so it is set again.
        process::die_with_parent(orders.parent).context("the parent-death signal")?;
        process::set_thread_name(&orders.probe.name).context("the worker's name")?;
        let samples = orders.samples.map(|(fd, writers)| Samples::inherited(fd, writers));
        let samples = samples.transpose();
        let samples = samples.context("the inherited samples")?;
        let single = SingleThread::prove();
        let single = single.ok_or_else(|| failed("the worker", "has more than one thread"))?;
        Ok((orders.probe, WorkerChannel { single, samples }))
    }

    /// Waits for the next order. Returns none at the end of the orders.
    pub fn next_order<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }

    /// Answers an order.
    pub fn answer(&self, answer: impl Serialize) -> io::Result<()> {
        write_answer(&WorkerAnswer::Ok(answer))
    }

    /// Answers with the error that ends the worker.
    pub fn report_error(error: &io::Error) -> Result<()> {
        write_answer(&WorkerAnswer::<()>::Err(error.to_string())).context("the worker's answer")
    }

    /// Returns the proof that the worker has one thread and so may fork.
    pub fn single(&self) -> &SingleThread {
        &self.single
    }

    /// Returns the shared memory for samples.
    pub fn samples(&self) -> io::Result<&Samples> {
        self.samples.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn write_answer(answer: &WorkerAnswer<impl Serialize>) -> io::Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    io::stdout().write_all(line.as_bytes())
}
