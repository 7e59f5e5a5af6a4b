//! The user stacks of a check: unwound when they are read, named at the end.

use super::files::Files;
use super::image::Image;
use super::mappings::Mappings;
use blazesym::symbolize::Symbolizer;
use latlab_bpf::UserStack;
use latlab_check::{Frame, StackId, Thread};
use latlab_core::time::Nanos;
use std::collections::{BTreeSet, HashMap};

/// Stacks so far, each once.
#[derive(Default)]
pub(super) struct Stacks {
    files: Files,
    mappings: Mappings,
    images: Vec<Image>,
    /// Index of the current image of each process.
    current: HashMap<u32, usize>,
    /// Images that have stacks.
    used: BTreeSet<usize>,
    /// Processes that bound symbols lazily and have ended.
    lazy: BTreeSet<u32>,
    known: HashMap<(usize, Vec<u64>), StackId>,
    /// Image and addresses of each stack.
    all: Vec<(usize, Vec<u64>)>,
    /// The stack of the last sleep of each thread.
    sleeps: HashMap<u32, StackId>,
    /// Images that were read again since the last batch.
    updated: BTreeSet<usize>,
    /// Processes that have mapped code since their images were last read.
    changed: BTreeSet<u32>,
}

/// Largest number of different stacks. Further ones have no names.
const MOST: usize = 65_536;

impl Stacks {
    /// No stacks yet. Records what processes map from now on.
    pub(super) fn start() -> Stacks {
        Stacks { mappings: Mappings::start(), ..Stacks::default() }
    }

    /// Unwinds a stack. None if the process has ended and its mappings are not known.
    pub(super) fn add(&mut self, pid: u32, stack: &UserStack) -> Option<StackId> {
        let mut index = self.image_with(pid, stack.ip)?;
        let mut addresses = self.images[index].unwind(stack);
        if self.images[index].has_new(&addresses) {
            index = self.renew(pid, index)?;
            addresses = self.images[index].unwind(stack);
        }
        let key = (index, addresses);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if self.all.len() >= MOST {
            return None;
        }
        let id = StackId::try_from(self.all.len()).ok()?;
        self.all.push(key.clone());
        self.used.insert(index);
        self.known.insert(key, id);
        Some(id)
    }

    /// The stack of a sleep. It is reported only if it differs from the stack of the last sleep.
    pub(super) fn add_sleep(
        &mut self,
        thread: Thread,
        stack: Option<&UserStack>,
    ) -> Option<StackId> {
        let Some(stack) = stack else { return self.sleeps.get(&thread.tid).copied() };
        let id = self.add(thread.pid, stack);
        match id {
            Some(id) => self.sleeps.insert(thread.tid, id),
            None => self.sleeps.remove(&thread.tid),
        };
        id
    }

    /// A process has mapped code.
    pub(super) fn change(&mut self, pid: u32) {
        if self.current.contains_key(&pid) {
            self.changed.insert(pid);
        }
    }

    /// The image of a process, read again where it may lack code. Where other code has taken the place of
    /// some, it is a new image: the stacks so far have the old one.
    fn image_with(&mut self, pid: u32, ip: u64) -> Option<usize> {
        let index = self.image(pid)?;
        let image = &mut self.images[index];
        let lacks_code = !image.has(ip) && self.updated.insert(index);
        let changed = self.changed.remove(&pid);
        if lacks_code || changed { self.renew(pid, index) } else { Some(index) }
    }

    /// Reads the image of a process again.
    fn renew(&mut self, pid: u32, index: usize) -> Option<usize> {
        if self.images[index].update(&mut self.mappings, &mut self.files) {
            return Some(index);
        }
        self.drop_image(pid);
        self.image(pid)
    }

    /// Reads the image of a process unless it is known.
    pub(super) fn image(&mut self, pid: u32) -> Option<usize> {
        if let Some(index) = self.current.get(&pid) {
            return Some(*index);
        }
        let image = Image::read(pid, &mut self.mappings, &mut self.files)?;
        self.images.push(image);
        self.current.insert(pid, self.images.len() - 1);
        self.current.get(&pid).copied()
    }

    /// The process executed another program at that time. Its image may have been read since, and it
    /// may have ended.
    pub(super) fn forget(&mut self, pid: u32, at: Nanos) {
        let image = self.current.get(&pid).map(|index| &self.images[*index]);
        if image.is_some_and(|image| image.at < at) {
            self.drop_image(pid);
        }
    }

    /// The process has ended.
    pub(super) fn end(&mut self, pid: u32) {
        self.lazy.remove(&pid);
        if self.is_lazy(pid) {
            self.lazy.insert(pid);
        }
        self.drop_image(pid);
    }

    /// Drops the image of a process, except for the parts that its stacks need.
    fn drop_image(&mut self, pid: u32) {
        self.changed.remove(&pid);
        if let Some(index) = self.current.remove(&pid) {
            self.images[index].end(self.used.contains(&index));
        }
    }

    /// A batch of events has been read.
    pub(super) fn end_batch(&mut self) {
        self.updated.clear();
        self.mappings.read();
    }

    /// Whether a process binds symbols lazily, or did until it ended.
    pub(super) fn is_lazy(&self, pid: u32) -> bool {
        let current = self.current.get(&pid).map(|index| self.images[*index].lazy);
        current.unwrap_or_else(|| self.lazy.contains(&pid))
    }

    /// The frames of a stack. What its files lack is added to `lacks`.
    pub(super) fn frames(
        &self,
        symbolizer: &Symbolizer,
        id: StackId,
        lacks: &mut BTreeSet<String>,
    ) -> Vec<Frame> {
        let Some((index, addresses)) = self.all.get(id as usize) else { return Vec::new() };
        let image = &self.images[*index];
        let frames = addresses.iter().flat_map(|address| image.frames(symbolizer, *address));
        let mut frames: Vec<Frame> = frames.collect();
        image.set_run_time_apart(&mut frames);
        lacks.extend(image.lacks(&frames));
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_of_ended_process_is_kept_only_for_its_stacks() {
        let mut stacks = Stacks::default();
        let pid = std::process::id();
        let stack = UserStack { ip: 1, sp: 8, bp: 8, lr: 0, bytes: Vec::new() };
        let size = |stacks: &Stacks| stacks.images.last().map_or(0, Image::size);
        stacks.image(pid).expect("it runs");
        assert!(size(&stacks) > 0);
        stacks.end(pid);
        assert_eq!((size(&stacks), stacks.current.len()), (0, 0));
        stacks.add(pid, &stack).expect("its image is read again");
        stacks.end(pid);
        assert!(size(&stacks) > 0);
    }
}
