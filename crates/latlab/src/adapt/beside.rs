//! A thread in which mechanisms work beside everything else.

use super::Adapting;
use super::account::Account;
use crate::failure::{Result, failed};
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::record::Change;
use latlab_sys::clock;
use latlab_sys::root::Root;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

/// Mechanisms at work. Dropping it ends them, and everything is given back.
#[derive(Debug)]
pub(crate) struct Beside {
    thread: Option<JoinHandle<Ended>>,
    ending: Arc<AtomicBool>,
}

/// What mechanisms have done, and given back.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Each change once, however often it was made.
    pub(crate) changes: Vec<Change>,
    /// What people should know of a record that was made meanwhile.
    pub(crate) warnings: Vec<String>,
}

impl Beside {
    /// Has the mechanisms of these names work until [`Beside::end`]. What they decide at first is
    /// done before this returns. Each decision is said.
    pub(crate) fn start(names: &[String], say: fn(&str)) -> Result<Beside> {
        Beside::told(names, &Configuration::default(), Account::default(), say)
    }

    /// The same by this configuration, with an account of what is done.
    pub(super) fn told(
        names: &[String],
        told: &Configuration,
        account: Account,
        say: fn(&str),
    ) -> Result<Beside> {
        let adapting = Adapting::begin(names, told, account, Root::default(), say)?;
        let ending = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ending);
        let thread = Builder::new()
            .name("adapt".to_owned())
            .spawn(move || work(adapting, &told, say))
            .map_err(|e| failed("the thread that adapts the machine", e))?;
        Ok(Beside { thread: Some(thread), ending })
    }

    /// Has everything given back. What was done.
    pub(crate) fn end(mut self) -> Ended {
        self.join()
    }

    fn join(&mut self) -> Ended {
        self.ending.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return Ended::default() };
        thread.thread().unpark();
        // One that panicked has given everything back, too.
        thread.join().unwrap_or_default()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.join();
    }
}

fn work(mut adapting: Adapting, ending: &AtomicBool, say: fn(&str)) -> Ended {
    adapting.be_prompt(say);
    adapting.account.decide_here();
    let began = clock::now();
    while !ending.load(Relaxed) {
        adapting.wait();
        if !ending.load(Relaxed) {
            adapting.step(say);
        }
    }
    let (cpu, time) = (clock::of_thread(), clock::now() - began);
    let ended = adapting.end(say);
    say(&format!("adapting took {cpu} of CPU time in {time}"));
    ended
}
