//! Pictures of a study's page, each with its numbers.

use super::StudyPage;
use crate::html::figure::{Level, chart, hint};
use crate::html::table::{number, table, words};
use crate::picture::Chart;
use crate::picture::study::{NumberTable, StudyPicture};
use crate::{capital, printable};
use maud::{Markup, html};

/// The pictures of the study, then the usual ones of its records; nothing if there are none.
pub(super) fn all(about: &StudyPage<'_>, usual: &[Chart]) -> Markup {
    let missing = missing(about);
    if about.pictures.is_empty() && usual.is_empty() && missing.is_empty() {
        return Markup::default();
    }
    html! {
        (hint())
        @for picture in about.pictures {
            @let title = title(about, picture);
            (chart(Level::Subsection, &picture.chart, &title, &picture.source, &numbers(&picture.numbers)))
        }
        @for one in usual { (chart(Level::Subsection, one, &one.title, "", &Markup::default())) }
        @if !missing.is_empty() {
            p class="note" { "Not drawn, as there are no measurements: " (missing.join("; ")) "." }
        }
    }
}

/// The title of a picture. The study's title is on the page already: a picture with the same title
/// is named after the figure that it reproduces.
fn title(about: &StudyPage<'_>, picture: &StudyPicture) -> String {
    if picture.chart.title != printable(&about.study.title) || picture.source.is_empty() {
        return picture.chart.title.clone();
    }
    printable(&capital(&picture.source))
}

/// Titles of the pictures that could not be drawn.
fn missing<'a>(about: &StudyPage<'a>) -> Vec<&'a str> {
    let drawn = |name: &String| about.pictures.iter().any(|picture| picture.name == *name);
    let missing = about.study.pictures.iter().filter(|picture| !drawn(&picture.name));
    missing.map(|picture| picture.title.as_str()).collect()
}

/// The numbers of a picture, closed at first.
fn numbers(numbers: &NumberTable) -> Markup {
    const TITLE: &str = "Numbers of this picture";
    let mut columns = vec![words(numbers.header.first().map_or("", String::as_str))];
    columns.extend(numbers.header.iter().skip(1).map(|heading| number(heading)));
    html! {
        details {
            summary { (TITLE) }
            (table(TITLE, &columns, &numbers.rows))
        }
    }
}
