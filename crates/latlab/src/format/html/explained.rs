//! Why it was late: the causes as bars, the worst wake-ups as time lines, the functions as a flame
//! graph, and the tables of all of them.

mod flame;
mod lines;
mod shares;

use super::table::{escaped, number, of_each, words};
use crate::format::explained::{lateness, share, where_and_who};
use crate::format::picture::{COLOURS, Source};
use crate::format::{grouped, micro, printable};
use latlab_core::record::explained::Explained;
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// As wide as the page, in its pixels.
const WIDTH: f64 = 1072.0;

/// What has no cause has no colour either.
const GREY: &str = "#9aa1ab";

/// The pictures of all records.
pub(super) fn pictures(sources: &[Source]) -> String {
    let several = sources.len() > 1;
    let each = sources.iter().enumerate().filter_map(|(n, source)| {
        let explained = source.record.explained.as_ref()?;
        let suffix = if n > 0 { format!("-{}", n + 1) } else { String::new() };
        let of = if several { format!(": {}", source.name) } else { String::new() };
        Some(of_record(&suffix, &of, explained, &source.record.worst))
    });
    each.collect()
}

fn of_record(suffix: &str, of: &str, explained: &Explained, worst: &[Sample]) -> String {
    let worst: Vec<&Sample> = worst.iter().filter(|sample| sample.unexplained.is_some()).collect();
    let palette = Palette::of(explained, &worst);
    let (late, some) = (lateness(explained, micro), explained.late > 0);
    let mut text = String::new();
    if some {
        let about = "How much of all late wake-ups each cause answers for; parts of a bar are \
                     those who are to blame. Pointing shows who.";
        let drawing = shares::draw(explained, &palette);
        text += &figure(
            "causes",
            suffix,
            &format!("Why it was late{of}"),
            &format!("{late}. {about}"),
            &drawing,
        );
    }
    if !worst.is_empty() {
        let about = "From when the task should have run to when it ran. What is grey has no known \
                     cause.";
        let drawing = lines::draw(&worst, &palette);
        text += &figure("moments", suffix, &format!("The worst wake-ups{of}"), about, &drawing);
    }
    if some {
        let about = "What each function was charged with: a frame is as wide as the time, and \
                     stands on the one that called it; below the functions is who, and below \
                     that the cause.";
        let drawing = flame::draw(explained, &palette);
        text += &figure("flame", suffix, &format!("Where it was late{of}"), about, &drawing);
    }
    text
}

fn figure(name: &str, suffix: &str, title: &str, about: &str, drawing: &Drawing) -> String {
    let (title, about) = (escaped(&printable(title)), escaped(&printable(about)));
    let (id, height) = (format!("{name}{suffix}"), drawing.height);
    format!(
        "<figure aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n\
         <figcaption>{about}</figcaption>\n\
         <svg class=\"drawing\" id=\"{id}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{title}\">\n{}</svg>\n</figure>\n",
        drawing.marks
    )
}

/// The tables of all records.
pub(super) fn tables(sources: &[Source]) -> String {
    let columns = [
        words("cause"),
        words("who"),
        number("wake-ups"),
        number("total"),
        number("share"),
        number("worst"),
    ];
    let causes = of_each(sources, "What made it late", &columns, |record| {
        record.explained.as_ref().map(rows).unwrap_or_default()
    });
    let columns = [words("program"), number("runs"), number("total")];
    let cost = of_each(sources, "What explaining cost", &columns, cost);
    let missing = of_each(sources, "What can't be told", &[words("why")], |record| {
        let missing = record.explained.iter().flat_map(|explained| &explained.missing);
        missing.map(|sentence| vec![sentence.clone()]).collect()
    });
    causes + &cost + &missing
}

fn rows(explained: &Explained) -> Vec<Vec<String>> {
    let causes = explained.causes.iter().map(|cause| {
        vec![
            cause.cause.clone(),
            where_and_who(&cause.who, cause.function.as_deref()),
            grouped(cause.count),
            micro(cause.total),
            share(cause.total, explained.total),
            micro(cause.worst),
        ]
    });
    let rest = vec![
        "unexplained".to_owned(),
        String::new(),
        String::new(),
        micro(explained.unexplained),
        share(explained.unexplained, explained.total),
        String::new(),
    ];
    causes.chain((explained.late > 0).then_some(rest)).collect()
}

fn cost(record: &Record) -> Vec<Vec<String>> {
    let Some(explained) = &record.explained else { return Vec::new() };
    let programs = explained.cost.iter();
    let programs =
        programs.map(|cost| vec![cost.program.clone(), grouped(cost.runs), micro(cost.ns)]);
    let what = "late wake-ups, samples or events that were not kept";
    let lost = vec![what.to_owned(), grouped(explained.lost), String::new()];
    programs.chain((explained.lost > 0).then_some(lost)).collect()
}

/// The colours of the causes, the same in all pictures of a record.
struct Palette<'a>(Vec<&'a str>);

impl<'a> Palette<'a> {
    /// The causes in the order of what they answer for.
    fn of(explained: &'a Explained, worst: &[&'a Sample]) -> Palette<'a> {
        let mut sums: Vec<(&str, Nanos)> = Vec::new();
        for share in &explained.causes {
            match sums.iter_mut().find(|(cause, _)| *cause == share.cause) {
                Some((_, sum)) => *sum = *sum + share.total,
                None => sums.push((&share.cause, share.total)),
            }
        }
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        let mut causes: Vec<&str> = sums.into_iter().map(|(cause, _)| cause).collect();
        for charge in worst.iter().flat_map(|sample| &sample.causes) {
            if !causes.contains(&charge.cause.as_str()) {
                causes.push(&charge.cause);
            }
        }
        Palette(causes)
    }

    fn colour(&self, cause: &str) -> &'static str {
        let place = self.0.iter().position(|known| *known == cause);
        place.map_or(GREY, |place| COLOURS[place % COLOURS.len()])
    }
}

/// Marks of an SVG, and how far down they reach.
#[derive(Default)]
struct Drawing {
    marks: String,
    height: f64,
}

impl Drawing {
    /// A filled rectangle that says what it is when it is pointed at.
    fn block(&mut self, place: [f64; 4], colour: &str, opacity: f64, title: &str) {
        let [x, y, width, height] = place;
        let title = escaped(&printable(title));
        let _ = writeln!(
            self.marks,
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" \
             fill=\"{colour}\" fill-opacity=\"{opacity}\"><title>{title}</title></rect>"
        );
    }

    /// A text that begins (or, with the class `n`, ends) here.
    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(&printable(text));
        let _ =
            writeln!(self.marks, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>");
    }
}

/// As much of a text as fits into so many pixels; nothing if that says nothing.
fn fitted(text: &str, pixels: f64) -> String {
    const LETTER: f64 = 6.7;
    const FEWEST: usize = 3;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of a page")]
    let room = (pixels.max(0.0) / LETTER) as usize;
    let letters = text.chars().count();
    if letters <= room {
        return text.to_owned();
    }
    if room < FEWEST {
        return String::new();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

/// How long a time is drawn where `whole` is so many pixels.
#[expect(clippy::cast_precision_loss, reason = "a pixel is more than a nanosecond in 2^52")]
fn scaled(part: Nanos, whole: Nanos, pixels: f64) -> f64 {
    pixels * part.0.min(whole.0) as f64 / whole.0.max(1) as f64
}
