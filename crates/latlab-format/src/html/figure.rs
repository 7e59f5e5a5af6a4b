//! Figures and headings of a page.

use crate::picture::Chart;
use crate::printable;
use maud::{Markup, html};

/// Level of the headings of sections and figures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level {
    /// On the page of a report, directly below its title.
    Section,
    /// Inside of a part of a study's page.
    Subsection,
}

/// A heading.
pub(super) fn heading(level: Level, id: Option<&str>, text: &str) -> Markup {
    match level {
        Level::Section => html! { h2 id=[id] { (text) } },
        Level::Subsection => html! { h3 id=[id] { (text) } },
    }
}

/// A figure with its title and caption. `id` must be unique on the page.
pub(super) fn figure(
    level: Level,
    id: &str,
    title: &str,
    caption: &str,
    content: &Markup,
) -> Markup {
    let title_id = format!("{id}-title");
    html! {
        figure aria-labelledby=(title_id) {
            (heading(level, Some(&title_id), &printable(title)))
            figcaption { (printable(caption)) }
            (content)
        }
    }
}

/// The place where the script draws a chart. `paper` is the figure of the paper that it reproduces,
/// if any; `below` follows the chart.
pub(super) fn chart(
    level: Level,
    chart: &Chart,
    title: &str,
    paper: &str,
    below: &Markup,
) -> Markup {
    let Chart { name, about, .. } = chart;
    let caption = if paper.is_empty() { about.clone() } else { format!("After {paper}. {about}") };
    let content = html! {
        div class="chart" id=(name) role="img" aria-label=(title) {
            "This chart needs JavaScript; the tables below do not."
        }
        (below)
    };
    figure(level, name, title, &caption, &content)
}

/// A hint on the use of the charts.
pub(super) fn hint() -> Markup {
    html! {
        p class="note hint" {
            "Charts: point for values, Ctrl+wheel to zoom, drag to move, click a name to hide its line."
        }
    }
}
