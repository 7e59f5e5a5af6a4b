//! Why it was late: the causes as bars, the worst wake-ups as time lines, the functions as a flame
//! graph, and the tables of all of them.

mod flame;
mod lines;
mod shares;

use super::drawing::{Drawing, GREY, WIDTH, figure, fitted, scaled};
use super::table::{number, of_each, words};
use crate::format::explained::{lateness, share, where_and_who};
use crate::format::picture::{COLOURS, Source};
use crate::format::{grouped, micro};
use latlab_core::record::explained::Explained;
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;

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
        let (title, about) = (format!("Why it was late{of}"), format!("{late}. {about}"));
        text += &drawn(&format!("causes{suffix}"), &title, &about, &drawing);
    }
    if !worst.is_empty() {
        let about = "From when the task should have run to when it ran. What is grey has no known \
                     cause.";
        let drawing = lines::draw(&worst, &palette);
        let title = format!("The worst wake-ups{of}");
        text += &drawn(&format!("moments{suffix}"), &title, about, &drawing);
    }
    if some {
        let about = "What each function was charged with: a frame is as wide as the time, and \
                     stands on the one that called it; below the functions is who, and below \
                     that the cause.";
        let drawing = flame::draw(explained, &palette);
        let title = format!("Where it was late{of}");
        text += &drawn(&format!("flame{suffix}"), &title, about, &drawing);
    }
    text
}

fn drawn(id: &str, title: &str, about: &str, drawing: &Drawing) -> String {
    figure(id, title, about, &drawing.svg(id, title))
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
            where_and_who(&cause.culprit, cause.function.as_deref()),
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
