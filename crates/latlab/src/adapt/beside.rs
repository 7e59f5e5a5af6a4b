//! A thread in which mechanisms work beside everything else.

use super::Adapting;
use super::account::Account;
use super::voice::Voice;
use crate::failure::{Result, failed};
use latlab_bpf::wakers::Meter;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::record::Change;
use latlab_sys::root::Root;
use latlab_sys::{clock, signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

/// Mechanisms at work. Dropping it ends them, and everything is given back.
#[derive(Debug)]
pub(crate) struct Beside {
    thread: Option<JoinHandle<Ended>>,
    word: Arc<Word>,
}

/// What the thread and who started it let each other know.
#[derive(Debug, Default)]
struct Word {
    /// It is to end.
    ending: AtomicBool,
    /// It has ended.
    gone: AtomicBool,
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
    /// done before this returns.
    pub(crate) fn start(names: &[String]) -> Result<Beside> {
        Beside::told(names, &Configuration::default(), Account::default(), Voice::mute())
            .map(|(beside, _)| beside)
    }

    /// The same by this configuration, with an account of what is done, each
    /// decision said. What is counted of who
    /// wakes whom can be read besides, where that is watched.
    pub(super) fn told(
        names: &[String],
        told: &Configuration,
        account: Account,
        voice: Voice,
    ) -> Result<(Beside, Option<Meter>)> {
        let adapting = Adapting::begin(names, told, account, Root::default(), voice)?;
        let meter = adapting.observing.meter();
        let word = Arc::new(Word::default());
        let heard = Arc::clone(&word);
        let thread = Builder::new()
            .name("adapt".to_owned())
            .spawn(move || until_gone(&heard, || work(adapting, &heard.ending)))
            .map_err(|e| failed("the thread that adapts the machine", e))?;
        Ok((Beside { thread: Some(thread), word }, meter))
    }

    /// Whether mechanisms are at work still. Where they end by themselves, whoever waits for signals
    /// is woken.
    pub(super) fn is_at_work(&self) -> bool {
        !self.word.gone.load(Relaxed)
    }

    /// Has everything given back. What was done.
    pub(crate) fn end(mut self) -> Ended {
        self.join()
    }

    fn join(&mut self) -> Ended {
        self.word.ending.store(true, Relaxed);
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

/// Has it known when this is over, however it ends.
fn until_gone<T>(heard: &Word, work: impl FnOnce() -> T) -> T {
    let _leaving = Leaving(heard);
    work()
}

struct Leaving<'a>(&'a Word);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.gone.store(true, Relaxed);
        if !self.0.ending.load(Relaxed) {
            signal::tell();
        }
    }
}

fn work(mut adapting: Adapting, ending: &AtomicBool) -> Ended {
    let voice = adapting.voice.clone();
    adapting.be_prompt();
    adapting.account.decide_here();
    let began = clock::now();
    while !ending.load(Relaxed) {
        adapting.wait();
        if !ending.load(Relaxed) {
            adapting.step();
        }
    }
    let (cpu, time) = (clock::of_thread(), clock::now() - began);
    let ended = adapting.end();
    voice.say(&format!("adapting took {cpu} of CPU time in {time}"));
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_sys::signal::Signals;

    #[test]
    fn it_is_known_that_it_is_over_even_where_it_failed() {
        // Else the news would kill.
        let _signals = Signals::hold().unwrap();
        let ended = |asked: bool| {
            let word = Arc::new(Word { ending: AtomicBool::new(asked), ..Word::default() });
            let heard = Arc::clone(&word);
            let fails = move || until_gone(&heard, || assert!(asked, "a fault, as is tested here"));
            let failed = std::thread::spawn(fails).join().is_err();
            assert!(failed != asked && word.gone.load(Relaxed));
        };
        ended(true);
        ended(false);
    }
}
