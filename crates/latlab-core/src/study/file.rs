//! A study's file: parsing of the TOML, and checks of its contents.

mod pictures;
mod shape;

use self::shape::{Choice, ClaimText, FigureText, File, Full, Text};
use super::bound::Bound;
use super::claim::{Claim, Fault, NamedValue};
use super::figure::{FigureSource, Statistic, StudyFigure};
use super::{Cell, Lengths, PaperClaim, SpannedText, Study, Terms, pieces};
use crate::plan::Length;
use crate::suggest;
use crate::time::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// Maximum number of characters of a title: it must fit a terminal line after the study's name.
const WIDEST: usize = 72;

/// Maximum number of cells.
const MOST_CELLS: usize = 10_000;

/// Parses a study.
pub(super) fn study(text: &str) -> Result<Study, Fault> {
    let file: File = toml::from_str(text).map_err(|e| Fault {
        at: e.span().map_or(0, |span| span.start),
        why: e.message().trim().replace('\n', " "),
    })?;
    let axes = file.axis.iter().map(|axis| axis.name.get_ref().clone()).collect();
    let cells = cells(&file)?;
    let figures = file.figure.iter().map(figure).collect::<Result<Vec<_>, _>>()?;
    unique(&file.figure.iter().map(|figure| &figure.name).collect::<Vec<_>>(), "figure")?;
    let limit = file.limit.as_ref().map(time).transpose()?;
    if let (Some(Nanos(0)), Some(text)) = (limit, &file.limit) {
        return Err(fault(text, "the limit must be more than 0"));
    }
    if file.title.get_ref().chars().count() > WIDEST {
        return Err(fault(&file.title, &format!("a title has at most {WIDEST} characters")));
    }
    let mut study = Study {
        title: file.title.into_inner(),
        paper: file.paper,
        redoes: file.redoes,
        about: file.about.trim().to_owned(),
        limit,
        lengths: Lengths::Usual,
        moved_to: None,
        axes,
        cells,
        figures,
        published: BTreeMap::new(),
        source: file.published_in,
        claims: Vec::new(),
        pictures: Vec::new(),
    };
    study.published = published(file.published, &study)?;
    let results = study.results();
    let claims = file.claim.into_iter().map(|one| paper_claim(one, text, &results));
    study.claims = claims.collect::<Result<_, _>>()?;
    unique(&file.picture.iter().map(|picture| &picture.name).collect::<Vec<_>>(), "picture")?;
    let pictures = file.picture.iter().map(|picture| pictures::picture(picture, &study));
    study.pictures = pictures.collect::<Result<Vec<_>, _>>()?;
    Ok(study)
}

/// Parses a claim, and checks that all results in it exist.
fn paper_claim(one: ClaimText, file: &str, results: &[NamedValue]) -> Result<PaperClaim, Fault> {
    let begin = one.claim.span().start + quotes(file, one.claim.span().start);
    let shifted = |fault: Fault| Fault { at: begin + fault.at, ..fault };
    let claim = Claim::read(one.claim.get_ref()).map_err(shifted)?;
    claim.check(results).map_err(shifted)?;
    let bound = bound(&one, file)?;
    let gone = one.gone.is_some();
    let why = match one.gone {
        Some(gone) if !one.why.is_empty() => {
            let why = "a claim has either 'why' or 'gone', not both".to_owned();
            return Err(Fault { at: gone.span().start, why });
        }
        Some(gone) => gone.into_inner(),
        None => one.why,
    };
    Ok(PaperClaim {
        says: one.says,
        quote: one.quote,
        source: one.source,
        claim,
        text: one.claim.into_inner(),
        bound,
        changes: one.changed,
        why: why.trim().to_owned(),
        gone,
    })
}

/// Parses the origin of a claim's bound, without which the claim is refused.
fn bound(one: &ClaimText, file: &str) -> Result<Bound, Fault> {
    let Some(text) = &one.bound else {
        let why = "this claim has no bound: write where its limits come from, such as bound = \
                   \"paper: table 1\"";
        return Err(fault(&one.claim, why));
    };
    let at = text.span().start + quotes(file, text.span().start);
    Bound::read(text.get_ref()).map_err(|fault| Fault { at, ..fault })
}

/// Returns the length of the quotation mark that opens the string at this byte offset.
fn quotes(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    if rest.starts_with("\"\"\"") || rest.starts_with("'''") { 3 } else { 1 }
}

/// Returns all combinations of choices; the last axis varies fastest.
fn cells(file: &File) -> Result<Vec<Cell>, Fault> {
    unique(&file.axis.iter().map(|axis| &axis.name).collect::<Vec<_>>(), "axis")?;
    if let Some(label) = &file.plan.label {
        return Err(fault(label, "the plan has no label: only choices on an axis have one"));
    }
    let mut cells = vec![Cell { label: String::new(), at: 0, terms: terms(&file.plan)? }];
    for axis in &file.axis {
        let name = &axis.name;
        let labels = axis.each.iter().map(|choice| {
            let missing =
                || fault(name, "each choice on an axis needs a label, and one here has none");
            choice.label.as_ref().ok_or_else(missing)
        });
        let labels = labels.collect::<Result<Vec<_>, _>>()?;
        if labels.is_empty() {
            return Err(fault(name, "an axis needs at least one choice"));
        }
        if labels.len() * cells.len() > MOST_CELLS {
            return Err(fault(
                name,
                &format!("with this axis there are more than {MOST_CELLS} cells"),
            ));
        }
        labels.iter().try_for_each(|label| word(label))?;
        unique(&labels, "label")?;
        let choices = axis.each.iter().map(terms).collect::<Result<Vec<_>, _>>()?;
        cells = cells.iter().flat_map(|cell| with_each(cell, &labels, &choices)).collect();
    }
    match cells.iter().find(|cell| cell.label.is_empty()) {
        Some(_) => Err(Fault { at: 0, why: "there is no [[axis]], and thus no cell".to_owned() }),
        None => Ok(cells),
    }
}

fn with_each(cell: &Cell, labels: &[&Text], choices: &[Terms]) -> Vec<Cell> {
    let joined = |label: &str| match cell.label.as_str() {
        "" => label.to_owned(),
        before => format!("{before}.{label}"),
    };
    let with = |(label, choice): (&&Text, &Terms)| Cell {
        label: joined(label.get_ref()),
        at: label.span().start,
        terms: cell.terms.overridden_by(choice),
    };
    labels.iter().zip(choices).map(with).collect()
}

/// The length of the paper's measurement.
fn full(text: &Spanned<Full>) -> Result<Length, Fault> {
    let at = text.span().start;
    match text.get_ref() {
        Full::Count(0) => Err(Fault { at, why: "full must be at least 1".to_owned() }),
        Full::Count(count) => Ok(Length::Count(*count)),
        Full::Time(time) => {
            let time = time.parse::<Nanos>().map_err(|e| Fault { at, why: e.to_string() })?;
            pieces::check_length(time).map_err(|why| Fault { at, why })?;
            Ok(Length::For(time))
        }
    }
}

fn terms(choice: &Choice) -> Result<Terms, Fault> {
    let length = match (&choice.time, &choice.count) {
        (Some(time), Some(_)) => {
            return Err(fault(time, "give either 'for' or 'count', not both"));
        }
        (Some(text), None) => {
            let time = time(text)?;
            pieces::check_length(time).map_err(|why| fault(text, &why))?;
            Some(Length::For(time))
        }
        (None, Some(count)) if *count.get_ref() == 0 => {
            return Err(Fault {
                at: count.span().start,
                why: "count must be at least 1".to_owned(),
            });
        }
        (None, Some(count)) => Some(Length::Count(*count.get_ref())),
        (None, None) => None,
    };
    if let Some(repeat) =
        choice.repeat.as_ref().filter(|repeat| !(1..=100).contains(repeat.get_ref()))
    {
        return Err(Fault { at: repeat.span().start, why: "repeat must be 1 to 100".to_owned() });
    }
    let several =
        |all: &Option<Vec<Text>>| all.as_ref().map(|all| all.iter().map(words).collect::<Vec<_>>());
    let adapt = choice.adapt.as_ref().map(|adapt| {
        let text = adapt.get_ref().0.clone()?;
        Some(SpannedText { text, at: adapt.span().start })
    });
    Ok(Terms {
        on: choice.on.as_ref().map(words),
        probes: several(&choice.probes),
        scans: several(&choice.scans),
        loads: several(&choice.loads),
        length,
        full: choice.full.as_ref().map(full).transpose()?,
        warm_up: choice.warm_up.as_ref().map(time).transpose()?,
        settings: several(&choice.set),
        adapt,
        seed: choice.seed,
        repeat: choice.repeat.as_ref().map(|repeat| *repeat.get_ref()),
    })
}

fn figure(figure: &FigureText) -> Result<StudyFigure, Fault> {
    word(&figure.name)?;
    let name = figure.name.get_ref().clone();
    let take = match &figure.take {
        Some(take) => Statistic::named(take.get_ref()).ok_or_else(|| {
            let hint = suggest::hint(take.get_ref(), &Statistic::ALL.map(|(name, _)| name));
            fault(take, &format!("unknown statistic '{}': {hint}", take.get_ref()))
        })?,
        None if figure.load.is_some() => Statistic::Done,
        None if figure.figure.is_some() => Statistic::Mean,
        None => Statistic::Max,
    };
    let (text, of) = match (&figure.probe, &figure.load, &figure.figure) {
        (Some(probe), None, None) => (
            probe,
            FigureSource::Series { probe: probe.get_ref().clone(), span: figure.span.clone() },
        ),
        (Some(probe), None, Some(figure)) => (
            probe,
            FigureSource::Value { probe: probe.get_ref().clone(), name: figure.get_ref().clone() },
        ),
        (None, Some(load), None) => (load, FigureSource::Work { load: load.get_ref().clone() }),
        _ => {
            let why = "a figure needs either a probe (and optionally a figure of it) or a load";
            return Err(fault(&figure.name, why));
        }
    };
    if !of.has(take) {
        let text = figure.take.as_ref().unwrap_or(&figure.name);
        let all = Statistic::ALL.iter();
        let names: Vec<&str> =
            all.filter(|(_, take)| of.has(*take)).map(|(name, _)| *name).collect();
        return Err(fault(text, &format!("take must be one of: {}", names.join(", "))));
    }
    let title = figure.title.clone().unwrap_or_else(|| name.clone());
    Ok(StudyFigure { name, title, at: text.span().start, of, take })
}

fn published(
    all: BTreeMap<Text, BTreeMap<Text, String>>,
    study: &Study,
) -> Result<BTreeMap<(String, String), String>, Fault> {
    let cells: Vec<&str> = study.cells.iter().map(|cell| cell.label.as_str()).collect();
    let figures: Vec<&str> = study.figures.iter().map(|figure| figure.name.as_str()).collect();
    let known = |text: &Text, names: &[&str], what: &str| {
        if names.contains(&text.get_ref().as_str()) {
            return Ok(());
        }
        let hint = suggest::hint(text.get_ref(), names);
        Err(fault(text, &format!("unknown {what} '{}': {hint}", text.get_ref())))
    };
    let mut published = BTreeMap::new();
    for (cell, values) in all {
        known(&cell, &cells, "cell")?;
        for (figure, value) in values {
            known(&figure, &figures, "figure")?;
            published.insert((cell.get_ref().clone(), figure.into_inner()), value);
        }
    }
    Ok(published)
}

fn time(text: &Text) -> Result<Nanos, Fault> {
    text.get_ref().parse().map_err(|e| fault(text, &format!("{e}")))
}

fn words(text: &Text) -> SpannedText {
    SpannedText { text: text.get_ref().clone(), at: text.span().start }
}

/// Refuses names that claims could not refer to.
fn word(text: &Text) -> Result<(), Fault> {
    let word = text.get_ref();
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let good = word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.bytes().all(inner)
        && !word.ends_with('-')
        && word != "and";
    let why = "a name begins with a lower-case letter, followed by letters, digits, '_' and '-'";
    if good { Ok(()) } else { Err(fault(text, why)) }
}

fn unique(all: &[&Text], what: &str) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for text in all.iter().copied() {
        if !seen.insert(text.get_ref().as_str()) {
            return Err(fault(text, &format!("the {what} '{}' is defined twice", text.get_ref())));
        }
    }
    Ok(())
}

fn fault(text: &Text, why: &str) -> Fault {
    Fault { at: text.span().start, why: why.to_owned() }
}
