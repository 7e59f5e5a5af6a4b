//! Saying what is decided, in a thread of its own: a reader who does not read keeps nobody waiting.

use crate::failure::{Result, failed};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Builder, JoinHandle, Thread};
use std::time::Duration;

/// So many sentences wait for a reader; what is more is not said.
const MOST: usize = 1024;
/// How often somebody who never waits asks for a lock that another has for a moment.
const TRIES: u32 = 100;
/// How long a reader who does not read is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// By which sentences are said. Who says one never waits.
#[derive(Clone, Debug)]
pub(crate) struct Voice(Option<Arc<Waiting>>);

/// What is still to be said.
#[derive(Debug, Default)]
struct Waiting {
    sentences: Mutex<Vec<String>>,
    /// How many were too much.
    unsaid: AtomicU64,
    ending: AtomicBool,
    speaker: OnceLock<Thread>,
}

/// The thread that says them. Dropping it ends it, after what it has still to say.
#[derive(Debug)]
pub(crate) struct Speaker {
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
}

impl Voice {
    /// One that nobody hears.
    pub(crate) fn mute() -> Voice {
        Voice(None)
    }

    /// Has a sentence said, if there is room for it.
    pub(crate) fn say(&self, sentence: &str) {
        let Some(waiting) = &self.0 else { return };
        if !waiting.add(sentence) {
            waiting.unsaid.fetch_add(1, Relaxed);
        }
        if let Some(speaker) = waiting.speaker.get() {
            speaker.unpark();
        }
    }

    /// How many sentences were not said, for want of a reader.
    pub(crate) fn unsaid(&self) -> u64 {
        self.0.as_ref().map_or(0, |waiting| waiting.unsaid.load(Relaxed))
    }
}

impl Speaker {
    /// Starts it. To be called by an ordinary thread: it is of its policy.
    pub(crate) fn start(say: fn(&str)) -> Result<Speaker> {
        let (waiting, (end, ended)) = (Arc::new(Waiting::default()), mpsc::channel());
        let heard = Arc::clone(&waiting);
        let thread = Builder::new().name("say".to_owned()).spawn(move || {
            heard.speak(say);
            drop(end);
        });
        let thread = thread.map_err(|e| failed("the thread that says what is done", e))?;
        Ok(Speaker { waiting, thread: Some(thread), ended })
    }

    pub(crate) fn voice(&self) -> Voice {
        Voice(Some(Arc::clone(&self.waiting)))
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.waiting.ending.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // It ends without a word; where it does not, it is left to the end of the process.
        if self.ended.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Disconnected) {
            let _ = thread.join();
        }
    }
}

impl Waiting {
    /// Whether there was room. Whoever has the lock may be kept from the CPU, and is not waited for.
    fn add(&self, sentence: &str) -> bool {
        for _ in 0..TRIES {
            let Ok(mut sentences) = self.sentences.try_lock() else {
                std::hint::spin_loop();
                continue;
            };
            let fits = sentences.len() < MOST;
            if fits {
                sentences.push(sentence.to_owned());
            }
            return fits;
        }
        false
    }

    /// Until it is to end and everything is said.
    fn speak(&self, say: fn(&str)) {
        let _ = self.speaker.set(thread::current());
        let mut told = 0;
        loop {
            let ending = self.ending.load(Relaxed);
            let mut sentences = self.sentences.lock().unwrap_or_else(PoisonError::into_inner);
            let now = std::mem::take(&mut *sentences);
            drop(sentences);
            for sentence in &now {
                say(sentence);
            }
            let unsaid = self.unsaid.load(Relaxed);
            if unsaid > told {
                say(&format!("{} sentences were left out: nobody read them", unsaid - told));
                told = unsaid;
            }
            match (now.is_empty(), ending) {
                (true, true) => return,
                (true, false) => thread::park(),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was said, by a reader who reads whenever nobody holds this.
    static READ: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn read(sentence: &str) {
        READ.lock().unwrap().push(sentence.to_owned());
    }

    #[test]
    fn who_does_not_read_keeps_nobody_waiting_and_hears_how_much_was_left_out() {
        let held = READ.lock().unwrap();
        let speaker = Speaker::start(read).unwrap();
        let voice = speaker.voice();
        (0..4 * MOST).for_each(|n| voice.say(&n.to_string()));
        let unsaid = voice.unsaid();
        assert!((2 * MOST as u64..4 * MOST as u64).contains(&unsaid), "{unsaid}");
        drop(held);
        drop(speaker);
        let read = READ.lock().unwrap();
        let left_out = |line: &String| {
            line.strip_suffix(" sentences were left out: nobody read them")?.parse::<u64>().ok()
        };
        let numbers: Vec<u64> = read.iter().filter_map(left_out).collect();
        assert_eq!(numbers.iter().sum::<u64>(), unsaid, "{:?}", read.last());
        assert_eq!((read.len() - numbers.len()) as u64, 4 * MOST as u64 - unsaid);
    }

    #[test]
    fn who_is_mute_says_nothing_and_leaves_nothing_out() {
        Voice::mute().say("nothing");
        assert_eq!(Voice::mute().unsaid(), 0);
    }
}
