//! The window of a scan: the time from start to end of a call, with an interrupt at a set offset.
//!
//! Two tasks share a page of times. The *Consumer*, of lower priority, makes the call; it is a
//! process of its own. The *Producer*, of higher priority, sleeps until the interrupt and notes
//! when it runs. Both are pinned to the measured CPU. (Heursch et al. 2001, figure 2)

use latlab_core::scan::{Interrupt, LoopSection, Measurement, Offset, Ticks};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::driver::{Driver, InterruptSource, Piece, Pieces};
use latlab_sys::process::SingleThread;
use latlab_sys::shared::SharedPage;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write as _};

/// Real-time priority of the task that makes the call.
pub const CONSUMER_PRIORITY: u32 = 50;
/// Real-time priority of the task that reads the marks of a program that makes the call.
pub const MARK_READER_PRIORITY: u32 = 80;

/// Indices of the times in the shared page.
const BEGIN: usize = 0;
const END: usize = 1;
const DUE: usize = 2;
const SERVED: usize = 3;
const WOKEN: usize = 4;

/// Times shared by Consumer and Producer.
#[derive(Debug)]
pub struct Times(SharedPage);

impl Times {
    /// Times on a page that the Producer reads.
    pub fn new(page: SharedPage) -> Times {
        Times(page)
    }

    /// Notes when the Producer ran and, if known, when the interrupt service routine ran.
    #[inline]
    pub fn woken(&self, woken: Nanos, served: Option<Nanos>) {
        self.0.note(SERVED, served.unwrap_or_default());
        self.0.note(WOKEN, woken);
    }

    /// Returns the page, to be handed to another process.
    pub fn page(&self) -> &SharedPage {
        &self.0
    }
}

/// The Consumer's side of a scan.
pub struct Window {
    times: Times,
    alarm: Alarm,
    single: SingleThread,
    /// The ticks between which calls start; none where the start can't be chosen.
    ticks: Option<Ticks>,
    /// Wanted offset of the interrupt from the start of the call; none for no interrupt.
    offset: Option<Offset>,
    parts: RefCell<Vec<LoopSection>>,
}

/// The interrupt, and the means of arming it.
pub struct Alarm {
    /// What interrupts the call.
    pub interrupt: Interrupt,
    /// Pipe to the Producer. It carries the time to sleep on the Producer's own timer.
    pub producer: File,
    /// The test driver, if the call or the interrupt needs it.
    pub driver: Option<Driver>,
}

/// Time for the Producer to read when it is to wake up, and to fall asleep again.
const LEAD: Nanos = Nanos::from_micros(150);
/// During a longer wait for the start of the window, the Consumer sleeps instead of spinning.
const SPIN_AT_MOST: Nanos = Nanos::from_micros(300);
/// Longest time from the interrupt until the Producer runs.
const PATIENCE: Nanos = Nanos::from_secs(2);

impl Window {
    /// Waits for some ticks, if the start of a call can be chosen.
    pub fn new(times: Times, alarm: Alarm, single: SingleThread) -> Window {
        let ticks = if alarm.interrupt.is_device() { None } else { ticks() };
        Window { times, alarm, single, ticks, offset: None, parts: RefCell::default() }
    }

    /// Returns the proof that the Consumer has one thread and so may fork.
    pub fn single(&self) -> &SingleThread {
        &self.single
    }

    /// Returns the test driver; fails if there is none.
    pub fn driver(&self) -> io::Result<&Driver> {
        self.alarm.driver.as_ref().ok_or_else(|| io::Error::other("there is no test driver"))
    }

    /// Starts the window: the call must follow immediately. A child process may do this for its
    /// parent.
    ///
    /// Arms the interrupt first, and then spins until it is exactly the wanted time away.
    pub fn enter(&self) -> io::Result<()> {
        let begin = match self.offset {
            None => self.next_start(clock::now(), 0),
            Some(offset) => self.arm(offset)?,
        };
        sleep_until_shortly_before(begin)?;
        self.times.0.note(BEGIN, Nanos(0));
        self.times.0.note(BEGIN, clock::spin_until(begin));
        Ok(())
    }

    fn next_start(&self, earliest: Nanos, offset: Offset) -> Nanos {
        self.ticks.map_or(earliest, |ticks| ticks.next_start(earliest, offset))
    }

    /// Arms the interrupt. Returns when the window must start so that the interrupt is at `offset`.
    fn arm(&self, offset: Offset) -> io::Result<Nanos> {
        let before = Nanos(offset.min(0).unsigned_abs());
        let begin = self.next_start(clock::now() + LEAD + before, offset);
        let wanted = moved(begin, offset);
        let due = match self.alarm.interrupt {
            Interrupt::Timer => {
                let mut producer = &self.alarm.producer;
                producer.write_all(&wanted.0.to_ne_bytes()).map(|()| wanted)?
            }
            Interrupt::Driver => self.driver()?.arm(InterruptSource::Timer(wanted))?,
            Interrupt::Device => self.driver()?.arm(InterruptSource::Device { threaded: false })?,
            Interrupt::DeviceThread => {
                self.driver()?.arm(InterruptSource::Device { threaded: true })?
            }
        };
        self.times.0.note(DUE, due);
        // The device chooses the time of its interrupt.
        let begin = moved(due, -offset);
        if begin < clock::now() && self.alarm.interrupt.is_device() {
            let ahead = Nanos(offset.unsigned_abs());
            return Err(io::Error::other(format!(
                "the device can't interrupt a call after {ahead}: its interrupt comes at most 99 ms \
                 after it is armed"
            )));
        }
        Ok(begin)
    }

    /// Notes the parts of the call, as the call reports them.
    pub fn set_parts(&self, pieces: &Pieces) {
        let began = signed(self.times.0.noted(BEGIN));
        let part = |piece: &Piece| LoopSection {
            begin: signed(piece.begin) - began,
            end: signed(piece.end) - began,
        };
        let mut parts = self.parts.borrow_mut();
        parts.clear();
        parts.extend(pieces.get().iter().map(part));
    }

    /// Returns the parts of the last call, if it has noted them.
    pub fn parts(&self) -> Vec<LoopSection> {
        self.parts.borrow().clone()
    }

    /// Ends the window.
    pub fn leave(&self) {
        self.times.0.note(END, clock::now());
    }

    /// Makes a call that is interrupted at `offset` from its start, or not at all.
    pub fn measure(
        &mut self,
        offset: Option<Offset>,
        call: impl FnOnce(&Window) -> io::Result<()>,
    ) -> io::Result<Measurement> {
        self.offset = offset;
        self.times.woken(Nanos(0), None);
        call(self)?;
        let noted = |index| self.times.0.noted(index);
        let duration = noted(END) - noted(BEGIN);
        if offset.is_none() {
            return Ok(Measurement { offset: 0, pdlt: Nanos(0), irt: None, duration });
        }
        self.wait_for_producer()?;
        let (begin, due, served) = (noted(BEGIN), noted(DUE), noted(SERVED));
        Ok(Measurement {
            offset: signed(due) - signed(begin),
            pdlt: noted(WOKEN) - due,
            irt: (served != Nanos(0)).then(|| served - due),
            duration,
        })
    }

    /// Spins until the Producer has run, so that the CPU is busy after the call as well.
    fn wait_for_producer(&self) -> io::Result<()> {
        let deadline = self.times.0.noted(DUE) + PATIENCE;
        while self.times.0.noted(WOKEN) == Nanos(0) {
            if clock::now() > deadline {
                return Err(io::Error::other(format!(
                    "the higher-priority task did not run within {PATIENCE} of its interrupt"
                )));
            }
        }
        Ok(())
    }
}

/// Observes some ticks.
fn ticks() -> Option<Ticks> {
    let period = clock::tick_period();
    let end = clock::now() + Nanos(8 * period.0);
    let seen: Vec<Nanos> = (0..3).map_while(|_| clock::spin_until_tick(end)).collect();
    Ticks::before(&seen, period)
}

/// Sleeps, if the wait for `begin` is long.
fn sleep_until_shortly_before(begin: Nanos) -> io::Result<()> {
    // Where timers fire at ticks only, a sleep may take two ticks longer than requested.
    let wake = begin - Nanos(3 * clock::resolution().0) - LEAD;
    if wake > clock::now() + SPIN_AT_MOST {
        clock::wait_until(wake)?;
    }
    Ok(())
}

/// The moment that is `offset` after another one, or before it.
fn moved(moment: Nanos, offset: Offset) -> Nanos {
    Nanos(moment.0.saturating_add_signed(offset))
}

fn signed(time: Nanos) -> Offset {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}
