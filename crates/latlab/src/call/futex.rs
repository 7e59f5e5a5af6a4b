//! futex(2): waking those who wait.

use super::{Call, Stage};
use crate::registry::About;
use crate::window::Window;
use latlab_sys::futex::Futex as Word;
use latlab_sys::process::Forked;
use std::io;
use std::rc::Rc;

/// Wakes tasks that wait for one word in memory, as a condition variable does that is told to all.
///
/// In the window: futex(2) with FUTEX_WAKE for all of them. They have the priority of the caller
/// and its CPU, so that they run after it.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Futex {
    /// How many wait
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(0..=1000))]
    waiters: u32,
}

impl Call for Futex {
    const ABOUT: About = About { name: "futex", summary: "wake all who wait for a word in memory" };

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(Sleepers {
            word: Rc::new(Word::new()?),
            wanted: self.waiters,
            asleep: Vec::new(),
        }))
    }
}

struct Sleepers {
    word: Rc<Word>,
    wanted: u32,
    asleep: Vec<Forked>,
}

impl Sleepers {
    fn gather(&mut self, window: &Window) -> io::Result<()> {
        for _ in self.asleep.len()..self.wanted as usize {
            let word = Rc::clone(&self.word);
            self.asleep.push(window.single().fork(|| sleep_for_ever(&word))?);
        }
        // They queue for this CPU with our priority: before it is our turn again, each has run
        // until it sleeps.
        std::thread::yield_now();
        Ok(())
    }
}

fn sleep_for_ever(word: &Word) {
    loop {
        word.wait();
    }
}

impl Stage for Sleepers {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        self.gather(window)?;
        window.enter()?;
        let woken = self.word.wake_all();
        window.leave();
        if woken == self.wanted {
            return Ok(());
        }
        Err(io::Error::other(format!("{woken} of {} tasks were asleep", self.wanted)))
    }
}
