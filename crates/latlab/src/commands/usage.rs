//! Help, and the messages for command lines that clap refuses.

use crate::failure::{Failure, Result};
use crate::format;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Prints the short help.
pub(super) fn print_help(command: &mut Command) -> Result<()> {
    format::put(&command.render_help().to_string())
}

/// Prints help and version. Turns any other message of clap into a failure, in one sentence.
pub(super) fn print_clap(error: &clap::Error) -> Result<()> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return format::put(&error.render().to_string());
    }
    Err(Failure::Failed(sentence(error)))
}

/// The message of clap in one sentence, with a hint.
pub(super) fn sentence(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let sentence = rendered.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let sentence = match (error.kind(), context(error, ContextKind::InvalidArg)) {
        // clap lists the missing arguments on separate lines.
        (ErrorKind::MissingRequiredArgument, Some(missing)) => format!("{sentence} {missing}"),
        _ => sentence.to_owned(),
    };
    let near = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::ValidValue,
    ];
    let near = near.into_iter().find_map(|kind| context(error, kind));
    let hint = near.map_or_else(|| see_help(&rendered), |near| format!("did you mean {near}?"));
    format!("{sentence}: {hint}")
}

/// Names the help of the command whose usage clap has printed.
fn see_help(rendered: &str) -> String {
    let usage = rendered.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("latlab");
    let is_command = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let command: Vec<&str> = usage.split(' ').take_while(is_command).collect();
    format!("see {} --help", command.join(" "))
}

/// The context of this kind that clap adds to its message, if any.
fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(several) if !several.is_empty() => Some(several.join(" or ")),
        _ => None,
    }
}
