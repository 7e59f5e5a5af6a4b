//! futex(2): waking waiting tasks.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::part::{About, Describe};
use latlab_sys::futex::Futex as Word;
use latlab_sys::process::Forked;
use std::io;
use std::rc::Rc;

/// Wakes all tasks that wait on a futex, as a broadcast on a condition variable does.
///
/// In the window: futex(2) with FUTEX_WAKE for all of them. They have the priority and the CPU of
/// the caller, so that they run after it.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Futex {
    /// Number of waiting tasks
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(0..=1000))]
    waiters: u32,
}

impl Describe for Futex {
    const ABOUT: About = About { name: "futex", summary: "wake all tasks that wait on a futex" };
}

impl Call for Futex {
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(FutexStage {
            word: Rc::new(Word::new()?),
            count: self.waiters,
            waiters: Vec::new(),
        }))
    }
}

struct FutexStage {
    word: Rc<Word>,
    count: u32,
    waiters: Vec<Forked>,
}

impl FutexStage {
    /// Forks tasks until all are there, and lets them run until they wait.
    fn start_waiters(&mut self, window: &Window) -> io::Result<()> {
        for _ in self.waiters.len()..self.count as usize {
            let word = Rc::clone(&self.word);
            self.waiters.push(window.single().fork(|| wait_forever(&word))?);
        }
        // They run on this CPU at this priority: before the caller runs again, each has run until
        // it waits.
        std::thread::yield_now();
        Ok(())
    }
}

fn wait_forever(word: &Word) {
    loop {
        word.wait();
    }
}

impl Stage for FutexStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        self.start_waiters(window)?;
        window.enter()?;
        let woken = self.word.wake_all();
        window.leave();
        if woken == self.count {
            return Ok(());
        }
        Err(io::Error::other(format!("only {woken} of {} tasks were waiting", self.count)))
    }
}
