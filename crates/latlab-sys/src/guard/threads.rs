//! Threads' policies as knobs.

use super::entry::Entry;
use super::{Guard, GuardError, change};
use latlab_core::record::Change;

/// What a thread is to have.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The thread, as the kernel numbers it.
    pub thread: i32,
    /// What it is called, by which it is known that the number is still its own.
    pub name: &'a str,
    /// The policy, as `fifo 50` or `other`.
    pub policy: &'a str,
    /// Why, for the record.
    pub because: String,
}

impl Guard {
    /// Gives threads policies: all journalled at once, since writing the journal takes longer than
    /// all else, and then each set and read back. What became of each, in their order; an error as a
    /// whole means that none was touched.
    pub fn set_threads(
        &mut self,
        all: &[Wanted<'_>],
    ) -> Result<Vec<Result<(), GuardError>>, GuardError> {
        let Some(first) = all.first() else { return Ok(Vec::new()) };
        let _turn = self.take_turn(first.name)?;
        let others = self.others();
        let entry = |one: &Wanted<'_>| {
            let entry = Entry::of_thread(one.thread, one.name, one.policy.to_owned())?;
            super::refuse_if_taken(&others, |theirs| theirs.same_knob(&entry), one.name)?;
            Ok(entry)
        };
        let entries: Vec<Result<Entry, GuardError>> = all.iter().map(entry).collect();
        let there: Vec<Entry> = entries.iter().flatten().cloned().collect();
        self.write_down(&there)?;
        let turned = entries.into_iter().zip(all).map(|(entry, one)| self.turn(&entry?, one));
        Ok(turned.collect())
    }

    fn turn(&mut self, entry: &Entry, one: &Wanted<'_>) -> Result<(), GuardError> {
        entry.turn(one.policy)?;
        let change = change(one.name, &entry.was, one.policy);
        self.note(Change { reason: one.because.clone(), ..change });
        Ok(())
    }

    /// Gives a thread its policy back before the end, as [`Guard::release`]. There is nothing to
    /// give back where it has ended. There may be many at once, and writing the journal takes longer
    /// than giving back: it says so when it is written next, or at [`Guard::settle`].
    pub fn release_thread(&mut self, thread: i32, name: &str) -> bool {
        self.behind.push(name.to_owned());
        self.release_those(name, |entry| entry.is_of(thread, name))
    }

    /// Leaves a thread's policy as it is, as [`Guard::forget`].
    pub fn forget_thread(&mut self, thread: i32, name: &str) -> Result<(), GuardError> {
        self.left.push(name.to_owned());
        self.forget_those(name, |entry| entry.is_of(thread, name))
    }
}
