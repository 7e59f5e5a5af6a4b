//! The report of a study as one page: its table beside the paper's, what became of the claims, the
//! pictures, why the worst was late, and how to do it again.

mod claims;
mod machines;
mod overview;
mod worst;

use super::table::{escaped, number, words};
use super::{HINT, domain, facts, figure, framed, numbers, scans, warnings};
use crate::format::picture::study::{Numbers, Pictured};
use crate::format::picture::{Chart, Source, charts};
use crate::format::study::{kernels, lasting, lengths};
use latlab_core::record::Record;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use std::fmt::Write as _;

/// All that a page about a study is made of.
pub(crate) struct About<'a> {
    /// How `latlab study` is told which study it is.
    pub(crate) name: &'a str,
    pub(crate) study: &'a Study,
    pub(crate) findings: &'a Findings<'a>,
    /// By cell; none where it could not be measured.
    pub(crate) records: &'a [Option<Vec<Record>>],
    /// The same one by one, with their names.
    pub(crate) sources: &'a [Source],
    pub(crate) pictures: &'a [Pictured],
    /// The record that says why the worst of the table was late, if that was found out.
    pub(crate) why: Option<&'a Source>,
}

/// The whole page. A study that asks for no pictures has those of its records.
pub(crate) fn page(about: &About<'_>) -> String {
    let usual = if about.study.pictures.is_empty() { charts(about.sources) } else { Vec::new() };
    let parts = [
        ("table", "The table", overview::table(about)),
        ("claims", "The paper's claims", claims::list(about.findings)),
        ("differences", "What is not as in the paper", paragraphs(&about.study.about)),
        ("pictures", "Pictures", pictures(about, &usual)),
        ("worst", "Why the worst was late", worst::section(about)),
        ("again", "Do it again", again(about)),
        ("machines", "The machines", machines::tables(about.sources)),
        ("records", "Each record in numbers", appendix(about.sources)),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(_, _, text)| !text.is_empty()).collect();
    let links = parts
        .iter()
        .map(|(id, title, _)| format!("<li><a href=\"#part-{id}\">{}</a></li>", escaped(title)));
    let mut body = header(about);
    body += &warnings::once(about.sources);
    let _ =
        writeln!(body, "<nav aria-label=\"Contents\"><ul>{}</ul></nav>", links.collect::<String>());
    for (id, title, text) in &parts {
        // What stands in a part is one level below its heading. No text has tags of its own.
        let text = text.replace("<h2", "<h3").replace("</h2>", "</h3>");
        let _ = write!(
            body,
            "<section id=\"part-{id}\" aria-labelledby=\"part-{id}-title\">\n\
             <h2 class=\"part\" id=\"part-{id}-title\">{}</h2>\n{text}</section>\n",
            escaped(title)
        );
    }
    let title = format!("{} – latlab study", about.study.title);
    let charts = about.pictures.iter().map(|picture| &picture.chart).chain(&usual);
    framed(&title, &body, &charts.collect::<Vec<_>>())
}

fn header(about: &About<'_>) -> String {
    let study = about.study;
    format!(
        "<header>\n<p class=\"kicker\">latlab study · {}</p>\n<h1 class=\"title\">{}</h1>\n\
         <p class=\"paper\">{}; {}</p>\n{}<p class=\"origin\">{} {}</p>\n{}</header>\n",
        escaped(about.name),
        escaped(&study.title),
        escaped(&study.paper),
        escaped(&study.redoes),
        claims::tally(about.findings),
        escaped(&kernels(about.records)),
        escaped(&lengths(about.records).unwrap_or_default()),
        domain(about.sources),
    )
}

/// A text of several lines.
fn paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|text| !text.is_empty());
    paragraphs.map(|text| format!("<p class=\"prose\">{}</p>\n", escaped(text))).collect()
}

fn pictures(about: &About<'_>, usual: &[Chart]) -> String {
    let mut text = String::new();
    for picture in about.pictures {
        text += &figure(&picture.chart, &picture.source, &table(&picture.numbers));
    }
    for chart in usual {
        text += &figure(chart, "", "");
    }
    let drawn = |name: &String| about.pictures.iter().any(|picture| picture.name == *name);
    let missing = about.study.pictures.iter().filter(|picture| !drawn(&picture.name));
    let missing: Vec<String> = missing.map(|picture| escaped(&picture.title)).collect();
    if text.is_empty() && missing.is_empty() {
        return text;
    }
    if !missing.is_empty() {
        let _ = writeln!(
            text,
            "<p class=\"note\">Not drawn, as nothing of it was measured: {}.</p>",
            missing.join("; ")
        );
    }
    format!("{HINT}{text}")
}

/// The numbers of a picture, closed until somebody wants them.
fn table(numbers: &Numbers) -> String {
    let mut columns = vec![words(numbers.header.first().map_or("", String::as_str))];
    columns.extend(numbers.header.iter().skip(1).map(|heading| number(heading)));
    let rows = super::table::rows("The numbers of this picture", &columns, &numbers.rows);
    format!("<details><summary>The numbers of this picture</summary>\n{rows}</details>\n")
}

fn again(about: &About<'_>) -> String {
    let folder = about.name.strip_suffix(".toml").unwrap_or(about.name);
    let lasting = lasting(about.study);
    let explain = if about.why.is_some() { " --explain" } else { "" };
    let command = format!("latlab study {}{lasting}{explain} --out {folder}/", about.name);
    let command = escaped(&command);
    let tool = about.sources.first().map_or("latlab", |source| source.record.tool.as_str());
    let same = match domain(about.sources) {
        "" => "",
        _ if about.sources.iter().all(|source| source.record.plan.target.starts_with("lab:")) => {
            " The same program gives the same bytes, on every host."
        }
        _ => "",
    };
    let files = about.pictures.iter().map(|picture| format!("{}.svg", picture.name));
    let files: Vec<String> = files.collect();
    let files = match files.as_slice() {
        [] => String::new(),
        files => format!(" The pictures are {}.", escaped(&files.join(", "))),
    };
    format!(
        "<pre class=\"command\"><code>{command}</code></pre>\n\
         <p class=\"prose\">Measured with {}.{same} Beside this page lie the table as table.md and \
         table.csv, with times in nanoseconds, and the records of all cells in records/, which \
         latlab report and latlab compare read.{files}</p>\n",
        escaped(tool),
    )
}

/// Everything else that records hold, closed until somebody wants it.
fn appendix(sources: &[Source]) -> String {
    let text = numbers::tables(sources) + &scans::tables(sources) + &facts::asked(sources);
    if text.is_empty() {
        return text;
    }
    format!(
        "<details class=\"appendix\"><summary>Latencies, circumstances, worst samples, scans, plans, \
         loads</summary>\n{text}</details>\n"
    )
}

#[cfg(test)]
mod tests;
