//! Tests of a study's page: completeness and escaping.

use super::*;
use crate::picture::study::pictures;
use crate::picture::tests::source;
use latlab_core::study::Lengths;
use latlab_core::time::Nanos;
use latlab_testing::sample_explained;

const STUDY: &str = r#"
title = "Two <b>kernels"
paper = "Some</script>body 2001"
redoes = "figure 1"
published_in = "table <i>"
about = "One.\n\nTwo & three."

[plan]
probes = ["cyclic:interval=2ms"]
loads = ["disk"]
on = "lab:rt"
for = "1s"

[[axis]]
name = "kernel"
each = [{ label = "old" }, { label = "new" }]

[[axis]]
name = "tasks"
each = [{ label = "n1" }, { label = "n9" }]

[[figure]]
name = "worst"
title = "worst<br>"
probe = "cyclic"

[published]
"old.n1" = { worst = "1 s <hr>" }

[[claim]]
says = "it is <s>quick"
source = "page <u>"
claim = "old.n1.worst < 1ns"
quote = "<kbd>quick"
bound = "paper: <tt>1 ns"
why = "it <q>is not"

[[picture]]
name = "fig1"
title = "A <em>picture"
source = "figure <sub>"
kind = "bars"
figures = ["worst"]
along = "tasks"
"#;

/// Returns the page of a study with the same record in all cells.
fn page_of(text: &str) -> String {
    page_with(&Study::read(text).unwrap(), source("", 1).record, None)
}

fn page_with(study: &Study, record: Record, why: Option<&NamedRecord>) -> String {
    page_of_repetitions(study, vec![record], why)
}

/// Returns the page of a study with the same repetitions in all cells.
fn page_of_repetitions(study: &Study, all: Vec<Record>, why: Option<&NamedRecord>) -> String {
    let records = vec![Some(all); study.cells.len()];
    let findings = study.findings(&records);
    let sources: Vec<NamedRecord> = study
        .cells
        .iter()
        .zip(records.iter().flatten())
        .map(|(cell, records)| NamedRecord::from_run(cell.label.clone(), records[0].clone()))
        .collect();
    let pictures = pictures(study, &findings, &records);
    page(&StudyPage {
        name: "mine.toml",
        study,
        findings: &findings,
        records: &records,
        sources: &sources,
        pictures: &pictures,
        why,
    })
}

#[test]
fn study_text_never_becomes_markup() {
    let page = page_of(STUDY);
    for tag in [
        "<b>k",
        "</script>b",
        "<i>\"",
        "<br>\"",
        "<hr>",
        "<s>",
        "<u>",
        "<q>",
        "<em>",
        "<sub>",
        "<kbd>",
        "<tt>",
    ] {
        assert!(!page.contains(tag), "{tag}");
    }
    assert_eq!(page.matches("<script").count(), 3);
    assert!(page.contains("Two &lt;b&gt;kernels"));
}

#[test]
fn table_of_one_figure_over_two_axes_is_crossed() {
    let page = page_of(STUDY);
    assert!(
        page.contains(
            "<th colspan=\"2\" scope=\"colgroup\" class=\"n\">worst&lt;br&gt; over tasks"
        )
    );
    assert_eq!(page.matches("<th scope=\"row\">").count(), 2);
    assert!(page.contains("<br><i class=\"printed\">1 s &lt;hr&gt;</i>"));
    let several =
        STUDY.replace("[published]", "[[figure]]\nname = \"two\"\nprobe = \"cyclic\"\n[published]");
    let page = page_of(&several);
    assert_eq!(page.matches("<th scope=\"row\">").count(), 4);
    assert_eq!(page.matches("class=\"group again\"").count(), 2);
    assert_eq!(page.matches(">published</th>").count(), 1);
}

#[test]
fn page_has_differences_and_command_to_reproduce() {
    let page = page_of(STUDY);
    for text in [
        "0 of 1 claims hold, 1 differs",
        "class=\"badge differs\"",
        "bound: paper: &lt;tt&gt;1 ns",
        "old.n1.worst is 2 s; not old.n1.worst &lt; 1ns",
        "<p class=\"prose\">Two &amp; three.</p>",
        "After figure &lt;sub&gt;. Measured values.",
        "latlab study mine.toml --out mine/",
        "latlab explain cyclic:interval=2ms --load disk --on lab:rt --for 1s",
        "<details><summary>Numbers of this picture</summary>",
        "all cells</span>",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn command_to_reproduce_names_the_target_to_which_the_study_was_moved() {
    let mut study = Study::read(STUDY).unwrap();
    study.moved_to = Some("native".to_owned());
    study.lengths = Lengths::Full;
    let page = page_with(&study, source("", 1).record, None);
    assert!(page.contains("latlab study mine.toml --on native --full --out mine/"));
}

#[test]
fn worst_repetition_is_explained_with_its_seed() {
    let repetition = |(seed, max)| {
        let mut record = source("", 1).record;
        record.plan.seed = seed;
        record.series.iter_mut().for_each(|series| series.max = Nanos(max));
        record
    };
    let all = [(7, 1), (8, 3), (9, 2)].map(repetition).to_vec();
    let page = page_of_repetitions(&Study::read(STUDY).unwrap(), all, None);
    assert!(page.contains("--load disk --on lab:rt --for 1s --seed 8<"));
}

/// A shell would take the words of the command for probes.
#[test]
fn command_of_the_worst_latency_is_quoted_for_a_shell() {
    let text = STUDY.replace("[\"disk\"]", "[\"exec:cc -o a 'b c'; true\", \"disk\"]");
    let page = page_of(&text);
    let command = r"--load 'exec:cc -o a '\''b c'\''; true' --load disk --on lab:rt --for 1s";
    assert!(page.contains(command), "{page}");
}

/// The samples of a component belong to the probe that has it, not to the default one.
#[test]
fn worst_component_is_explained_with_its_probe() {
    let text = STUDY
        .replace("\"cyclic:interval=2ms\"", "\"nanosleep\", \"rhealstone:figure=mean\"")
        .replace("probe = \"cyclic\"", "probe = \"rhealstone.switch\"");
    let study = Study::read(&text).unwrap();
    let mut record = source("", 1).record;
    record.series.iter_mut().for_each(|series| series.probe = "rhealstone.switch".to_owned());
    let page = page_with(&study, record, None);
    let command = "latlab explain rhealstone:figure=mean --load disk --on lab:rt --for 1s";
    assert!(page.contains(command), "{page}");
}

#[test]
fn title_of_the_study_is_not_repeated() {
    let twice = STUDY.replace("A <em>picture", "Two <b>kernels");
    let page = page_of(&twice);
    assert_eq!(page.matches("Two &lt;b&gt;kernels</h").count(), 1);
    assert!(page.contains(">Figure &lt;sub&gt;</h3>"));
}

#[test]
fn explained_worst_is_drawn() {
    let why = NamedRecord::from_run("old.n1".to_owned(), sample_explained::record());
    let page = page_with(&Study::read(STUDY).unwrap(), source("", 1).record, Some(&why));
    assert!(
        page.contains("2 s in the cell <b>old.n1</b> (worst&lt;br&gt;). The cell was measured")
    );
    assert!(page.contains("id=\"causes\"") && page.contains("id=\"moments\""));
    assert!(!page.contains("studies measure without tracing"));
}

#[test]
fn study_without_pictures_draws_its_records() {
    let (text, _) = STUDY.split_once("[[picture]]").unwrap();
    let page = page_of(text);
    assert!(page.contains("id=\"histogram\"") && page.contains("id=\"ccdf\""));
}
