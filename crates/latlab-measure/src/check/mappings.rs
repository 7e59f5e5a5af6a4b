//! The newest executable mappings of all processes, for processes that end before their maps are
//! read.

use latlab_sys::code::{CodeEvent, CodeEvents};
use latlab_sys::cpu;
use latlab_sys::root::Root;
use std::collections::VecDeque;

/// Mappings with their processes, as perf records them.
#[derive(Default)]
pub(super) struct Mappings {
    /// None where the kernel refuses them: then the maps of processes that run are all there is.
    events: Option<CodeEvents>,
    /// Process and line of its maps, the oldest first.
    lines: VecDeque<(u32, String)>,
}

/// Largest number of kept mappings: enough for some hundred programs.
const MOST: usize = 4096;

impl Mappings {
    /// Listens from now on.
    pub(super) fn start() -> Mappings {
        let events = CodeEvents::start(&cpu::online(&Root::default()));
        Mappings { events: events.ok(), lines: VecDeque::new() }
    }

    /// The executable part of `/proc/PID/maps` as it was when the process ended.
    pub(super) fn of(&mut self, pid: u32) -> String {
        self.read();
        let its = self.lines.iter().filter(|(of, _)| *of == pid);
        its.flat_map(|(_, line)| [line, "\n"]).collect()
    }

    /// Reads the events so far. The kernel's buffers hold the events of some hundred programs.
    pub(super) fn read(&mut self) {
        let new = self.events.as_mut().map(CodeEvents::read).unwrap_or_default();
        for (pid, event) in new {
            self.add(pid, event);
        }
    }

    fn add(&mut self, pid: u32, event: CodeEvent) {
        match event {
            CodeEvent::Mapped(line) => self.lines.push_back((pid, line)),
            CodeEvent::Executed => self.lines.retain(|(of, _)| *of != pid),
            CodeEvent::Forked(parent) => {
                let its = self.lines.iter().filter(|(of, _)| *of == parent);
                let copies: Vec<_> = its.map(|(_, line)| (pid, line.clone())).collect();
                self.lines.extend(copies);
            }
        }
        let excess = self.lines.len().saturating_sub(MOST);
        self.lines.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fork_has_the_code_of_its_parent_until_it_executes_another() {
        let mut mapped = Mappings::default();
        let line = |name: &str| CodeEvent::Mapped(name.to_owned());
        mapped.add(1, line("one"));
        mapped.add(2, CodeEvent::Forked(1));
        assert_eq!((mapped.of(1), mapped.of(2)), ("one\n".to_owned(), "one\n".to_owned()));
        mapped.add(2, CodeEvent::Executed);
        mapped.add(2, line("two"));
        assert_eq!((mapped.of(1), mapped.of(2)), ("one\n".to_owned(), "two\n".to_owned()));
    }

    #[test]
    fn newest_mappings_are_kept() {
        let mut mapped = Mappings::default();
        for pid in 0..=u32::try_from(MOST).unwrap() {
            mapped.add(pid, CodeEvent::Mapped("one".to_owned()));
        }
        assert_eq!((mapped.of(0), mapped.of(1)), (String::new(), "one\n".to_owned()));
    }
}
