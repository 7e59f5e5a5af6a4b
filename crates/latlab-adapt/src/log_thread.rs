//! The thread that writes log messages, so that a slow reader of them delays nobody.

use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Result, lock};
use latlab_sys::clock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, Builder, JoinHandle, Thread};
use std::time::Duration;

/// Most messages that wait to be written; more are dropped.
const CAPACITY: usize = 1024;
/// Attempts to get the lock of the queue, which is only held briefly.
const TRIES: u32 = 100;
/// Longest wait for the thread at the end, and before by all messages then.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// Time between two attempts to queue a message at the end.
const PAUSE: Nanos = Nanos::from_millis(1);

/// Sends messages to the log thread, without waiting for it.
#[derive(Clone, Debug)]
pub struct Logger(Option<Arc<Queue>>);

/// Messages that wait to be written.
#[derive(Debug, Default)]
struct Queue {
    messages: Mutex<Vec<String>>,
    /// Number of messages that were dropped.
    dropped: AtomicU64,
    /// Until when a message waits for room, and for the lock of the queue.
    patient_until: AtomicU64,
    stop: AtomicBool,
    writer: OnceLock<Thread>,
}

/// The thread that writes messages. Dropping it ends the thread, after the messages in the queue.
#[derive(Debug)]
pub struct LogThread {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Logger {
    /// A logger that discards all messages.
    pub fn disabled() -> Logger {
        Logger(None)
    }

    /// Queues a message, or drops it if the queue is full.
    pub fn log(&self, message: &str) {
        let Some(queue) = &self.0 else { return };
        if !queue.push(message) {
            queue.dropped.fetch_add(1, Relaxed);
        }
        if let Some(writer) = queue.writer.get() {
            writer.unpark();
        }
    }

    /// From now on, messages wait for room in the queue and for its lock, which a preempted holder
    /// may keep for a while. Nothing is urgent any more, and every message matters. All messages
    /// together wait for at most a second.
    pub fn be_patient(&self) {
        if let Some(queue) = &self.0 {
            queue.patient_until.store((clock::now() + PATIENCE).0, Relaxed);
        }
    }

    /// Number of messages that were dropped.
    pub fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |queue| queue.dropped.load(Relaxed))
    }
}

impl LogThread {
    /// Starts the thread, which calls `write` for each message. The thread inherits the scheduling
    /// policy of the caller, which has to be SCHED_OTHER.
    pub fn start(write: fn(&str)) -> Result<LogThread> {
        let (queue, (end, ended)) = (Arc::new(Queue::default()), mpsc::channel());
        let shared = Arc::clone(&queue);
        let thread = Builder::new().name("log".to_owned()).spawn(move || {
            shared.write_all(write);
            drop(end);
        });
        let thread = thread.context("the thread that writes log messages")?;
        Ok(LogThread { queue, thread: Some(thread), ended })
    }

    /// A sender of lines to this thread.
    pub fn logger(&self) -> Logger {
        Logger(Some(Arc::clone(&self.queue)))
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.queue.stop.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // A thread that does not end in time is left to the end of the process.
        let patience = Duration::from_nanos(PATIENCE.0);
        if self.ended.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Disconnected) {
            let _ = thread.join();
        }
    }
}

impl Queue {
    /// Whether the message is queued now, or in time.
    fn push(&self, message: &str) -> bool {
        loop {
            if self.try_push(message) {
                return true;
            }
            if clock::now().0 >= self.patient_until.load(Relaxed) {
                return false;
            }
            clock::sleep_for(PAUSE);
        }
    }

    /// Whether there was room. The holder of the lock may have been preempted, and is not waited
    /// for.
    fn try_push(&self, message: &str) -> bool {
        for _ in 0..TRIES {
            let Ok(mut messages) = self.messages.try_lock() else {
                std::hint::spin_loop();
                continue;
            };
            let fits = messages.len() < CAPACITY;
            if fits {
                messages.push(message.to_owned());
            }
            return fits;
        }
        false
    }

    /// Writes messages until the thread is to stop and all of them are written.
    fn write_all(&self, write: fn(&str)) {
        let _ = self.writer.set(thread::current());
        let mut reported = 0;
        loop {
            let stop = self.stop.load(Relaxed);
            let messages = std::mem::take(&mut *lock(&self.messages));
            for message in &messages {
                write(message);
            }
            let dropped = self.dropped.load(Relaxed);
            if dropped > reported {
                write(&format!("{} messages dropped: they were not read", dropped - reported));
                reported = dropped;
            }
            match (messages.is_empty(), stop) {
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
    use latlab_sys::sched;
    use latlab_testing::{times_asleep, wait_at_most, wait_until_asleep};

    /// Messages that were read, by a reader that is blocked while a test holds the lock.
    static READ: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn read(message: &str) {
        READ.lock().unwrap().push(message.to_owned());
    }

    #[test]
    fn blocked_reader_delays_nobody_and_is_told_the_number_of_dropped_messages() {
        let held = READ.lock().unwrap();
        let thread = LogThread::start(read).unwrap();
        let logger = thread.logger();
        lock(&thread.queue.messages).push("first".to_owned());
        thread.queue.writer.wait().unpark();
        // Then the writer waits for the reader, and never has the lock of the queue.
        let is_taken = || lock(&thread.queue.messages).is_empty();
        wait_at_most(Duration::from_secs(10), "the writer has the first message", is_taken);
        (0..4 * CAPACITY).for_each(|n| logger.log(&n.to_string()));
        assert_eq!(logger.dropped(), 3 * CAPACITY as u64);
        drop(held);
        drop(thread);
        // On a busy machine it is left to the end of the process, and still writes.
        let is_told = || told() == (1 + CAPACITY, 3 * CAPACITY as u64);
        wait_at_most(Duration::from_secs(10), "the reader is told of all messages", is_told);
    }

    /// Number of messages that were read, and number of messages reported as dropped.
    fn told() -> (usize, u64) {
        let read = READ.lock().unwrap();
        let reported = |line: &String| {
            line.strip_suffix(" messages dropped: they were not read")?.parse::<u64>().ok()
        };
        let numbers: Vec<u64> = read.iter().filter_map(reported).collect();
        (read.len() - numbers.len(), numbers.iter().sum())
    }

    #[test]
    fn message_at_the_end_waits_for_a_preempted_holder_and_for_room() {
        let thread = LogThread::start(|_| ()).unwrap();
        let logger = thread.logger();
        let mut held = lock(&thread.queue.messages);
        logger.log("urgent");
        assert_eq!(logger.dropped(), 1);
        let before = clock::now();
        logger.be_patient();
        // A busy machine takes longer than a second.
        let until = thread.queue.patient_until.swap(u64::MAX, Relaxed);
        assert!(until >= (before + PATIENCE).0);
        held.resize(CAPACITY, String::new());
        let (sender, id) = mpsc::channel();
        thread::scope(|scope| {
            let last = scope.spawn(|| {
                sender.send(sched::thread_id()).unwrap();
                logger.log("can't be restored");
            });
            wait_until_asleep(id.recv().unwrap());
            drop(held);
            // The writer sleeps until there is news.
            thread.thread.as_ref().unwrap().thread().unpark();
            last.join().unwrap();
        });
        assert_eq!(logger.dropped(), 1);
    }

    #[test]
    fn messages_at_the_end_wait_for_a_second_at_most() {
        let thread = LogThread::start(|_| ()).unwrap();
        let logger = thread.logger();
        let held = lock(&thread.queue.messages);
        logger.be_patient();
        logger.log("can't be restored");
        let before = times_asleep();
        (1..1_000).for_each(|_| logger.log("can't be restored"));
        let slept = times_asleep() - before;
        drop(held);
        assert_eq!(logger.dropped(), 1_000);
        // A second for each would be a quarter of an hour.
        assert!(slept < 100, "the second is over after the first one: {slept}");
    }

    #[test]
    fn disabled_logger_drops_no_messages() {
        Logger::disabled().log("message");
        assert_eq!(Logger::disabled().dropped(), 0);
    }
}
