//! The Producer: the task of high priority that the interrupt wakes.

use crate::failure::{Failure, Result, failed};
use crate::window::Times;
use crate::{driver, permission};
use latlab_core::cpulist::CpuList;
use latlab_core::scan::Interrupt;
use latlab_core::time::Nanos;
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

/// The Producer at work. Dropping it ends it.
pub(super) struct Producer {
    thread: Option<JoinHandle<()>>,
    id: i32,
    /// How many marks there were before its own.
    before: u64,
    stop: Arc<AtomicBool>,
    /// Why it can't do its part.
    complaint: Arc<OnceLock<Failure>>,
}

/// What it sleeps on.
enum Sleep {
    /// A timer, until a time that it hears here.
    Timer(File),
    /// The test driver's interrupt, after the one with this number.
    Driver(Driver, u64),
}

impl Producer {
    /// Starts it on this CPU. `alarm` is where it hears when a timer is to wake it.
    pub(super) fn start(
        on: u32,
        interrupt: Interrupt,
        times: Times,
        alarm: File,
    ) -> Result<Producer> {
        let mut sleep = match interrupt {
            Interrupt::Timer => Sleep::Timer(alarm),
            _ => Sleep::Driver(driver::open()?, 0),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let complaint = Arc::new(OnceLock::new());
        let complain = Arc::clone(&complaint);
        let (say, hear) = mpsc::channel();
        let mut marks = Marks::begin();
        let before = marks.before();
        let life = move || {
            let ready = set_up(on);
            let refused = ready.is_err();
            let heard = say.send(ready.map(|()| sched::thread_id()));
            drop(say);
            while !refused && heard.is_ok() && !stopped.load(SeqCst) {
                match sleep.until_woken() {
                    Ok((woken, served)) => {
                        marks.mark();
                        times.woken(woken, served);
                    }
                    // A request to stop, or nothing to do for a while.
                    Err(e) if matches!(e.kind(), Interrupted | TimedOut) => {}
                    // Nobody is left who could set the interrupt.
                    Err(e) if e.kind() == UnexpectedEof => break,
                    Err(e) => {
                        let why = failed("the task of high priority can't wait", e);
                        let _ = complain.set(why);
                        break;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("producer".to_owned()).stack_size(512 * 1024);
        let thread = thread.spawn(life).map_err(|e| failed("a thread could not be started", e))?;
        let id = hear.recv().map_err(|e| failed("the task of high priority", e))??;
        Ok(Producer { thread: Some(thread), id, before, stop, complaint })
    }

    /// How many marks there were before its own, of which it makes one whenever it is woken.
    pub(super) fn before(&self) -> u64 {
        self.before
    }

    /// Why it can't do its part, where that is so.
    pub(super) fn complaint(&self) -> Option<Failure> {
        self.complaint.get().cloned()
    }
}

impl Sleep {
    /// When it woke, and when the service routine ran where that is known.
    #[inline]
    fn until_woken(&mut self) -> io::Result<(Nanos, Option<Nanos>)> {
        match self {
            Sleep::Timer(alarm) => {
                let mut due = [0; 8];
                // Written at once, so read at once.
                if alarm.read(&mut due)? != due.len() {
                    return Err(UnexpectedEof.into());
                }
                if !clock::sleep_until(Nanos(u64::from_ne_bytes(due))) {
                    return Err(Interrupted.into());
                }
                Ok((clock::now(), None))
            }
            Sleep::Driver(driver, last) => {
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
            // One that is about to sleep misses it, so this is done again and again.
            signal::nudge(self.id);
            clock::sleep_for(STEP);
        }
        let _ = thread.join();
    }
}

fn set_up(on: u32) -> Result<()> {
    memory::touch_stack();
    cpu::pin(&CpuList::from_iter([on])).map_err(|e| failed(&format!("CPU {on}"), e))?;
    sched::set_policy(Policy::Fifo(super::PRODUCER))
        .map_err(|e| permission::refused("fifo", &e, ""))
}
