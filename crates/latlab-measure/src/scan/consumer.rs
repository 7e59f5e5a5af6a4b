//! The Consumer: the low-priority task that makes the call, in a process of its own, so that it can
//! be killed if it hangs.

use crate::call::window::{Alarm, Times, Window};
use crate::call::{CALLS, Call, Stage};
use latlab_core::cpulist::CpuList;
use latlab_core::plan;
use latlab_core::scan::{Interrupt, LoopSection, Measurement, Offset};
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::part::{self, driver, permission};
use latlab_sys::process::{self, Running, SingleThread};
use latlab_sys::sched::{self, Policy};
use latlab_sys::shared::SharedPage;
use latlab_sys::{clock, cpu, memory, signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};

/// Arguments of a Consumer's process.
#[derive(Debug, Serialize, Deserialize)]
struct ConsumerArguments {
    call: plan::Part,
    cpu: u32,
    /// Inherited descriptors of the shared page and of the Producer's alarm.
    page: RawFd,
    alarm: RawFd,
    interrupt: Interrupt,
    /// Process id of the parent, with which the Consumer dies.
    parent: u32,
}

/// Result of one window.
pub(super) type Answer = std::result::Result<Measured, Failure>;

/// A measurement, and the parts of the call if it reports them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) measurement: Measurement,
    pub(super) parts: Vec<LoopSection>,
}

/// A running Consumer. Dropping it ends its process.
pub(super) struct Consumer {
    running: Running,
    requests: ChildStdin,
    answers: Receiver<Vec<Answer>>,
}

impl Consumer {
    /// Starts a Consumer on `cpu`.
    pub(super) fn start(
        call: &plan::Part,
        interrupt: Interrupt,
        cpu: u32,
        times: &Times,
        alarm: &File,
    ) -> Result<Consumer> {
        let start = || -> io::Result<Consumer> {
            let mut command = process::command("/proc/self/exe");
            let page = process::inherit(&mut command, times.page());
            let alarm = process::inherit(&mut command, alarm);
            let parent = std::process::id();
            let call = call.clone();
            let arguments = ConsumerArguments { call, cpu, page, alarm, interrupt, parent };
            command.arg(crate::worker::SCAN).arg(serde_json::to_string(&arguments)?);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            // Ctrl-C goes to this process only. The group is killed as a whole, with the children
            // of the Consumer.
            command.process_group(0);
            let mut running = Running::start(&mut command)?;
            let child = running.child();
            let requests = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
            let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
            let (sender, answers) = mpsc::channel();
            let listen = move || {
                // This thread must not disturb the measurement with the high priority that it
                // inherits.
                let _ = sched::set_policy(Policy::Other);
                // Each line answers one request.
                for line in BufReader::new(stdout).lines().map_while(io::Result::ok) {
                    let Ok(answer) = serde_json::from_str(&line) else { break };
                    if sender.send(answer).is_err() {
                        break;
                    }
                    signal::notify();
                }
                drop(sender);
                signal::notify();
            };
            std::thread::Builder::new().name("listener".to_owned()).spawn(listen)?;
            Ok(Consumer { running, requests, answers })
        };
        start().context("the process that makes the call can't be started")
    }

    /// Requests windows that are interrupted at these offsets, or not at all.
    pub(super) fn request(&mut self, windows: &[Option<Offset>]) -> Result<()> {
        let mut line = serde_json::to_string(windows).expect("numbers are plain data");
        line.push('\n');
        self.requests.write_all(line.as_bytes()).map_err(|_| self.ended())
    }

    /// The answer to the last request, if it has arrived.
    pub(super) fn answer(&mut self) -> Result<Option<Vec<Answer>>> {
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(mpsc::TryRecvError::Empty) => Ok(None),
            Err(mpsc::TryRecvError::Disconnected) => Err(self.ended()),
        }
    }

    /// The failure that the process has ended.
    fn ended(&mut self) -> Failure {
        let status =
            self.running.kill().map_or_else(|e| e.to_string(), |status| status.to_string());
        Failure::failed(format!("the process that makes the call has ended ({status})"))
    }
}

/// The main function of a Consumer's process: `latlab scan-worker ORDERS`.
pub fn serve(arguments: &str) -> Result<()> {
    let arguments: ConsumerArguments =
        serde_json::from_str(arguments).context("the arguments of scan-worker")?;
    // Set again, as the kernel resets it when it executes a program with file capabilities.
    process::die_with_parent(arguments.parent).context("the parent process")?;
    process::set_thread_name(&arguments.call.name).context("the process name")?;
    let call = part::build("call", CALLS, &arguments.call)?;
    // A failure is the answer to the first request, so that the parent reports it.
    let mut ready = window(&arguments, call.as_ref()).and_then(|window| {
        let stage = call.stage().context(&arguments.call.name)?;
        Ok((window, stage))
    });
    for line in io::stdin().lock().lines().map_while(io::Result::ok) {
        let windows: Vec<Option<Offset>> =
            serde_json::from_str(&line).context("a request for windows")?;
        let answers = match &mut ready {
            Ok((window, stage)) => answer(&arguments.call.name, windows, window, stage.as_mut()),
            Err(failure) => vec![Err(failure.clone())],
        };
        let mut line = serde_json::to_string(&answers).expect("answers are plain data");
        line.push('\n');
        io::stdout().write_all(line.as_bytes()).context("the answer for the parent")?;
    }
    Ok(())
}

/// Measures the windows in their order, until one fails.
fn answer(
    call: &str,
    windows: Vec<Option<Offset>>,
    window: &mut Window,
    stage: &mut dyn Stage,
) -> Vec<Answer> {
    let begin = clock::now();
    let mut answers: Vec<Answer> = Vec::with_capacity(windows.len());
    for asked in windows {
        let measured = window.measure(asked, |window| stage.play(window));
        let measured = measured.map(|measurement| {
            let parts = if asked.is_none() { window.parts() } else { Vec::new() };
            Measured { measurement, parts }
        });
        answers.push(measured.context(call));
        if answers.last().is_some_and(Result::is_err) {
            break;
        }
    }
    // Real-time tasks that use a CPU for 950 ms of a second are throttled for the rest of it
    // (sched(7)), which would be measured as the latency of some window.
    clock::sleep_for(Nanos((clock::now() - begin).0 / 10));
    answers
}

/// Prepares this process for the measurement.
fn window(arguments: &ConsumerArguments, call: &dyn Call) -> Result<Window> {
    let inherited = |e| failed("an inherited descriptor", e);
    let times = Times::new(SharedPage::inherited(arguments.page).map_err(inherited)?);
    let needs_driver = call.needs_driver() || arguments.interrupt != Interrupt::Timer;
    let alarm = Alarm {
        interrupt: arguments.interrupt,
        producer: process::inherited(arguments.alarm).map_err(inherited)?,
        driver: needs_driver.then(driver::open).transpose()?,
    };
    // Future memory is not locked: calls that allocate memory have to get it as other tasks do.
    let _ = memory::lock_present();
    memory::touch_stack();
    let cpu = CpuList::from_iter([arguments.cpu]);
    cpu::pin(&cpu).context(&format!("CPU {cpu}"))?;
    let policy = Policy::Fifo(call.priority());
    sched::set_policy(policy).map_err(|e| permission::refused("fifo", &e, ""))?;
    let single = SingleThread::prove()
        .ok_or_else(|| failed("scan-worker", "the process has more than one thread"))?;
    Ok(Window::new(times, alarm, single))
}
