//! docs/results/pictures.md: each figure and table of the papers with the picture drawn from our
//! results.

use latlab_core::study::Study;
use latlab_core::study::picture::Picture;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The page with the pictures of all studies, by paper.
#[derive(Default)]
pub(super) struct PicturesPage {
    papers: BTreeMap<String, String>,
}

impl PicturesPage {
    /// Adds the pictures of a study that are in `folder`.
    pub(super) fn add(&mut self, name: &str, folder: &Path, study: &Study) {
        let is_there = |picture: &&Picture| folder.join(format!("{}.svg", picture.name)).exists();
        let mut pictures = study.pictures.iter().filter(is_there).peekable();
        if pictures.peek().is_none() {
            return;
        }
        let text = self.papers.entry(study.paper.clone()).or_default();
        let _ = write!(text, "\n### [{name}]({name}/table.md)\n");
        for picture in pictures {
            let source = match picture.source.as_str() {
                "" => String::new(),
                source => format!("{}:\n\n", capitalised(source)),
            };
            let (title, file) = (&picture.title, &picture.name);
            let _ = write!(text, "\n{source}![{title}]({name}/{file}.svg)\n");
        }
    }

    pub(super) fn text(&self) -> String {
        let mut page = "# Pictures of the papers\n\nFigures and tables of the papers, drawn from \
                        our results. Where the paper prints a value, bars show it as an outline \
                        and curves as a dashed line. `latlab study NAME --out DIR` draws all \
                        pictures of a study, also those whose samples are not kept here.\n"
            .to_owned();
        for (paper, text) in &self.papers {
            let _ = write!(page, "\n## {paper}\n{text}");
        }
        page
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}
