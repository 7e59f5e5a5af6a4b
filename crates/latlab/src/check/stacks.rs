//! The user stacks of a check: unwound when they are read, named at the end.

use super::image::Image;
use blazesym::symbolize::Symbolizer;
use latlab_bpf::UserStack;
use latlab_core::check::{Frame, StackId, Thread};
use latlab_core::time::Nanos;
use std::collections::{BTreeSet, HashMap};

/// Stacks so far, each once.
#[derive(Default)]
pub(super) struct Stacks {
    images: Vec<Image>,
    /// Index of the current image of each process.
    current: HashMap<u32, usize>,
    known: HashMap<(usize, Vec<u64>), StackId>,
    /// Image and addresses of each stack.
    all: Vec<(usize, Vec<u64>)>,
    /// The stack of the last sleep of each thread.
    sleeps: HashMap<u32, StackId>,
    /// Images that were read again since the last batch.
    updated: BTreeSet<usize>,
}

/// Largest number of different stacks. Further ones have no names.
const MOST: usize = 65_536;

impl Stacks {
    /// Unwinds a stack. None if the process has ended before its image was read.
    pub(super) fn add(&mut self, pid: u32, stack: &UserStack) -> Option<StackId> {
        let index = self.image(pid)?;
        let image = &mut self.images[index];
        if !image.has(stack.ip) && self.updated.insert(index) {
            image.update();
        }
        let key = (index, image.unwind(stack));
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if self.all.len() >= MOST {
            return None;
        }
        let id = StackId::try_from(self.all.len()).ok()?;
        self.all.push(key.clone());
        self.known.insert(key, id);
        Some(id)
    }

    /// The stack of a sleep, whose stack is observed only if it differs from that of the last one.
    pub(super) fn add_sleep(
        &mut self,
        thread: Thread,
        stack: Option<&UserStack>,
    ) -> Option<StackId> {
        let Some(stack) = stack else { return self.sleeps.get(&thread.tid).copied() };
        let id = self.add(thread.pid, stack)?;
        self.sleeps.insert(thread.tid, id);
        Some(id)
    }

    /// Reads the image of a process unless it is known.
    pub(super) fn image(&mut self, pid: u32) -> Option<usize> {
        if let Some(index) = self.current.get(&pid) {
            return Some(*index);
        }
        let image = Image::read(pid)?;
        self.images.push(image);
        self.current.insert(pid, self.images.len() - 1);
        self.current.get(&pid).copied()
    }

    /// The process executed another program at that time. Its image may have been read since, and it
    /// may have ended.
    pub(super) fn forget(&mut self, pid: u32, at: Nanos) {
        let image = self.current.get(&pid).map(|index| &self.images[*index]);
        if image.is_some_and(|image| image.at < at) {
            self.current.remove(&pid);
        }
    }

    /// A batch of events has been read.
    pub(super) fn end_batch(&mut self) {
        self.updated.clear();
    }

    /// Whether a process binds symbols lazily.
    pub(super) fn is_lazy(&self, pid: u32) -> bool {
        self.current.get(&pid).is_some_and(|index| self.images[*index].lazy)
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
        let frames: Vec<Frame> = frames.collect();
        lacks.extend(image.lacks(&frames));
        frames
    }
}
