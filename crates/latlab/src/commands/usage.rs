//! What is said to a command line that asks for nothing: the help, or what is wrong with it.

use crate::failure::{Failure, Result};
use crate::format;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Prints the help for who has typed nothing yet.
pub(super) fn print_help(command: &mut Command) -> Result<()> {
    format::put(&command.render_help().to_string())
}

/// Help and version are results; anything else clap says is a failure, in one sentence.
pub(super) fn print_clap(error: &clap::Error) -> Result<()> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return format::put(&error.render().to_string());
    }
    let rendered = error.render().to_string();
    let sentence = rendered.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let sentence = match (error.kind(), words(error, ContextKind::InvalidArg)) {
        // clap has them on lines of their own.
        (ErrorKind::MissingRequiredArgument, Some(missing)) => format!("{sentence} {missing}"),
        _ => sentence.to_owned(),
    };
    let near = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::ValidValue,
    ];
    let near = near.into_iter().find_map(|kind| words(error, kind));
    let hint = near.map_or_else(|| see(&rendered), |near| format!("did you mean {near}?"));
    Err(Failure::Failed(format!("{sentence}: {hint}")))
}

/// Where to read on: the help of the command whose usage clap has shown.
fn see(rendered: &str) -> String {
    let usage = rendered.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("latlab");
    let is_command = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let command: Vec<&str> = usage.split(' ').take_while(is_command).collect();
    format!("see {} --help", command.join(" "))
}

/// What clap knows beside its sentence; none where it knows nothing of this kind.
fn words(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(several) if !several.is_empty() => Some(several.join(" or ")),
        _ => None,
    }
}
