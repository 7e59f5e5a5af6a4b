//! The Producer: the high-priority task that the interrupt wakes.

use crate::call::window::Times;
use latlab_core::cpulist::CpuList;
use latlab_core::scan::Interrupt;
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::part::{driver, permission};
use latlab_sys::driver::Driver;
use latlab_sys::mark::Marks;
use latlab_sys::sched::{self, Policy};
use latlab_sys::{clock, cpu, memory, signal};
use std::fs::File;
use std::io::ErrorKind::{Interrupted, TimedOut, UnexpectedEof};
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;

/// The running Producer. Dropping it ends its thread.
pub(super) struct Producer {
    thread: Option<JoinHandle<()>>,
    thread_id: i32,
    /// Number of marks in the process before those of the Producer.
    before: u64,
    stop: Arc<AtomicBool>,
    failure: Arc<OnceLock<Failure>>,
}

/// Source of the Producer's wake-ups.
enum Wait {
    /// A timer, for a time that it reads from this pipe.
    Timer(File),
    /// The test driver's next interrupt after the one with this number.
    Driver(Driver, u64),
}

impl Producer {
    /// Starts the Producer on `cpu`. From `alarms` it reads the times at which a timer wakes it.
    pub(super) fn start(
        cpu: u32,
        interrupt: Interrupt,
        times: Times,
        alarms: File,
    ) -> Result<Producer> {
        let mut wait = match interrupt {
            Interrupt::Timer => Wait::Timer(alarms),
            _ => Wait::Driver(driver::open()?, 0),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let failure = Arc::new(OnceLock::new());
        let report = Arc::clone(&failure);
        let (sender, receiver) = mpsc::channel();
        let mut marks = Marks::begin();
        let before = marks.before();
        let run = move || {
            let ready = set_up(cpu);
            let refused = ready.is_err();
            let sent = sender.send(ready.map(|()| sched::thread_id()));
            drop(sender);
            while !refused && sent.is_ok() && !stopped.load(SeqCst) {
                match wait.until_woken() {
                    Ok((woken, served)) => {
                        marks.mark();
                        times.woken(woken, served);
                    }
                    // A request to stop, or no interrupt for a while.
                    Err(e) if matches!(e.kind(), Interrupted | TimedOut) => {}
                    // The Consumer has ended.
                    Err(e) if e.kind() == UnexpectedEof => break,
                    Err(e) => {
                        let why = failed("the Producer can't wait for the interrupt", e);
                        let _ = report.set(why);
                        break;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("producer".to_owned()).stack_size(512 * 1024);
        let thread = thread.spawn(run).context("the Producer can't be started")?;
        let thread_id = receiver.recv().context("the Producer")??;
        Ok(Producer { thread: Some(thread), thread_id, before, stop, failure })
    }

    /// Number of marks in the process before those of the Producer, which makes one at each
    /// wake-up.
    pub(super) fn before(&self) -> u64 {
        self.before
    }

    /// The failure that has ended the Producer, if any.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure.get().cloned()
    }
}

impl Wait {
    /// Waits for the interrupt. Returns the time at which the task runs, and the time of the
    /// interrupt's service routine if it is known.
    #[inline]
    fn until_woken(&mut self) -> io::Result<(Nanos, Option<Nanos>)> {
        match self {
            Wait::Timer(alarms) => {
                let mut due = [0; 8];
                // A time is written by one call, so one call reads it.
                if alarms.read(&mut due)? != due.len() {
                    return Err(UnexpectedEof.into());
                }
                if !clock::wait_until(Nanos(u64::from_ne_bytes(due)))? {
                    return Err(Interrupted.into());
                }
                Ok((clock::now(), None))
            }
            Wait::Driver(driver, last) => {
                let arrival = driver.wait(*last)?;
                let woken = clock::now();
                *last = arrival.sequence;
                Ok((woken, Some(arrival.served)))
            }
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        const STEP: Nanos = Nanos::from_millis(1);
        self.stop.store(true, SeqCst);
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() {
            // Repeated, as a thread that is about to wait misses the signal.
            signal::interrupt_thread(self.thread_id);
            clock::sleep_for(STEP);
        }
        let _ = thread.join();
    }
}

/// Prepares the calling thread for the measurement.
fn set_up(cpu: u32) -> Result<()> {
    memory::touch_stack();
    cpu::pin(&CpuList::from_iter([cpu])).context(&format!("CPU {cpu}"))?;
    sched::set_policy(Policy::Fifo(super::PRODUCER))
        .map_err(|e| permission::refused("fifo", &e, ""))
}
