//! How to reproduce a study, and the files in the folder of its page.

use super::StudyPage;
use crate::study::options;
use latlab_core::machine::TimeDomain;
use maud::{Markup, html};

/// The command that measures the study again, and the files in the folder of the page.
pub(super) fn section(about: &StudyPage<'_>) -> Markup {
    let tool = about.sources.first().map_or("latlab", |source| source.record.tool.as_str());
    let files: Vec<String> =
        about.pictures.iter().map(|picture| format!("{}.svg", picture.name)).collect();
    html! {
        pre class="command" { code { (command(about)) } }
        p class="prose" {
            "Measured with " (tool) "."
            @if is_repeatable(about) { " The same program produces the same bytes on every host." }
            " Files in the folder of this page: the table as table.md and table.csv, with times in \
             nanoseconds"
            @if !about.findings.claims.is_empty() { "; the claims as claims.csv" }
            "; the records of all cells in records/, for latlab report and latlab \
             compare"
            @if !files.is_empty() { "; the pictures as " (files.join(", ")) }
            "."
        }
    }
}

fn command(about: &StudyPage<'_>) -> String {
    let folder = about.name.strip_suffix(".toml").unwrap_or(about.name);
    let options = options(about.study);
    let explain = if about.why.is_some() { " --explain" } else { "" };
    format!("latlab study {}{options}{explain} --out {folder}/", about.name)
}

/// Whether all cells were measured in the laboratory, and not in the time of a real machine.
fn is_repeatable(about: &StudyPage<'_>) -> bool {
    let domain = about.sources.first().map(|source| source.record.machine.time_domain);
    let in_lab = |target: &str| target.starts_with("lab:");
    domain.is_some_and(|domain| domain != TimeDomain::Silicon)
        && about.sources.iter().all(|source| in_lab(&source.record.plan.target))
}
