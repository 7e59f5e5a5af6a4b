//! `latlab complete`: completes a command line. The scripts of `latlab generate` call it for shells.

mod values;

pub(super) use values::{
    COMMAND, builds, cached, calls, listed, loads, mechanisms, packages, policies, probes,
    settings, studies, targets,
};

use clap::Command;
use clap_complete::engine::{self, CompletionCandidate};
use latlab_format as format;
use latlab_part::failure::Result;
use std::ffi::OsString;
use std::fmt::Write as _;

/// Complete a command line; called by the completion scripts of shells
#[derive(Debug, clap::Args)]
pub(super) struct Complete {
    /// The words up to the cursor, the last of which is completed
    #[arg(last = true, value_name = "WORD")]
    words: Vec<OsString>,
}

impl Complete {
    /// Prints a line for each candidate: the word and, unless it is the name of a file, a tab and a
    /// description.
    pub(super) fn run(&self, command: &Command) -> Result<()> {
        format::put(&candidates(command, &self.words).iter().map(line).collect::<String>())
    }
}

/// The candidates for the last of `words`. A command line that is not understood has none.
fn candidates(command: &Command, words: &[OsString]) -> Vec<CompletionCandidate> {
    let Some((_, before)) = words.split_last() else { return Vec::new() };
    let is_ab = before.get(1).is_some_and(|word| word == "ab");
    let side = before.iter().rposition(|word| word == "--").filter(|_| is_ab);
    let (mut command, words) = match side {
        // Each side of `latlab ab` is a run command.
        Some(side) => (
            only(command, |one| one.get_name() == "run"),
            [&words[..1], &words[side + 1..]].concat(),
        ),
        None => (only(command, |one| !one.is_hide_set()), words.to_vec()),
    };
    let (last, folder) = (words.len() - 1, std::env::current_dir().ok());
    engine::complete(&mut command, words, last, folder.as_deref()).unwrap_or_default()
}

/// The command line with some of the subcommands. clap would offer hidden ones, where no other fits.
fn only(command: &Command, fits: impl Fn(&&Command) -> bool) -> Command {
    let kept = command.get_subcommands().filter(fits).cloned();
    Command::new("latlab").version("").disable_help_subcommand(true).subcommands(kept)
}

fn line(candidate: &CompletionCandidate) -> String {
    let mut line = candidate.get_value().to_string_lossy().into_owned();
    if let Some(help) = candidate.get_help() {
        let _ = write!(line, "\t{}", help.to_string().lines().next().unwrap_or_default());
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::command_line;

    /// The words that complete the last one of `line`.
    fn completed(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let found = candidates(&command_line(), &words);
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn commands_are_completed_without_internal_ones() {
        assert!(completed("latlab ").contains(&"run".to_owned()));
        for internal in ["agent", "complete", "load-worker", "probe-worker", "scan-worker"] {
            assert!(!completed("latlab ").contains(&internal.to_owned()), "{internal}");
            assert_eq!(completed(&format!("latlab {internal}")), [""; 0]);
        }
    }

    #[test]
    fn parts_are_completed_with_keys_and_values() {
        assert_eq!(completed("latlab run cyc"), ["cyclic"]);
        assert_eq!(completed("latlab run --load hackbench:gr"), ["hackbench:groups="]);
        assert_eq!(completed("latlab run cyclic:pol"), ["cyclic:policy="]);
        assert_eq!(
            completed("latlab run cyclic:interval=1ms,policy=r"),
            ["cyclic:interval=1ms,policy=rr"]
        );
        assert_eq!(completed("latlab run cyclic:policy=rr,pol"), [""; 0]);
        assert_eq!(completed("latlab scan popu"), ["populate"]);
        assert_eq!(completed("latlab explain --load=hackb"), ["--load=hackbench"]);
        assert_eq!(completed("latlab run nothing:x"), [""; 0]);
    }

    #[test]
    fn names_of_each_kind_are_completed() {
        assert_eq!(completed("latlab run --on la"), ["lab:"]);
        let profiles = completed("latlab run --on lab:pree");
        assert!(profiles.contains(&"lab:preemptible".to_owned()), "{profiles:?}");
        assert_eq!(completed("latlab exec --on vm:rt-la"), ["vm:rt-lazy"]);
        assert_eq!(completed("latlab run --set timer"), ["timer_migration="]);
        assert_eq!(completed("latlab run --policy de"), ["deadline"]);
        assert_eq!(completed("latlab study qui"), ["quick"]);
        assert_eq!(completed("latlab list non-pre"), ["non-preemptible"]);
        assert_eq!(completed("latlab adapt --mechanisms mode,sup"), ["mode,suppress"]);
        assert_eq!(completed("latlab run --adapt=sup"), ["--adapt=suppress"]);
        assert_eq!(completed("latlab kernel build lab"), ["lab-full"]);
        assert_eq!(completed("latlab generate fi"), ["fish"]);
    }

    #[test]
    fn sides_of_ab_are_completed_as_run_commands() {
        assert_eq!(completed("latlab ab -n 10 -- r"), ["run"]);
        assert_eq!(completed("latlab ab -- run cyclic -- run --load hackb"), ["hackbench"]);
    }
}
