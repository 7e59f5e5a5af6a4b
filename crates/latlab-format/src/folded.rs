//! Folded stacks for flame graphs: lines of `outer;…;inner count` with nanoseconds as the count
//! (Gregg, "The Flame Graph", 2016). flamegraph.pl, inferno and speedscope read them.

use super::output::{self, Destination, Format};
use super::picture::NamedRecord;
use super::printable;
use latlab_core::time::Nanos;
use latlab_part::part::About;
use std::fmt::Write as _;

/// The format in the table of output formats.
pub(super) const FORMAT: Format = Format {
    about: About {
        name: "folded",
        summary: "Write the causes of late wake-ups as folded stacks for flame graphs",
    },
    option: "folded",
    short: None,
    destination: Destination::File,
    needs_explanation: true,
    write: |contents, path| output::write(path, stacks(contents.sources).as_bytes()),
};

/// Returns the stacks of all records and the unexplained rest. Of several records, the outermost
/// frame is the record's name.
pub fn stacks(sources: &[NamedRecord]) -> String {
    let mut text = String::new();
    for source in sources {
        let Some(explained) = &source.record.explained else { continue };
        let root =
            if sources.len() > 1 { format!("{};", frame(&source.name)) } else { String::new() };
        let mut line = |stack: &str, ns: Nanos| {
            if ns > Nanos(0) {
                let _ = writeln!(text, "{root}{} {}", printable(stack), ns.0);
            }
        };
        for stack in &explained.stacks {
            line(&stack.stack, stack.ns);
        }
        line("unexplained", explained.unexplained);
    }
    text
}

fn frame(name: &str) -> String {
    printable(name).replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_testing::sample_explained;

    fn source(name: &str) -> NamedRecord {
        NamedRecord::from_run(name.to_owned(), sample_explained::record())
    }

    /// Reads lines as flamegraph.pl does: all but the last word is the stack.
    fn read(text: &str) -> Vec<(Vec<&str>, u64)> {
        let line = |line| {
            let (stack, count): (&str, &str) = str::rsplit_once(line, ' ').unwrap();
            (stack.split(';').collect(), count.parse().unwrap())
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn folded_lines_sum_to_the_latency() {
        let source = source("run");
        let text = stacks(std::slice::from_ref(&source));
        let sum: u64 = read(&text).iter().map(|(_, count)| count).sum();
        assert_eq!(Nanos(sum), source.record.explained.unwrap().total);
        let first = ["interrupts-off", "stress-ng-vm", "do_syscall_64", "copy_page_range"];
        assert_eq!(read(&text)[0].0, first);
    }

    #[test]
    fn folded_records_are_outermost_frames() {
        let text = stacks(&[source("a;b"), source("after")]);
        assert!(read(&text).iter().all(|(stack, _)| ["a:b", "after"].contains(&stack[0])));
    }
}
