//! The pictures in a study's file: parsing, and checks of their contents.

use super::super::claim::Fault;
use super::super::figure::{FigureSource, StudyFigure};
use super::super::picture::{CategoryAxis, Picture, PictureKind};
use super::super::quantity::Quantity;
use super::super::{Cell, Study};
use super::shape::{PictureText, Text};
use super::{fault, word};
use crate::suggest;

/// Parses a picture of a study whose cells and figures are known.
pub(super) fn picture(text: &PictureText, study: &Study) -> Result<Picture, Fault> {
    word(&text.name)?;
    // Files of these names are in the same folder.
    if ["report", "table", "records"].contains(&text.name.get_ref().as_str()) {
        return Err(fault(&text.name, "this name is reserved for another file of a study"));
    }
    let name = text.kind.get_ref();
    let kind = PictureKind::named(name).ok_or_else(|| {
        let hint = suggest::hint(name, &PictureKind::ALL.map(|(name, _)| name));
        fault(&text.kind, &format!("unknown kind of picture '{name}': {hint}"))
    })?;
    only_allowed_keys(text, kind)?;
    let cells = cells(text, study)?;
    let figures = figures(text, kind, study)?;
    for (text, of) in text.figures.iter().flatten().zip(&figures) {
        measured(text, &study.figures[*of], &cells, study)?;
    }
    if kind == PictureKind::Pdlt && !cells.iter().any(|cell| scans(&study.cells[*cell])) {
        return Err(fault(&text.kind, "none of its cells has a scan"));
    }
    let over = if kind.has_axis() { Some(over(text, &cells, &figures, study)?) } else { None };
    Ok(Picture {
        name: text.name.get_ref().clone(),
        title: text.title.clone(),
        source: text.source.clone(),
        kind,
        figures,
        cells,
        over,
        log: is(text.log.as_ref()),
    })
}

fn is(said: Option<&toml::Spanned<bool>>) -> bool {
    said.is_some_and(|said| *said.get_ref())
}

/// Refuses keys that this kind of picture does not have.
fn only_allowed_keys(text: &PictureText, kind: PictureKind) -> Result<(), Fault> {
    let (over, bars) = (kind.has_axis(), kind == PictureKind::Bars);
    let at = |text: &Text| text.span().start;
    let given = [
        (
            "figures",
            text.figures.as_ref().and_then(|all| Some(at(all.first()?))),
            kind != PictureKind::Pdlt,
        ),
        ("along", text.along.as_ref().map(at), over),
        ("at", text.at.as_ref().map(|at| at.span().start), kind == PictureKind::Curves),
        ("relative_to", text.relative_to.as_ref().map(at), over),
        ("stacked", text.stacked.as_ref().map(|said| said.span().start), bars),
        ("log", text.log.as_ref().map(|said| said.span().start), kind != PictureKind::Pdlt),
    ];
    let wrong = given.iter().find_map(|(key, at, may)| at.filter(|_| !may).map(|at| (key, at)));
    if let Some((key, at)) = wrong {
        let why = format!("a picture of the kind '{}' has no '{key}'", text.kind.get_ref());
        return Err(Fault { at, why });
    }
    match &text.stacked {
        Some(stacked) if is(text.stacked.as_ref()) && is(text.log.as_ref()) => {
            let why = "stacked bars can't have a logarithmic axis".to_owned();
            Err(Fault { at: stacked.span().start, why })
        }
        _ => Ok(()),
    }
}

/// Returns the selected cells in the order of the study; all if none are selected.
fn cells(text: &PictureText, study: &Study) -> Result<Vec<usize>, Fault> {
    let all = 0..study.cells.len();
    let Some(asked) = &text.cells else { return Ok(all.collect()) };
    if asked.is_empty() {
        return Err(fault(&text.name, "it selects no cell: leave 'cells' out to show all"));
    }
    let fits = |asked: &Text, cell: usize| {
        let (asked, labels) = (asked.get_ref().split('.'), study.labels(cell));
        asked.clone().count() == labels.len()
            && asked.zip(labels).all(|(asked, label)| asked == "*" || asked == label)
    };
    if let Some(none) = asked.iter().find(|asked| !all.clone().any(|cell| fits(asked, cell))) {
        let names: Vec<&str> = study.cells.iter().map(|cell| cell.label.as_str()).collect();
        let hint = suggest::hint(none.get_ref(), &names);
        let why = format!("unknown cell '{}': {hint} (a * is any label)", none.get_ref());
        return Err(fault(none, &why));
    }
    Ok(all.filter(|cell| asked.iter().any(|asked| fits(asked, *cell))).collect())
}

/// Returns the selected figures, after checking that this kind of picture can show them together.
fn figures(text: &PictureText, kind: PictureKind, study: &Study) -> Result<Vec<usize>, Fault> {
    let asked = text.figures.as_deref().unwrap_or_default();
    if asked.is_empty() && kind != PictureKind::Pdlt {
        return Err(fault(&text.name, "it needs figures, such as figures = [\"worst\"]"));
    }
    let names: Vec<&str> = study.figures.iter().map(|figure| figure.name.as_str()).collect();
    let mut figures: Vec<usize> = Vec::new();
    for one in asked {
        let Some(place) = names.iter().position(|name| name == one.get_ref()) else {
            let hint = suggest::hint(one.get_ref(), &names);
            return Err(fault(one, &format!("unknown figure '{}': {hint}", one.get_ref())));
        };
        let figure = &study.figures[place];
        if kind.shows_samples() && !matches!(figure.of, FigureSource::Series { .. }) {
            return Err(fault(one, "this is a single value, without a distribution of samples"));
        }
        let first = figures.first().map_or(figure, |first: &usize| &study.figures[*first]);
        if first.kind() != figure.kind() && !kind.shows_samples() && text.relative_to.is_none() {
            let (this, other) = (Quantity::kind(figure.kind()), Quantity::kind(first.kind()));
            let why = format!("this is {this} and '{}' is {other}: draw two pictures", first.name);
            return Err(fault(one, &why));
        }
        figures.push(place);
    }
    Ok(figures)
}

/// Refuses a figure that no cell of the picture can have.
fn measured(
    text: &Text,
    figure: &StudyFigure,
    cells: &[usize],
    study: &Study,
) -> Result<(), Fault> {
    if cells.iter().any(|cell| study.can_have(&study.cells[*cell], figure)) {
        return Ok(());
    }
    Err(fault(text, &format!("none of its cells measures {}", figure.of.words())))
}

fn scans(cell: &Cell) -> bool {
    cell.terms.scans.as_ref().is_some_and(|scans| !scans.is_empty())
}

/// Returns the axis that bars and curves are drawn over.
fn over(
    text: &PictureText,
    cells: &[usize],
    figures: &[usize],
    study: &Study,
) -> Result<CategoryAxis, Fault> {
    let names: Vec<&str> = study.axes.iter().map(String::as_str).collect();
    let Some(along) = &text.along else {
        let why = format!("it needs an axis, such as along = \"{}\"", names.join("\" or \""));
        return Err(fault(&text.name, &why));
    };
    let Some(axis) = names.iter().position(|name| name == along.get_ref()) else {
        let hint = suggest::hint(along.get_ref(), &names);
        return Err(fault(along, &format!("unknown axis '{}': {hint}", along.get_ref())));
    };
    let mut labels: Vec<String> = Vec::new();
    for cell in cells {
        let label = study.labels(*cell)[axis];
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    if let Some(at) = &text.at {
        let (places, wanted) = (at.get_ref(), labels.len());
        let rising = places.windows(2).all(|pair| pair[0] < pair[1]);
        if places.len() != wanted || !rising || !places.iter().all(|place| place.is_finite()) {
            let why = format!(
                "at needs {wanted} ascending numbers, one for each of: {}",
                labels.join(", ")
            );
            return Err(Fault { at: at.span().start, why });
        }
    }
    let stacked = is(text.stacked.as_ref());
    if let (true, Some(said)) = (stacked && figures.len() < 2, &text.stacked) {
        let why = "stacking needs several figures".to_owned();
        return Err(Fault { at: said.span().start, why });
    }
    let at = text.at.as_ref().map(|at| at.get_ref().clone());
    Ok(CategoryAxis { axis, labels, at, relative_to: relative_to(text, study)?, stacked })
}

/// Returns the label of the cells whose values are the divisors, and the label's axis.
fn relative_to(text: &PictureText, study: &Study) -> Result<Option<(usize, String)>, Fault> {
    let Some(asked) = &text.relative_to else { return Ok(None) };
    let mut axes: Vec<usize> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for cell in 0..study.cells.len() {
        for (axis, label) in study.labels(cell).into_iter().enumerate() {
            if label == asked.get_ref() && !axes.contains(&axis) {
                axes.push(axis);
            }
            if !known.contains(&label) {
                known.push(label);
            }
        }
    }
    match axes.as_slice() {
        [only] => Ok(Some((*only, asked.get_ref().clone()))),
        [] => {
            let hint = suggest::hint(asked.get_ref(), &known);
            Err(fault(asked, &format!("unknown label '{}': {hint}", asked.get_ref())))
        }
        _ => Err(fault(asked, "several axes have this label: it is ambiguous")),
    }
}

#[cfg(test)]
mod tests;
