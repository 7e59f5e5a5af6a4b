//! The page of a check: the verdict, and for each thread its longest cycle, the causes of its
//! overruns, and its breaches.

use super::document::document;
use super::drawing::{Block, Drawing, GREY, Row, Shade, percent};
use super::figure::{Level, figure, heading};
use super::table::{number, section, words};
use crate::check::{self, causes, leading, own_part, share};
use crate::{grouped, micro, printable};
use latlab_check::{
    BreachReport, CyclePart, MarkedPart, Report, Spread, ThreadReport, WorstCycle, some_of,
};
use latlab_core::time::Nanos;
use maud::{Markup, html};

/// A row of the drawing of a cycle.
struct Lane {
    name: &'static str,
    colour: &'static str,
    /// Whether a part belongs to it.
    holds: fn(&CyclePart) -> bool,
}

/// Parts of a row that are named below it where there are no tooltips.
const NAMED: usize = 5;
/// Parts by marks that are drawn.
const MARKED: usize = 16;
/// Colour of parts by marks.
const MARKED_COLOUR: &str = "#b5892f";
/// Colour of what is wrong.
const BREACH: &str = "#d64550";

const LANES: [Lane; 5] = [
    Lane { name: "until it ran", colour: "#e08a1e", holds: |part| part.waking },
    Lane { name: "program", colour: "#3b7dd8", holds: is_program },
    Lane { name: "other task, or asleep", colour: "#8a5fbf", holds: is_absence },
    Lane { name: "calls, faults, interrupts", colour: "#2a9d8f", holds: is_within },
    Lane { name: "breaches", colour: BREACH, holds: |part| part.rule.is_some() },
];

/// Returns the page of these reports, each with the name of its file.
pub fn page(reports: &[(String, Report)]) -> String {
    let names: Vec<&str> = reports.iter().map(|(name, _)| name.as_str()).collect();
    let title = format!("{} – latlab check", names.join(", "));
    let body = html! {
        header {
            h1 { "Real-time check" }
            @for (name, report) in reports { (header(name, report)) }
        }
        @for (place, (_, report)) in reports.iter().enumerate() {
            @for thread in &report.threads { (section_of(thread, place)) }
        }
    };
    document(&title, &body, &[])
}

fn header(name: &str, report: &Report) -> Markup {
    html! {
        p class="verdict" {
            span { (printable(&report.program)) } " " (check::verdict(report, &[]))
            @for line in report.threads.iter().flat_map(leading) { " " small { (line) } }
        }
        p class="origin" { (name) " · " (report.kernel) }
        @if !report.without_cycle.is_empty() {
            p class="note" {
                "Not judged: threads without a cycle: "
                (printable(&some_of(&report.without_cycle)))
            }
        }
        @if !report.in_warm_up.is_empty() {
            p class="note" {
                "Not judged: all cycles are in the warm-up: "
                (printable(&some_of(&report.in_warm_up)))
            }
        }
        @for finding in &report.findings {
            p class="note" {
                (check::level(finding.level)) " " (finding.rule) ": "
                (printable(&check::line(finding))) ". "
                @for detail in &finding.details { (printable(detail)) ". " }
                (finding.rule.remedy())
            }
        }
        @for note in &report.notes { p class="note" { (printable(note)) } }
    }
}

fn section_of(thread: &ThreadReport, place: usize) -> Markup {
    let id = format!("thread-{place}-{}", thread.tid);
    html! {
        section {
            (heading(Level::Section, Some(&id), &check::heading(thread)))
            p class="note" { "Waits for " (thread.cycle.waits_for) ". " (deadline(thread)) }
            @if let Some(worst) = &thread.cycle.worst { (longest(thread, worst, &id)) }
            (parts(thread))
            (overruns(thread))
            (breaches(thread))
            (times(thread))
        }
    }
}

fn deadline(thread: &ThreadReport) -> String {
    let cycle = &thread.cycle;
    let deadline = cycle.deadline.map_or("the next cycle".to_owned(), micro);
    let warm_up = check::warm_up(cycle).map_or(String::new(), |text| format!(", {text}"));
    format!("Deadline: {deadline}; overruns: {}{warm_up}.", grouped(cycle.overruns))
}

/// The longest cycle on one time scale, from when it was due.
fn longest(thread: &ThreadReport, worst: &WorstCycle, id: &str) -> Markup {
    let limit = thread.cycle.deadline.or(thread.cycle.period);
    let end = worst.response.max(limit.unwrap_or_default());
    let mut drawing = Drawing::default();
    for Lane { name, colour, holds } in LANES {
        let mut parts: Vec<&CyclePart> = worst.parts.iter().filter(|part| holds(part)).collect();
        parts.sort_by_key(|part| std::cmp::Reverse((part.own, part.length)));
        let own = parts.iter().fold(Nanos(0), |sum, part| sum + part.own);
        let blocks = parts.iter().map(|part| block(part, colour, end)).collect();
        let note = parts.iter().take(NAMED).map(|part| title(part)).collect::<Vec<_>>().join("; ");
        let value = if name == "breaches" { parts.len().to_string() } else { micro(own) };
        drawing.row(Row { name: name.to_owned(), value, blocks, note });
    }
    for row in marked_rows(&worst.marked, end) {
        drawing.row(row);
    }
    drawing.row(limit_row(limit, worst.response, end));
    drawing.axis(end);
    let caption = format!(
        "Cycle {}, from when it was due until its next wait: {}. Values are own times, without \
         those of the rows below. Point for names.",
        worst.number,
        micro(worst.response)
    );
    let id = format!("{id}-cycle");
    figure(Level::Subsection, &id, "Longest cycle", &caption, &drawing.markup(&id))
}

/// Rows of parts by the marks of the program: a row for each name, as parts may lie within others.
fn marked_rows(marked: &[MarkedPart], end: Nanos) -> Vec<Row> {
    let mut parts: Vec<&MarkedPart> = marked.iter().collect();
    parts.sort_by_key(|part| (part.from, std::cmp::Reverse(part.length)));
    let mut rows: Vec<(&str, Nanos, Row)> = Vec::new();
    for part in parts {
        let block = marked_block(part, end);
        if let Some((_, running, row)) = rows.iter_mut().find(|(name, ..)| *name == part.name) {
            *running = *running + part.running;
            row.value = micro(*running);
            row.blocks.push(block);
        } else if rows.len() < MARKED {
            let (value, note) = (micro(part.running), String::new());
            let name = format!("part {}", check::part_name(&part.name));
            let row = Row { name, value, blocks: vec![block], note };
            rows.push((&part.name, part.running, row));
        }
    }
    rows.into_iter().map(|(.., row)| row).collect()
}

fn marked_block(part: &MarkedPart, end: Nanos) -> Block {
    let MarkedPart { id, from, length, running, .. } = part;
    let (running, from_due) = (micro(*running), micro(*from));
    Block {
        place: (percent(*from, end), percent(*length, end).max(0.3)),
        colour: MARKED_COLOUR,
        shade: Shade::Half,
        title: format!(
            "{} (id {id}): {running} running, after {from_due}",
            check::part_name(&part.name)
        ),
        text: String::new(),
    }
}

fn is_absence(part: &CyclePart) -> bool {
    let all = ["preempted", "throttled", "stopped", "blocked", "kernel-lock"];
    !part.waking && all.contains(&&*part.cause)
}

fn is_program(part: &CyclePart) -> bool {
    part.cause.starts_with("program")
}

fn is_within(part: &CyclePart) -> bool {
    !part.waking && !is_program(part) && !is_absence(part)
}

fn block(part: &CyclePart, colour: &'static str, end: Nanos) -> Block {
    let colour = if part.cause == "unexplained" { GREY } else { colour };
    Block {
        place: (percent(part.from, end), percent(part.length, end).max(0.3)),
        colour,
        shade: if is_program(part) { Shade::Half } else { Shade::Full },
        title: title(part),
        text: String::new(),
    }
}

fn title(part: &CyclePart) -> String {
    let what = check::cause(&part.reason());
    let rule = part.rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
    format!("{what}{rule}: {} after {}", micro(part.own), micro(part.from))
}

/// The time until the deadline, and that beyond.
fn limit_row(limit: Option<Nanos>, response: Nanos, end: Nanos) -> Row {
    let limit = limit.unwrap_or(end);
    let over = response - limit;
    let block = |from, length, colour, title: &str| Block {
        place: (percent(from, end), percent(length, end)),
        colour,
        shade: Shade::Half,
        title: format!("{title}: {}", micro(length)),
        text: title.to_owned(),
    };
    let mut blocks = vec![block(Nanos(0), limit, GREY, "until the deadline")];
    if over > Nanos(0) {
        blocks.push(block(limit, over, BREACH, "too late"));
    }
    Row { name: "deadline".to_owned(), value: micro(limit), blocks, note: String::new() }
}

/// The parts of the cycle by the marks of the program.
fn parts(thread: &ThreadReport) -> Markup {
    let Some(report) = &thread.cycle.parts else { return html! {} };
    let columns = [
        words("Part"),
        number("count"),
        number("min"),
        number("median"),
        number("max"),
        number("share"),
        number("id of the longest"),
    ];
    let rows = report.parts.iter().map(|part| {
        let [min, median, max] =
            [part.running.min, part.running.median, part.running.max].map(micro);
        let (share, id) = (check::percent(part.share), part.id.to_string());
        vec![check::part_name(&part.name), grouped(part.count), min, median, max, share, id]
    });
    let note = "Running time by the marks of the program, and the share of that of all cycles. A part \
                that contains others includes their time. ";
    let note = format!("{note}{}", check::problems(report).join(". "));
    section(Level::Subsection, "Parts of the cycle", &note, &columns, &rows.collect::<Vec<_>>())
}

fn overruns(thread: &ThreadReport) -> Markup {
    let columns = [
        words("Cause"),
        number("share"),
        number("cycles"),
        number("total"),
        number("longest in a cycle"),
    ];
    let rows = causes(&thread.cycle).map(|reason| {
        vec![
            printable(&check::cause(reason)),
            share(reason, &thread.cycle),
            grouped(reason.count),
            micro(reason.total),
            micro(reason.longest),
        ]
    });
    let note = "The time of the cycles that overran, by cause. Of the program's own time, only what \
                exceeds the median of cycles in time is counted.";
    section(Level::Subsection, "Causes of overruns", note, &columns, &rows.collect::<Vec<_>>())
}

fn breaches(thread: &ThreadReport) -> Markup {
    let columns = [
        words("Breach"),
        words("level"),
        number("cycles"),
        number("first after"),
        number("longest"),
        words("by"),
        words("stack"),
        words("remedy"),
    ];
    let rows: Vec<Vec<String>> = thread.breaches.iter().map(breach).collect();
    section(Level::Subsection, "Breaches", "", &columns, &rows)
}

fn breach(breach: &BreachReport) -> Vec<String> {
    let stack = own_part(&breach.stack).iter().map(|frame| printable(&frame.text()));
    let time = |time: Nanos| if time > Nanos(0) { micro(time) } else { String::new() };
    vec![
        format!("{}: {}", breach.rule, printable(&check::short(breach))),
        check::level(breach.level).to_owned(),
        format!("{}–{}", breach.first, breach.last),
        time(breach.moment),
        time(breach.longest),
        printable(&breach.by.clone().unwrap_or_default()),
        stack.collect::<Vec<_>>().join(" ← "),
        breach.remedy().to_owned(),
    ]
}

fn times(thread: &ThreadReport) -> Markup {
    let columns = [words("Time"), number("min"), number("median"), number("max")];
    let rows = check::times(&thread.cycle).map(|(name, spread)| {
        let [min, median, max] = match spread {
            Some(Spread { min, median, max }) => [min, median, max].map(micro),
            None => ["unknown"; 3].map(str::to_owned),
        };
        vec![name.to_owned(), min, median, max]
    });
    section(Level::Subsection, "Times of the cycle", "", &columns, &rows)
}
