//! The thread that writes log messages, so that a slow reader of them delays nobody.

use crate::failure::{Result, failed, lock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, Builder, JoinHandle, Thread};
use std::time::Duration;

/// Most messages that wait to be written; more are dropped.
const CAPACITY: usize = 1024;
/// Attempts to get the lock of the queue, which is only held briefly.
const TRIES: u32 = 100;
/// Longest wait for the thread at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends messages to the log thread, without waiting for it.
#[derive(Clone, Debug)]
pub(crate) struct Logger(Option<Arc<Queue>>);

/// Messages that wait to be written.
#[derive(Debug, Default)]
struct Queue {
    messages: Mutex<Vec<String>>,
    /// Number of messages that were dropped.
    dropped: AtomicU64,
    /// Whether a message waits for the lock of the queue.
    patient: AtomicBool,
    stop: AtomicBool,
    writer: OnceLock<Thread>,
}

/// The thread that writes messages. Dropping it ends the thread, after the messages in the queue.
#[derive(Debug)]
pub(crate) struct LogThread {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Logger {
    /// A logger that discards all messages.
    pub(crate) fn disabled() -> Logger {
        Logger(None)
    }

    /// Queues a message, or drops it if the queue is full.
    pub(crate) fn log(&self, message: &str) {
        let Some(queue) = &self.0 else { return };
        if !queue.try_push(message) {
            queue.dropped.fetch_add(1, Relaxed);
        }
        if let Some(writer) = queue.writer.get() {
            writer.unpark();
        }
    }

    /// From now on a message waits for the lock of the queue, which a preempted holder may keep for a
    /// while: nothing is urgent any more, and every message matters.
    pub(crate) fn wait_for_lock(&self) {
        if let Some(queue) = &self.0 {
            queue.patient.store(true, Relaxed);
        }
    }

    /// Number of messages that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |queue| queue.dropped.load(Relaxed))
    }
}

impl LogThread {
    /// Starts the thread, which calls `write` for each message. The thread inherits the scheduling
    /// policy of the caller, which has to be SCHED_OTHER.
    pub(crate) fn start(write: fn(&str)) -> Result<LogThread> {
        let (queue, (end, ended)) = (Arc::new(Queue::default()), mpsc::channel());
        let shared = Arc::clone(&queue);
        let thread = Builder::new().name("log".to_owned()).spawn(move || {
            shared.write_all(write);
            drop(end);
        });
        let thread = thread.map_err(|e| failed("the thread that writes log messages", e))?;
        Ok(LogThread { queue, thread: Some(thread), ended })
    }

    pub(crate) fn logger(&self) -> Logger {
        Logger(Some(Arc::clone(&self.queue)))
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.queue.stop.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // A thread that does not end in time is left to the end of the process.
        if self.ended.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Disconnected) {
            let _ = thread.join();
        }
    }
}

impl Queue {
    /// Whether there was room, and the lock was free.
    fn try_push(&self, message: &str) -> bool {
        let Some(mut messages) = self.lock() else { return false };
        let fits = messages.len() < CAPACITY;
        if fits {
            messages.push(message.to_owned());
        }
        fits
    }

    /// The lock. A preempted holder is waited for only where nothing is urgent.
    fn lock(&self) -> Option<MutexGuard<'_, Vec<String>>> {
        let attempt = |_| {
            let held = self.messages.try_lock().ok();
            held.or_else(|| {
                std::hint::spin_loop();
                None
            })
        };
        let held = (0..TRIES).find_map(attempt);
        held.or_else(|| self.patient.load(Relaxed).then(|| lock(&self.messages)))
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
    use latlab_core::time::Nanos;
    use latlab_sys::clock;

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
        (0..4 * CAPACITY).for_each(|n| logger.log(&n.to_string()));
        let dropped = logger.dropped();
        assert!((2 * CAPACITY as u64..4 * CAPACITY as u64).contains(&dropped), "{dropped}");
        drop(held);
        drop(thread);
        let read = READ.lock().unwrap();
        let reported = |line: &String| {
            line.strip_suffix(" messages dropped: they were not read")?.parse::<u64>().ok()
        };
        let numbers: Vec<u64> = read.iter().filter_map(reported).collect();
        assert_eq!(numbers.iter().sum::<u64>(), dropped, "{:?}", read.last());
        assert_eq!((read.len() - numbers.len()) as u64, 4 * CAPACITY as u64 - dropped);
    }

    #[test]
    fn message_at_the_end_waits_for_a_preempted_holder_of_the_queue() {
        let thread = LogThread::start(|_| ()).unwrap();
        let logger = thread.logger();
        let held = lock(&thread.queue.messages);
        logger.log("urgent");
        assert_eq!(logger.dropped(), 1);
        logger.wait_for_lock();
        thread::scope(|scope| {
            let last = scope.spawn(|| logger.log("can't be restored"));
            clock::sleep_for(Nanos::from_millis(20));
            drop(held);
            last.join().unwrap();
        });
        assert_eq!(logger.dropped(), 1);
    }

    #[test]
    fn disabled_logger_drops_no_messages() {
        Logger::disabled().log("message");
        assert_eq!(Logger::disabled().dropped(), 0);
    }
}
