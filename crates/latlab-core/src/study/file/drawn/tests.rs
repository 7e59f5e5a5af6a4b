//! Pictures are read as they are written, and refused where they are wrong.

use crate::study::picture::Kind;
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

/// The study with this picture.
fn read(picture: &str) -> Result<Study, String> {
    let text = format!("{STUDY}{picture}\ntitle = 'x'\n");
    Study::read(&text).map_err(|fault| {
        let (line, column) = place(&text, fault.at);
        format!("{}:{column}: {fault}", line - STUDY.lines().count())
    })
}

#[test]
fn a_picture_shows_the_cells_that_it_names() {
    let study = read("kind = 'cdf'\nfigures = ['worst']\ncells = ['*.n5', 'rt.n20']").unwrap();
    let picture = &study.pictures[0];
    assert_eq!((picture.kind, picture.figures.as_slice()), (Kind::Cdf, &[0][..]));
    let labels: Vec<&str> =
        picture.cells.iter().map(|cell| study.cells[*cell].label.as_str()).collect();
    assert_eq!(labels, ["rt.n5", "rt.n20", "none.n5"]);
    let study = read("kind = 'over-time'\nfigures = ['worst']\nlog = true").unwrap();
    assert_eq!(study.pictures[0].cells.len(), 6);
    assert!(study.pictures[0].log && study.pictures[0].over.is_none());
}

#[test]
fn curves_stand_over_the_labels_of_an_axis() {
    let text = "kind = 'curves'\nfigures = ['worst']\nalong = 'tasks'\nat = [1, 5, 20]\n\
                relative_to = 'none'";
    let over = read(text).unwrap().pictures[0].over.clone().unwrap();
    assert_eq!((over.axis, over.labels.join(" ")), (1, "n1 n5 n20".to_owned()));
    assert_eq!(over.at, Some(vec![1.0, 5.0, 20.0]));
    assert_eq!(over.relative_to, Some((0, "none".to_owned())));
}

#[test]
fn what_is_wrong_with_a_picture_is_said_with_its_place() {
    let cases = [
        ("kind = 'cfd'", "1:8: there is no kind of picture 'cfd': there is cdf, density"),
        ("kind = 'cdf'", "0:8: it says of which figures: figures = [\"worst\"]"),
        (
            "kind = 'cdf'\nfigures = ['wurst']",
            "2:12: there is no figure 'wurst': did you mean worst?",
        ),
        (
            "kind = 'cdf'\nfigures = ['switches']",
            "2:12: this is a single value: it is not taken of samples",
        ),
        (
            "kind = 'density'\nfigures = ['read']\ncells = ['rt.*']",
            "2:12: no cell that it shows has the probe 'realfeel'",
        ),
        (
            "kind = 'cdf'\nfigures = ['worst']\nalong = 'tasks'",
            "3:9: a picture of the kind 'cdf' has no 'along'",
        ),
        ("kind = 'cdf'\nfigures = ['worst']\ncells = ['*.n6']", "3:10: no cell is called '*.n6': "),
        (
            "kind = 'bars'\nfigures = ['worst']",
            "0:8: it says over which axis it stands: along = \"kernel\", \"tasks\"",
        ),
        (
            "kind = 'bars'\nfigures = ['worst']\nalong = 'task'",
            "3:9: there is no axis 'task': did you mean tasks?",
        ),
        (
            "kind = 'bars'\nfigures = ['worst', 'switches']\nalong = 'tasks'",
            "2:21: this is a number and 'worst' is a time: make two pictures",
        ),
        (
            "kind = 'curves'\nfigures = ['worst']\nalong = 'tasks'\nat = [1, 20, 5]",
            "4:6: it has 3 rising numbers, a place for each of: n1, n5, n20",
        ),
        (
            "kind = 'bars'\nfigures = ['worst']\nalong = 'tasks'\nrelative_to = 'vanilla'",
            "4:15: there is no label 'vanilla': ",
        ),
        (
            "kind = 'bars'\nfigures = ['worst']\nalong = 'tasks'\nstacked = true",
            "4:11: there are no several figures",
        ),
        ("kind = 'pdlt'", "1:8: no cell that it shows has a scan"),
    ];
    for (picture, said) in cases {
        let fault = read(picture).unwrap_err();
        assert!(fault.starts_with(said), "{picture}: {fault}");
    }
    let text = STUDY.replace("fig1", "report") + "kind = 'cdf'\nfigures = ['worst']\ntitle = 'x'\n";
    assert!(Study::read(&text).unwrap_err().why.contains("what else a study leaves"));
}
