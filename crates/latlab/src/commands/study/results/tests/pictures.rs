//! docs/results/pictures.md: each figure and table of the papers with the picture drawn from our
//! results, the values that the paper prints beside the measured ones, and the verdicts.

use latlab_core::study::Study;
use latlab_core::study::findings::{CellRow, Findings};
use latlab_core::study::picture::Picture;
use latlab_format::study::shown;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The page with the pictures of all studies, by paper.
#[derive(Default)]
pub(super) struct PicturesPage {
    papers: BTreeMap<String, String>,
}

impl PicturesPage {
    /// Adds the pictures of a study whose results are in `folder`.
    pub(super) fn add(
        &mut self,
        name: &str,
        folder: &Path,
        study: &Study,
        findings: &Findings<'_>,
    ) {
        let text = self.papers.entry(study.paper.clone()).or_default();
        for picture in &study.pictures {
            let title = match picture.source.as_str() {
                "" => picture.title.clone(),
                source => capitalised(&format!("{source}: {}", picture.title)),
            };
            let _ = write!(text, "\n### {title}\n\n");
            *text += &drawing(name, folder, picture);
            *text += &values(study, findings, picture);
            *text += &verdicts(findings, picture);
            let _ = write!(text, "\nAll values, bounds and reasons: [{name}]({name}/table.md).\n");
        }
    }

    pub(super) fn text(&self) -> String {
        let mut page = "# Pictures of the papers\n\nEach figure and table of the papers that a \
                        study draws, from our results. Where the paper prints a value, bars \
                        show it as an outline and curves as a dashed line, and the table below \
                        has it beside ours.\n"
            .to_owned();
        for (paper, text) in &self.papers {
            let _ = write!(page, "\n## {paper}\n{text}");
        }
        page
    }
}

/// The picture; where it is not in the folder, how to draw it.
fn drawing(name: &str, folder: &Path, picture: &Picture) -> String {
    let file = format!("{}.svg", picture.name);
    if folder.join(&file).exists() {
        return format!("![{}]({name}/{file})\n", picture.title);
    }
    format!(
        "The samples behind this picture are not kept here; `latlab study {name} --out DIR` \
         measures and draws it.\n"
    )
}

/// A table of the values that the paper prints, beside the measured ones.
fn values(study: &Study, findings: &Findings<'_>, picture: &Picture) -> String {
    let rows: Vec<&CellRow<'_>> = picture.cells.iter().map(|cell| &findings.rows[*cell]).collect();
    let mut text = String::new();
    for figure in &picture.figures {
        for row in &rows {
            let (measured, Some(published)) = row.values[*figure] else { continue };
            let title = &study.figures[*figure].title;
            let measured = measured.map_or_else(|| "not measured".to_owned(), shown);
            let _ = writeln!(text, "| {} | {title} | {published} | {measured} |", row.label);
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("\n| cell | value | published | measured |\n| --- | --- | --- | --- |\n{text}")
}

/// The claims about the figure or table of the paper, with their verdicts.
fn verdicts(findings: &Findings<'_>, picture: &Picture) -> String {
    let drawn = places(&picture.source);
    let is_drawn = |source: &str| places(source).iter().any(|place| drawn.contains(place));
    let claims = findings.claims.iter().filter(|(claim, _)| is_drawn(&claim.source));
    let lines = claims.map(|(claim, judgement)| {
        format!("- {}: **{}**\n", capitalised(&claim.says), judgement.word())
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The figures and tables that a source names: "figures 3 and 5 to 7" are figures 3, 5, 6 and 7.
fn places(source: &str) -> Vec<(&'static str, String)> {
    let mut places: Vec<(&str, String)> = Vec::new();
    let (mut kind, mut from) = (None, None::<u32>);
    for word in source.split([' ', ',', ';', '(', ')']).filter(|word| !word.is_empty()) {
        match (word, kind) {
            ("figure" | "figures", _) => kind = Some("figure"),
            ("table" | "tables", _) => kind = Some("table"),
            ("and", _) => {}
            ("to", Some(_)) => from = places.last().and_then(|(_, last)| last.parse().ok()),
            (number, Some(kind)) if number.chars().all(|c| c.is_ascii_digit() || c == 'I') => {
                let between = from.take().zip(number.parse::<u32>().ok());
                let between = between.into_iter().flat_map(|(from, to)| from + 1..to);
                places.extend(between.map(|number| (kind, number.to_string())));
                places.push((kind, number.to_owned()));
            }
            _ => kind = None,
        }
    }
    places
}

#[test]
fn source_names_its_figures_and_tables() {
    let said = |source: &str| -> String {
        places(source).iter().map(|(kind, number)| format!("{kind} {number}. ")).collect()
    };
    assert_eq!(
        said("section 2.7, figures 3 and 5 to 7"),
        "figure 3. figure 5. figure 6. figure 7. "
    );
    assert_eq!(said("section 4, figure 8(b) and table I"), "figure 8. table I. ");
    assert_eq!(said("section 3"), "");
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}
