//! Tests of pictures: parsing, and errors.

use crate::study::picture::PictureKind;
use crate::study::{Study, place};

const STUDY: &str = r#"
title = "Two kernels"
paper = "Somebody 2001"
redoes = "table 1"

[plan]
probes = ["cyclic", "schedule:tasks=5"]

[[axis]]
name = "kernel"
each = [
  { label = "rt", on = "lab:rt" },
  { label = "none", on = "lab:utime", probes = ["cyclic", "realfeel"] },
]

[[axis]]
name = "tasks"
each = [{ label = "n1" }, { label = "n5" }, { label = "n20" }]

[[figure]]
name = "worst"
probe = "cyclic"

[[figure]]
name = "switches"
probe = "cyclic"
figure = "context switches"

[[figure]]
name = "read"
probe = "realfeel"

[[picture]]
name = "fig1"
"#;

/// Parses the study with this picture.
fn read(picture: &str) -> Result<Study, String> {
    let text = format!("{STUDY}{picture}\ntitle = 'x'\n");
    Study::read(&text).map_err(|fault| {
        let (line, column) = place(&text, fault.at);
        format!("{}:{column}: {fault}", line - STUDY.lines().count())
    })
}

#[test]
fn picture_shows_the_selected_cells() {
    let study = read("kind = 'cdf'\nfigures = ['worst']\ncells = ['*.n5', 'rt.n20']").unwrap();
    let picture = &study.pictures[0];
    assert_eq!((picture.kind, picture.figures.as_slice()), (PictureKind::Cdf, &[0][..]));
    let labels: Vec<&str> =
        picture.cells.iter().map(|cell| study.cells[*cell].label.as_str()).collect();
    assert_eq!(labels, ["rt.n5", "rt.n20", "none.n5"]);
    let study = read("kind = 'over-time'\nfigures = ['worst']\nlog = true").unwrap();
    assert_eq!(study.pictures[0].cells.len(), 6);
    assert!(study.pictures[0].log && study.pictures[0].over.is_none());
}

#[test]
fn curves_have_an_axis_with_labels_and_positions() {
    let text = "kind = 'curves'\nfigures = ['worst']\nalong = 'tasks'\nat = [1, 5, 20]\n\
                relative_to = 'none'";
    let over = read(text).unwrap().pictures[0].over.clone().unwrap();
    assert_eq!((over.axis, over.labels.join(" ")), (1, "n1 n5 n20".to_owned()));
    assert_eq!(over.at, Some(vec![1.0, 5.0, 20.0]));
    assert_eq!(over.relative_to, Some((0, "none".to_owned())));
}

#[test]
fn errors_in_pictures_are_reported_with_their_position() {
    let cases = [
        ("kind = 'cfd'", "1:8: unknown kind of picture 'cfd': choose from cdf, density"),
        ("kind = 'cdf'", "0:8: it needs figures, such as figures = [\"worst\"]"),
        ("kind = 'cdf'\nfigures = ['wurst']", "2:12: unknown figure 'wurst': did you mean worst?"),
        (
            "kind = 'cdf'\nfigures = ['switches']",
            "2:12: this is a single value, without a distribution of samples",
        ),
        (
            "kind = 'density'\nfigures = ['read']\ncells = ['rt.*']",
            "2:12: none of its cells measures the probe 'realfeel'",
        ),
        (
            "kind = 'cdf'\nfigures = ['worst']\nalong = 'tasks'",
            "3:9: a picture of the kind 'cdf' has no 'along'",
        ),
        ("kind = 'cdf'\nfigures = ['worst']\ncells = ['*.n6']", "3:10: unknown cell '*.n6': "),
        (
            "kind = 'bars'\nfigures = ['worst']",
            "0:8: it needs an axis, such as along = \"kernel\" or \"tasks\"",
        ),
        (
            "kind = 'bars'\nfigures = ['worst']\nalong = 'task'",
            "3:9: unknown axis 'task': did you mean tasks?",
        ),
        (
            "kind = 'bars'\nfigures = ['worst', 'switches']\nalong = 'tasks'",
            "2:21: this is a number and 'worst' is a time: draw two pictures",
        ),
        (
            "kind = 'curves'\nfigures = ['worst']\nalong = 'tasks'\nat = [1, 20, 5]",
            "4:6: at needs 3 ascending numbers, one for each of: n1, n5, n20",
        ),
        (
            "kind = 'bars'\nfigures = ['worst']\nalong = 'tasks'\nrelative_to = 'vanilla'",
            "4:15: unknown label 'vanilla': ",
        ),
        (
            "kind = 'bars'\nfigures = ['worst']\nalong = 'tasks'\nstacked = true",
            "4:11: stacking needs several figures",
        ),
        ("kind = 'pdlt'", "1:8: none of its cells has a scan"),
    ];
    for (picture, said) in cases {
        let fault = read(picture).unwrap_err();
        assert!(fault.starts_with(said), "{picture}: {fault}");
    }
    let text = STUDY.replace("fig1", "report") + "kind = 'cdf'\nfigures = ['worst']\ntitle = 'x'\n";
    assert!(Study::read(&text).unwrap_err().why.contains("reserved for another file"));
}
