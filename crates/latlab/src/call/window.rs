//! The window of a scan: what lies between a call's begin and its end, and the interrupt within.
//!
//! Two tasks share a page of times. The *Consumer*, of low priority, makes the call; it is a
//! process of its own. The *Producer*, of high priority, sleeps until the interrupt and notes when
//! it runs. Both are bound to the CPU under test. (Heursch et al. 2001, figure 2)

use latlab_core::scan::{Interrupt, Measurement, Offset, Part};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::driver::{Driver, Piece, Pieces, Source};
use latlab_sys::process::SingleThread;
use latlab_sys::shared::SharedPage;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write as _};

/// Priority of who makes the call.
pub(crate) const CONSUMER: u32 = 50;
/// And of who hears the marks of a program that makes it.
pub(crate) const MARKS: u32 = 80;

/// The places of the times in the shared page.
const BEGIN: usize = 0;
const END: usize = 1;
const DUE: usize = 2;
const SERVED: usize = 3;
const WOKEN: usize = 4;

/// The shared page, as both sides see it.
#[derive(Debug)]
pub(crate) struct Times(SharedPage);

impl Times {
    pub(crate) fn new(page: SharedPage) -> Times {
        Times(page)
    }

    /// The Producer runs: when, and when the service routine did if that is known.
    #[inline]
    pub(crate) fn woken(&self, woken: Nanos, served: Option<Nanos>) {
        self.0.note(SERVED, served.unwrap_or_default());
        self.0.note(WOKEN, woken);
    }

    /// What the page is to hand on to another process by.
    pub(crate) fn page(&self) -> &SharedPage {
        &self.0
    }
}

/// The Consumer's side of a window.
pub(crate) struct Window {
    times: Times,
    alarm: Alarm,
    single: SingleThread,
    asked: Option<Offset>,
    parts: RefCell<Vec<Part>>,
}

/// How the interrupt is set.
pub(crate) struct Alarm {
    pub(crate) interrupt: Interrupt,
    /// Where the Producer, asleep on a timer of its own, hears until when.
    pub(crate) producer: File,
    /// The test driver, where the call or the interrupt needs it.
    pub(crate) driver: Option<Driver>,
}

/// Time for the Producer to hear when it is to be woken, and to fall asleep again.
const LEAD: Nanos = Nanos::from_micros(150);
/// What is longer is slept through rather than computed away.
const LONG: Nanos = Nanos::from_millis(1);
/// How long the Producer may keep us waiting.
const PATIENCE: Nanos = Nanos::from_secs(2);

impl Window {
    pub(crate) fn new(times: Times, alarm: Alarm, single: SingleThread) -> Window {
        Window { times, alarm, single, asked: None, parts: RefCell::default() }
    }

    /// The right to fork: the Consumer has one thread.
    pub(crate) fn single(&self) -> &SingleThread {
        &self.single
    }

    /// The test driver.
    pub(crate) fn driver(&self) -> io::Result<&Driver> {
        self.alarm.driver.as_ref().ok_or_else(|| io::Error::other("there is no test driver"))
    }

    /// Begins the window: the call has to follow at once. A child may do this for its parent.
    ///
    /// The interrupt is set first, and then waited for until it is just as far away as is wanted.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let begin = match self.asked {
            None => clock::now(),
            Some(asked) => self.set(asked)?,
        };
        self.times.0.note(BEGIN, Nanos(0));
        self.times.0.note(BEGIN, clock::spin_until(begin));
        Ok(())
    }

    /// Sets the interrupt. When the window has to begin, so that it comes at the moment asked for.
    fn set(&self, asked: Offset) -> io::Result<Nanos> {
        let ahead = Nanos(asked.unsigned_abs());
        let soon = clock::now() + LEAD;
        let wanted = if asked < 0 { soon } else { soon + ahead };
        let due = match self.alarm.interrupt {
            Interrupt::Timer => {
                let mut producer = &self.alarm.producer;
                producer.write_all(&wanted.0.to_ne_bytes()).map(|()| wanted)?
            }
            Interrupt::Driver => self.driver()?.arm(Source::Timer(wanted))?,
            Interrupt::Device => self.driver()?.arm(Source::Device { threaded: false })?,
            Interrupt::DeviceThread => self.driver()?.arm(Source::Device { threaded: true })?,
        };
        self.times.0.note(DUE, due);
        let begin = if asked < 0 { due + ahead } else { due - ahead };
        if begin < clock::now() && self.alarm.interrupt.is_device() {
            return Err(io::Error::other(format!(
                "the device interrupts 99 ms after it is asked at the latest, and can't come {ahead} \
                 into a call"
            )));
        }
        // A device comes when it wants to. Where timers only fire at ticks, a sleep may last two
        // of them longer than asked for.
        let short = clock::resolution()?;
        let near = begin - Nanos(3 * short.0) - LEAD;
        if near > clock::now() + LONG {
            clock::sleep_until(near);
        }
        Ok(begin)
    }

    /// Says what the call was made of, by its own account.
    pub(crate) fn made_of(&self, pieces: &Pieces) {
        let began = signed(self.times.0.noted(BEGIN));
        let part = |piece: &Piece| Part {
            begin: signed(piece.begin) - began,
            end: signed(piece.end) - began,
        };
        let mut parts = self.parts.borrow_mut();
        parts.clear();
        parts.extend(pieces.get().iter().map(part));
    }

    /// What the last call was made of, if it said so.
    pub(crate) fn parts(&self) -> Vec<Part> {
        self.parts.borrow().clone()
    }

    /// Ends the window.
    pub(crate) fn leave(&self) {
        self.times.0.note(END, clock::now());
    }

    /// Makes a call in a window that is interrupted at this moment, or not at all. What came of
    /// it.
    pub(crate) fn measure(
        &mut self,
        asked: Option<Offset>,
        call: impl FnOnce(&Window) -> io::Result<()>,
    ) -> io::Result<Measurement> {
        self.asked = asked;
        self.times.woken(Nanos(0), None);
        call(self)?;
        let noted = |place| self.times.0.noted(place);
        let duration = noted(END) - noted(BEGIN);
        if asked.is_none() {
            return Ok(Measurement { offset: 0, pdlt: Nanos(0), irt: None, duration });
        }
        self.wait_for_the_other()?;
        let (begin, due, served) = (noted(BEGIN), noted(DUE), noted(SERVED));
        Ok(Measurement {
            offset: signed(due) - signed(begin),
            pdlt: noted(WOKEN) - due,
            irt: (served != Nanos(0)).then(|| served - due),
            duration,
        })
    }

    /// Computes until the Producer has run: it is to find the CPU at work after the call as well.
    fn wait_for_the_other(&self) -> io::Result<()> {
        let deadline = self.times.0.noted(DUE) + PATIENCE;
        while self.times.0.noted(WOKEN) == Nanos(0) {
            if clock::now() > deadline {
                return Err(io::Error::other(format!(
                    "the task of high priority did not run within {PATIENCE} after its interrupt"
                )));
            }
        }
        Ok(())
    }
}

fn signed(time: Nanos) -> Offset {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}
