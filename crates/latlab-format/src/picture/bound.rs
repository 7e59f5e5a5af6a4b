//! Bounds beside measured maxima: a group of columns for each target, one for each load.

use super::axis::{at_least_one, decade_above, decade_below, real};
use super::{Axis, Block, COLOURS, Chart, Columns, Look, Marks, Step, Unit};
use latlab_core::bound::Row;
use latlab_core::time::Nanos;

/// Share of the space between two targets that columns take.
const WIDTH: f64 = 0.8;

/// Returns the chart of all bounds; there is at least one.
pub fn chart(rows: &[Row]) -> Chart {
    let targets = distinct(rows.iter().map(|row| row.target.as_str()));
    let loads = distinct(rows.iter().map(|row| row.load.as_str()));
    let y = latencies(rows);
    let mut columns = Vec::new();
    for (nth, load) in loads.iter().enumerate() {
        let colour = COLOURS[nth % COLOURS.len()];
        let of_load: Vec<&Row> = rows.iter().filter(|row| row.load == *load).collect();
        let block = |row: &Row, value: Nanos| {
            let place = targets.iter().position(|target| *target == row.target)?;
            let x = slot(place, nth, loads.len());
            Some(Block { x, y: (y.min, at_least_one(value)) })
        };
        let maxima = of_load.iter().filter_map(|row| block(row, row.maximum)).collect();
        let bounds = of_load.iter().filter_map(|row| block(row, row.bound.ns)).collect();
        let name = |what: &str| format!("{load} · {what}");
        columns.push(Columns { name: name("measured"), colour, look: Look::Full, blocks: maxima });
        columns.push(Columns { name: name("bound"), colour, look: Look::Hollow, blocks: bounds });
    }
    let named = (0u64..).map(real).zip(targets.iter().map(|target| short(target))).collect();
    let max = real(targets.len() as u64) - 0.5;
    let label = "kernel".to_owned();
    Chart {
        name: "bound".to_owned(),
        title: "Bound and measured maximum".to_owned(),
        about: "Filled: the longest latency measured; outlined: its bound.".to_owned(),
        x: Axis { label, unit: Unit::Number, log: false, min: -0.5, max, named },
        y,
        step: Step::None,
        lines: Vec::new(),
        marks: Marks { columns, ..Marks::default() },
    }
}

/// The texts, each once, in the order in which they come first.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

fn latencies(rows: &[Row]) -> Axis {
    let all = || rows.iter().flat_map(|row| [row.maximum, row.bound.ns]).map(at_least_one);
    let (min, max) = (all().fold(f64::MAX, f64::min), all().fold(1.0, f64::max));
    let (min, max) = (decade_below(min), decade_above(max));
    let label = "wake-up latency".to_owned();
    Axis { label, unit: Unit::Nanos, log: true, min, max, named: Vec::new() }
}

/// Left and right of column `nth` of `many` at a target.
fn slot(place: usize, nth: usize, many: usize) -> (f64, f64) {
    let (place, nth, many) = (real(place as u64), real(nth as u64), real(many as u64));
    let begin = place - WIDTH / 2.0 + WIDTH * nth / many;
    (begin, begin + WIDTH / many)
}

fn short(target: &str) -> String {
    target.strip_prefix("lab:").unwrap_or(target).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::bound::Bound;

    fn row(target: &str, load: &str, maximum: u64, bound: u64) -> Row {
        let bound = Bound {
            ns: Nanos(bound),
            timer: Nanos(0),
            uncertain: Nanos(0),
            sections: std::collections::BTreeMap::new(),
            interrupts: Vec::new(),
        };
        let (target, load) = (target.to_owned(), load.to_owned());
        let kernel = String::new();
        let maximum = Nanos(maximum);
        Row { target, load, kernel, preempt: None, runs: 1, samples: 1, maximum, bound }
    }

    #[test]
    fn bound_stands_around_maximum_of_its_target_and_load() {
        let rows = [
            row("lab:rt", "none", 4_000, 60_000),
            row("lab:rt", "fork", 6_000, 70_000),
            row("lab:utime", "fork", 200_000, 300_000),
        ];
        let chart = chart(&rows);
        let targets: Vec<&str> = chart.x.named.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(targets, ["rt", "utime"]);
        assert_eq!((chart.y.min, chart.y.max), (1_000.0, 1_000_000.0));
        let of = |name: &str| {
            let columns = chart.marks.columns.iter().find(|columns| columns.name == name);
            columns.unwrap_or_else(|| panic!("no {name}")).blocks.clone()
        };
        let (measured, bound) = (of("fork · measured"), of("fork · bound"));
        assert_eq!(measured.len(), 2);
        let heights = |blocks: &[Block]| blocks.iter().map(|block| block.y.1).collect::<Vec<_>>();
        assert_eq!(heights(&measured), [6_000.0, 200_000.0]);
        assert_eq!(heights(&bound), [70_000.0, 300_000.0]);
        assert_eq!(measured[1].x, bound[1].x);
        // Columns of different loads do not overlap.
        assert!(of("none · measured")[0].x.1 <= measured[0].x.0);
    }
}
