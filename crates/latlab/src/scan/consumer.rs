//! The Consumer: the task of low priority that makes the call. A process of its own, so that one
//! that hangs can be ended.

use crate::call::{AnyCall, CALLS, Stage};
use crate::failure::{Failure, Result, failed};
use crate::window::{Alarm, Times, Window};
use crate::{driver, permission, registry};
use latlab_core::cpulist::CpuList;
use latlab_core::plan;
use latlab_core::scan::{Interrupt, Measurement, Offset, Part};
use latlab_core::time::Nanos;
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

/// What a Consumer is told when it is started.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    call: plan::Part,
    cpu: u32,
    /// The descriptors under which it finds the shared page and the Producer's alarm.
    page: RawFd,
    alarm: RawFd,
    interrupt: Interrupt,
    /// The process that gives the orders.
    parent: u32,
}

/// What comes of one window.
pub(super) type Answer = std::result::Result<Measured, Failure>;

/// What was measured, and what the call was made of where it says so.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) measurement: Measurement,
    pub(super) parts: Vec<Part>,
}

/// A Consumer at work. Dropping it ends it.
pub(super) struct Consumer {
    running: Running,
    asks: ChildStdin,
    answers: Receiver<Vec<Answer>>,
}

impl Consumer {
    /// Starts it.
    pub(super) fn start(
        call: &plan::Part,
        interrupt: Interrupt,
        cpu: u32,
        times: &Times,
        alarm: &File,
    ) -> Result<Consumer> {
        let start = || -> io::Result<Consumer> {
            let mut command = process::tied("/proc/self/exe");
            let page = process::inherit(&mut command, times.page());
            let alarm = process::inherit(&mut command, alarm);
            let parent = std::process::id();
            let orders = Orders { call: call.clone(), cpu, page, alarm, interrupt, parent };
            command.arg("scan-worker").arg(serde_json::to_string(&orders)?);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            // Ctrl-C is for us; and what the task starts is ended with it.
            command.process_group(0);
            let mut running = Running::start(&mut command)?;
            let child = running.child();
            let asks = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
            let said = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
            let (say, answers) = mpsc::channel();
            let listen = move || {
                // Who listens must not disturb those that are measured: ours is the highest
                // priority while a scan runs, but not this thread's.
                let _ = sched::set_policy(Policy::Other);
                // Each line answers one order; a Consumer that is gone says nothing more.
                for line in BufReader::new(said).lines().map_while(io::Result::ok) {
                    let Ok(answer) = serde_json::from_str(&line) else { break };
                    if say.send(answer).is_err() {
                        break;
                    }
                    signal::tell();
                }
                drop(say);
                signal::tell();
            };
            std::thread::Builder::new().name("listener".to_owned()).spawn(listen)?;
            Ok(Consumer { running, asks, answers })
        };
        start().map_err(|e| failed("the task that makes the call could not be started", e))
    }

    /// Orders windows that are interrupted at these moments, or not at all.
    pub(super) fn ask(&mut self, windows: &[Option<Offset>]) -> Result<()> {
        let mut line = serde_json::to_string(windows).expect("numbers are plain data");
        line.push('\n');
        self.asks.write_all(line.as_bytes()).map_err(|_| self.gone())
    }

    /// The answer to the last order, when it is there.
    pub(super) fn answer(&mut self) -> Result<Option<Vec<Answer>>> {
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(mpsc::TryRecvError::Empty) => Ok(None),
            Err(mpsc::TryRecvError::Disconnected) => Err(self.gone()),
        }
    }

    /// Why there is nothing more to expect.
    fn gone(&mut self) -> Failure {
        let status =
            self.running.kill().map_or_else(|e| e.to_string(), |status| status.to_string());
        Failure::Failed(format!("the task that makes the call has ended ({status})"))
    }
}

/// The life of a Consumer: `latlab scan-worker ORDERS`.
pub(crate) fn serve(orders: &str) -> Result<()> {
    let orders: Orders = serde_json::from_str(orders).map_err(|e| failed("the orders", e))?;
    // The kernel forgets the wish when it starts a program with capabilities of its own.
    process::die_with(orders.parent).map_err(|e| failed("the orders", e))?;
    process::call_itself(&orders.call.name).map_err(|e| failed("its name", e))?;
    let call = registry::build("call", CALLS, &orders.call)?;
    // What went wrong is the answer to the first order: who gave it says it.
    let mut ready = window(&orders, call.as_ref()).and_then(|window| {
        let stage = call.stage().map_err(|e| failed(&orders.call.name, e))?;
        Ok((window, stage))
    });
    for line in io::stdin().lock().lines().map_while(io::Result::ok) {
        let windows: Vec<Option<Offset>> =
            serde_json::from_str(&line).map_err(|e| failed("an order", e))?;
        let answers = match &mut ready {
            Ok((window, stage)) => answer(&orders.call.name, windows, window, stage.as_mut()),
            Err(failure) => vec![Err(failure.clone())],
        };
        let mut line = serde_json::to_string(&answers).expect("answers are plain data");
        line.push('\n');
        io::stdout().write_all(line.as_bytes()).map_err(|e| failed("the answer", e))?;
    }
    Ok(())
}

/// Measures one window after another, until one fails.
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
        answers.push(measured.map_err(|e| failed(call, e)));
        if answers.last().is_some_and(Result::is_err) {
            break;
        }
    }
    // Who takes a CPU with real-time priority for 950 ms of a second loses it for the rest of
    // that second (sched(7)), which would be measured as the latency of some window.
    clock::sleep_for(Nanos((clock::now() - begin).0 / 10));
    answers
}

fn window(orders: &Orders, call: &dyn AnyCall) -> Result<Window> {
    let inherited = |e| failed("what was left open for us", e);
    let times = Times::new(SharedPage::inherited(orders.page).map_err(inherited)?);
    let needs_driver = call.needs_driver() || orders.interrupt != Interrupt::Timer;
    let alarm = Alarm {
        interrupt: orders.interrupt,
        producer: process::inherited(orders.alarm).map_err(inherited)?,
        driver: needs_driver.then(driver::open).transpose()?,
    };
    // Memory to come is left alone: calls that ask for memory are to get it as others do.
    let _ = memory::lock_present();
    memory::touch_stack();
    let on = CpuList::from_iter([orders.cpu]);
    cpu::pin(&on).map_err(|e| failed(&format!("CPU {}", orders.cpu), e))?;
    let policy = Policy::Fifo(call.priority());
    sched::set_policy(policy).map_err(|e| permission::refused("fifo", &e, ""))?;
    let single = SingleThread::prove().ok_or_else(|| failed("it", "has more than one thread"))?;
    Ok(Window::new(times, alarm, single))
}
