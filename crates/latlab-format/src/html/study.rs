//! HTML page of a study: results next to the paper's, claims, pictures, explanation of the worst
//! latency, and how to reproduce it.

mod claims;
mod machines;
mod overview;
mod pictures;
mod reproduce;
mod worst;

use super::document::document;
use super::figure::Level;
use super::header::time_domain;
use super::{Scope, facts, numbers, scans, warnings};
use crate::picture::study::StudyPicture;
use crate::picture::{NamedRecord, charts};
use crate::study::{kernels, lengths};
use latlab_core::record::Record;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use maud::{Markup, html};

/// Everything that the page of a study shows.
pub struct StudyPage<'a> {
    /// Name of the study on the command line.
    pub name: &'a str,
    /// The study.
    pub study: &'a Study,
    /// Its figures and verdicts.
    pub findings: &'a Findings<'a>,
    /// By cell; none for a cell that could not be measured.
    pub records: &'a [Option<Vec<Record>>],
    /// The same records one by one, with their names.
    pub sources: &'a [NamedRecord],
    /// Its pictures, in order.
    pub pictures: &'a [StudyPicture],
    /// The record that explains the worst latency of the results, if there is one.
    pub why: Option<&'a NamedRecord>,
}

/// A part of the page.
struct Section {
    /// Suffix of the element's id.
    id: &'static str,
    title: &'static str,
    content: Markup,
}

/// Returns the page. A study without pictures of its own gets those of its records.
pub fn page(about: &StudyPage<'_>) -> String {
    let usual = if about.study.pictures.is_empty() { charts(about.sources) } else { Vec::new() };
    let scope = Scope { sources: about.sources, level: Level::Subsection };
    let section = |id, title, content| Section { id, title, content };
    let mut sections = vec![
        section("table", "Results", overview::table(about)),
        section("claims", "Claims of the paper", claims::list(about.findings)),
        section("differences", "Differences from the paper", paragraphs(&about.study.about)),
        section("pictures", "Pictures", pictures::all(about, &usual)),
        section("worst", "Worst latency explained", worst::section(about)),
        section("again", "Reproduce", reproduce::section(about)),
        section("machines", "Machines", machines::tables(about.sources)),
        section("records", "All records", appendix(scope)),
    ];
    sections.retain(|section| !section.content.0.is_empty());
    let body = html! {
        (header(about))
        (warnings::merged(about.sources, "cells"))
        (contents(&sections))
        @for section in &sections { (section.markup()) }
    };
    let title = format!("{} – latlab study", about.study.title);
    let charts = about.pictures.iter().map(|picture| &picture.chart).chain(&usual);
    document(&title, &body, &charts.collect::<Vec<_>>())
}

impl Section {
    fn markup(&self) -> Markup {
        let id = format!("part-{}", self.id);
        let title_id = format!("{id}-title");
        html! {
            section id=(id) aria-labelledby=(title_id) {
                h2 class="part" id=(title_id) { (self.title) }
                (self.content)
            }
        }
    }
}

fn header(about: &StudyPage<'_>) -> Markup {
    let study = about.study;
    html! {
        header {
            p class="kicker" { "latlab study · " (about.name) }
            h1 class="title" { (study.title) }
            p class="paper" { (study.paper) "; " (study.redoes) }
            (claims::summary(about.findings))
            p class="origin" {
                (kernels(about.records)) " " (lengths(about.records).unwrap_or_default())
            }
            (time_domain(about.sources))
        }
    }
}

fn contents(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @for section in sections {
                    li { a href={ "#part-" (section.id) } { (section.title) } }
                }
            }
        }
    }
}

/// A text whose paragraphs are separated by empty lines.
fn paragraphs(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n").filter(|text| !text.is_empty()) {
            p class="prose" { (paragraph) }
        }
    }
}

/// Everything else in the records, closed at first.
fn appendix(scope: Scope<'_>) -> Markup {
    let tables = html! {
        (numbers::tables(scope))
        (scans::tables(scope))
        (facts::parameters(scope))
    };
    html! {
        @if !tables.0.is_empty() {
            details class="appendix" {
                summary { "Latencies, conditions, worst samples, scans, parameters, loads" }
                (tables)
            }
        }
    }
}

#[cfg(test)]
mod tests;
