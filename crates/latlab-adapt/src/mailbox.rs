//! The data shared by the adaptation thread and the control thread. The adaptation thread never
//! waits for a lock: a real-time task may keep the control thread from the CPU while it holds one.

use latlab_mechanism::Request;
use latlab_mechanism::status::Status;
use latlab_part::failure::lock;
use latlab_sys::{sched, signal};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The current requests, from the control thread, and the current status, from the adaptation
/// thread.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    requests: Mutex<Vec<Request>>,
    status: Mutex<Status>,
    /// Thread id of the adaptation thread; 0 before it has started.
    adaptation_thread: AtomicI32,
}

impl Mailbox {
    /// Makes the calling thread the adaptation thread.
    pub(super) fn decide_in_this_thread(&self) {
        self.adaptation_thread.store(sched::thread_id(), Relaxed);
    }

    /// Replaces the requests, and wakes the adaptation thread.
    pub(super) fn put_requests(&self, requests: Vec<Request>) {
        *lock(&self.requests) = requests;
        match self.adaptation_thread.load(Relaxed) {
            0 => {}
            thread => signal::interrupt_thread(thread),
        }
    }

    /// The current requests; none if the control thread holds the lock.
    pub(super) fn try_requests(&self) -> Option<Vec<Request>> {
        self.requests.try_lock().ok().map(|requests| requests.clone())
    }

    /// Replaces the status. Returns false if the control thread holds the lock.
    pub(super) fn try_put_status(&self, status: &Status) -> bool {
        self.status.try_lock().map(|mut current| current.clone_from(status)).is_ok()
    }

    /// The current status.
    pub(super) fn status(&self) -> Status {
        lock(&self.status).clone()
    }
}

/// The adaptation thread's view of the requests.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    mailbox: Arc<Mailbox>,
    last: Vec<Request>,
}

impl RequestReader {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> RequestReader {
        RequestReader { mailbox, last: Vec::new() }
    }

    /// The current requests, or those of the last call if the control thread holds the lock.
    pub(super) fn read(&mut self) -> Vec<Request> {
        if let Some(requests) = self.mailbox.try_requests() {
            self.last = requests;
        }
        self.last.clone()
    }
}
