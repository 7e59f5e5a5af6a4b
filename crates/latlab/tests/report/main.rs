//! End-to-end tests of `latlab report`: its pages are rendered in a browser, its other files
//! decoded.
#![expect(
    clippy::disallowed_methods,
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "a test of a whole program starts programs and writes files"
)]

mod browser;
mod readable;

use browser::{Browser, assert_readable, browse, corners, drawn};
use latlab_core::histogram::Histogram;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_testing::{sample, sample_explained, sample_scan};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::path::Path;
use std::process::{Command, Output};

/// Runs `latlab report` in `folder`.
fn report(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    let command = command.current_dir(folder).arg("report").args(arguments);
    command.output().expect("latlab starts")
}

/// Returns a folder with the sample record in `run.json`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "run.json", &sample::record(1).to_json());
    folder
}

fn put(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

/// A picture as it looks, with the font that `make test` installs.
fn rendered(svg: &Path) -> Pixmap {
    const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
    let mut options = Options::default();
    options.fontdb_mut().load_font_data(std::fs::read(FONT).unwrap());
    options.fontdb_mut().set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(&std::fs::read_to_string(svg).unwrap(), &options).unwrap();
    let size = tree.size().to_int_size();
    let mut pixels = Pixmap::new(size.width(), size.height()).unwrap();
    resvg::render(&tree, Transform::default(), &mut pixels.as_mut());
    pixels
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn browser_draws_every_series_without_console_messages() {
    let folder = folder();
    let output = report(folder.path(), &["run.json"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "latlab: wrote report.html\n");
    let dom = browse(&folder.path().join("report.html"));
    assert!(dom.contains("data-drawn=\"3\""));
    // Three series, and a corrected line for the one that missed periods.
    for (id, lines) in [("histogram", 3), ("ccdf", 4), ("timeline", 3)] {
        let corners = corners(drawn(&dom, id));
        assert_eq!(corners.len(), lines, "{id}: {corners:?}");
    }
    let ccdf = drawn(&dom, "ccdf");
    for text in ["cyclic · CPU 2", "cyclic · CPU 1 · corrected", ">100 µs<", ">0.01 %<"] {
        assert!(ccdf.contains(text), "{text}");
    }
    // Three lines have a panel each, and the worst sample is labelled.
    let timeline = drawn(&dom, "timeline");
    assert_eq!(timeline.matches("font-weight: 600").count(), 3, "titles of panels: {timeline}");
    assert_eq!(timeline.matches(">2 s<").count(), 1, "{timeline}");
    assert!(dom.contains("max 2 s on CPU 1"));
    assert!(dom.contains("note=&lt;b&gt;&amp;bold&lt;/b&gt;"));
}

/// Makes a chart narrower, and records whether its drawing is narrower in the next frame.
const NARROWER: &str = r#"<script>
let observer;
const narrowing = setInterval(() => {
  if (!document.documentElement.dataset.drawn) return;
  const picture = document.querySelector(".chart");
  observer ??= new ResizeObserver(() => {
    if (picture.clientWidth > 501) return;
    const ends = [...picture.querySelectorAll("svg path")].map((path) => path.getBBox()).map(({ x, width }) => x + width);
    document.documentElement.dataset.fits = String(ends.length > 4 && Math.max(...ends) <= 501);
    clearInterval(narrowing);
  });
  observer.observe(picture);
  picture.style.width = picture.clientWidth === 500 ? "501px" : "500px";
}, 20);
</script></body>"#;

/// A screenshot of a whole page may show the first frame after a change of width.
#[test]
fn chart_is_resized_within_the_same_frame() {
    let folder = folder();
    report(folder.path(), &["run.json"]);
    let page = folder.path().join("report.html");
    let text = std::fs::read_to_string(&page).unwrap().replace("</body>", NARROWER);
    put(folder.path(), "report.html", &text);
    let dom = Browser::start().load(&page, "data-fits");
    assert!(dom.contains("data-fits=\"true\""), "{}", &dom[..200]);
}

#[test]
fn records_share_charts() {
    let folder = folder();
    put(folder.path(), "after.json", &sample::record(3).to_json());
    let output = report(folder.path(), &["run.json", "after.json", "-o", "both.html"]);
    assert!(output.status.success(), "{}", said(&output));
    let dom = browse(&folder.path().join("both.html"));
    assert_eq!(corners(drawn(&dom, "histogram")).len(), 6);
    assert!(drawn(&dom, "histogram").contains("after · cyclic · CPU 0"));
}

/// A short study of this machine, with pictures of four kinds.
const STUDY: &str = r#"
title = "This machine, twice"
paper = "Nobody 2026"
redoes = "nothing"

[plan]
on = "native"
probes = ["cyclic:policy=other"]
for = "300ms"
warm_up = "0s"

[[axis]]
name = "period"
each = [{ label = "first" }, { label = "second", probes = ["cyclic:policy=other,interval=2ms"] }]

[[figure]]
name = "worst"
probe = "cyclic"

[[figure]]
name = "samples"
probe = "cyclic"
take = "recorded"

[published]
first = { worst = "1 ms" }

[[claim]]
says = "time passes"
claim = "first.worst > 0s"
bound = "physics: a wake-up takes time"

[[picture]]
name = "fig1"
kind = "cdf"
title = "How late"
figures = ["worst"]

[[picture]]
name = "fig2"
kind = "over-time"
title = "When"
figures = ["worst"]
log = true

[[picture]]
name = "fig3"
kind = "bars"
title = "How late at worst"
figures = ["worst"]
along = "period"

[[picture]]
name = "fig4"
kind = "curves"
title = "How many"
figures = ["samples"]
along = "period"
at = [1, 2]
"#;

#[test]
fn browser_draws_study_without_console_messages() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "mine.toml", STUDY);
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    let words = ["study", "mine.toml", "--out", "out"];
    let output = command.current_dir(folder.path()).args(words).output().expect("latlab starts");
    assert!(output.status.success(), "{}", said(&output));
    let dom = browse(&folder.path().join("out/report.html"));
    assert!(dom.contains("data-drawn=\"4\""));
    let bars = drawn(&dom, "picture-fig3");
    for text in [">first<", ">second<", "worst · published"] {
        assert!(bars.contains(text), "{text}: {bars}");
    }
    // A square in the legend, and a bar for each label.
    assert_eq!(bars.matches("fill=\"#3a78c9\"").count(), 3, "{bars}");
    assert!(drawn(&dom, "picture-fig1").contains(">100 %<"));
    assert_eq!(dom.matches("Numbers of this picture</summary>").count(), 4);
    assert_readable(&folder.path().join("out"), &["report.html"]);
    for name in ["fig1", "fig2", "fig3", "fig4"] {
        assert!(rendered(&folder.path().join(format!("out/{name}.svg"))).width() > 500, "{name}");
    }
}

/// Returns a record of some of the sample scans, with only their series.
fn scanned(which: &[usize]) -> String {
    let mut record = sample::record(1);
    record.series.truncate(1);
    record.series[0].probe.insert_str(0, "scan.");
    let scans = sample_scan::scans();
    record.scans = which.iter().map(|n| scans[*n].clone()).collect();
    record.to_json()
}

#[test]
fn browser_draws_scans_in_one_chart_with_marks() {
    let folder = folder();
    put(folder.path(), "a.json", &scanned(&[0, 1]));
    put(folder.path(), "b.json", &scanned(&[2]));
    let output = report(folder.path(), &["a.json", "b.json"]);
    assert_eq!(said(&output), "latlab: wrote report.html\n");
    let dom = browse(&folder.path().join("report.html"));
    assert!(dom.contains("data-drawn=\"1\""), "series of a scan have no other chart");
    let picture = drawn(&dom, "scan-populate");
    assert_eq!(corners(picture).len(), 9, "three lines of three kernels");
    for text in ["low-latency · PDLT max", "clear_huge_page", ">400 µs<"] {
        assert!(picture.contains(text), "{text}");
    }
    // Filled: three marks in the legend, a bar, a triangle for each section, and a name.
    for (colour, filled) in [("#3a78c9", 6), ("#e0812b", 8), ("#36a07a", 4)] {
        assert_eq!(picture.matches(&format!("fill=\"{colour}\"")).count(), filled, "{colour}");
    }
    for text in [
        "1 non-preemptible section: 482 µs, starting 0 ns into the call",
        "no non-preemptible section &gt; 4.97 µs found (detection limit)",
        "Non-preemptible sections: populate:size=4MiB · low-latency",
        "<td class=\"n\">490.000</td>",
    ] {
        assert!(dom.contains(text), "{text}");
    }
}

#[test]
fn browser_draws_explanations() {
    let folder = folder();
    put(folder.path(), "why.json", &sample_explained::record().to_json());
    let output = report(folder.path(), &["why.json"]);
    assert!(output.status.success(), "{}", said(&output));
    let dom = browse(&folder.path().join("report.html"));
    // Three causes and the rest; two wake-ups of four parts; eight frames, the root and the rest.
    for (id, blocks) in [("causes", 4), ("moments", 2 * 4), ("flame", 10)] {
        let picture = drawn(&dom, id);
        assert_eq!(picture.matches("class=\"block").count(), blocks, "{id}: {picture}");
    }
    assert_eq!(drawn(&dom, "moments").matches("<li>").count(), 3);
    for (title, width) in [
        ("copy_page_range: 4 ms (40.0 %)", "40.00%"),
        ("NET_RX: 3 ms", "30.00%"),
        ("interrupts-off 350 µs after 0 ns: stress-ng-vm (pid 123) in copy_page_range", "70.00%"),
    ] {
        let (_, block) = dom.split_once(&format!("title=\"{title}")).unwrap();
        let (_, style) = block.split_once("width:").unwrap();
        assert!(style.starts_with(width), "{title}: {}", &style[..8]);
    }
    for text in [
        "40 of 10\u{202f}000 wake-ups were later than 50 µs, 10 ms in all",
        "stress-ng-vm in copy_page_range",
        "page faults: this kernel has no event for them",
    ] {
        assert!(dom.contains(text), "{text}");
    }
}

#[test]
fn browser_draws_paths_of_worst_samples() {
    let folder = folder();
    let mut record = traced();
    let other = record.worst.last_mut().and_then(|sample| sample.path.as_mut()).unwrap();
    other.functions[0].instructions += 1;
    put(folder.path(), "lab.json", &record.to_json());
    let output = report(folder.path(), &["lab.json"]);
    assert!(output.status.success(), "{}", said(&output));
    let dom = browse(&folder.path().join("report.html"));
    // Two paths, of which the first is open. Each has the idle task, a handler, its callee, a later
    // function and an interrupts-off section; and three functions with a bar.
    assert_eq!(dom.matches("<details open").count(), 1);
    assert_eq!(dom.matches("steps, in instructions").count(), 2);
    for (id, blocks) in [("paths-path-1", 5), ("paths-path-1-most", 3), ("paths-path-2", 5)] {
        let (_, picture) = dom.split_once(&format!("id=\"{id}\"")).unwrap();
        let (picture, _) =
            picture.split_once("<p").or_else(|| picture.split_once("<details")).unwrap();
        assert_eq!(picture.matches("class=\"block").count(), blocks, "{id}: {picture}");
    }
    for text in ["timer_handler: 3.5 µs", "interrupts off for 3 µs by timer_handler"] {
        assert!(dom.contains(text), "{text}");
    }
}

/// Returns a record whose worst samples have paths.
fn traced() -> Record {
    let mut record = sample_explained::record();
    record.explained = None;
    for sample in &mut record.worst {
        (sample.latency, sample.unexplained) = (Nanos(2_004_000), None);
        (sample.causes, sample.path) = (Vec::new(), Some(sample_explained::path()));
    }
    record
}

#[test]
fn explanations_are_exported_for_other_tools() {
    let folder = folder();
    put(folder.path(), "why.json", &sample_explained::record().to_json());
    let exports = ["--perfetto", "why.trace.json", "--folded", "why.folded"];
    let output = report(folder.path(), &[&["why.json"], &exports[..]].concat());
    assert_eq!(
        said(&output),
        "latlab: wrote report.html\nlatlab: wrote why.trace.json\nlatlab: wrote why.folded\n"
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&read("why.trace.json")).unwrap();
    // Three names, and begins and ends of four slices for each of two wake-ups.
    assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 3 + 2 * 4 * 2);
    assert!(read("why.folded").contains("do_syscall_64;copy_page_range 4000000\n"));
    let output = report(folder.path(), &[&["run.json"], &exports[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("contain no explanations"), "{}", said(&output));
    let over = report(folder.path(), &["why.json", "--folded", "./why.json"]);
    assert!(said(&over).contains("this is a record"), "{}", said(&over));
}

#[test]
fn scans_are_exported_as_pictures() {
    let folder = folder();
    put(folder.path(), "a.json", &scanned(&[0, 1]));
    let output = report(folder.path(), &["a.json", "--svg", "."]);
    assert_eq!(said(&output), "latlab: wrote report.html\nlatlab: wrote ./scan-populate.svg\n");
    let svg = std::fs::read_to_string(folder.path().join("scan-populate.svg")).unwrap();
    for text in ["woken during populate:size=4MiB<", "standard · IRT max", "500 µs", "clear_huge_"]
    {
        assert!(svg.contains(&text.replace('<', "\n")) || svg.contains(text), "{text}");
    }
    assert_eq!(svg.matches("<polygon").count(), 1 + 4);
    let pixels = rendered(&folder.path().join("scan-populate.svg"));
    let (blue, orange) = ((0x3a, 0x78, 0xc9), (0xe0, 0x81, 0x2b));
    for colour in [blue, orange] {
        let drawn = pixels.pixels().iter();
        let drawn = drawn.filter(|p| (p.red(), p.green(), p.blue()) == colour).count();
        assert!(drawn > 2_500, "{drawn} pixels of {colour:?}");
    }
}

#[test]
fn page_loads_nothing() {
    let folder = folder();
    report(folder.path(), &["run.json"]);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for outward in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(outward), "{outward}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn pictures_are_exported_and_not_empty() {
    let folder = folder();
    let output = report(folder.path(), &["run.json", "--svg", "a/svg"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("wrote a/svg/timeline.svg\n"));
    for (name, rows) in [("histogram", 2), ("ccdf", 2), ("timeline", 2)] {
        let svg = std::fs::read_to_string(folder.path().join(format!("a/svg/{name}.svg"))).unwrap();
        assert!(svg.contains("cyclic · CPU 2") && svg.contains("<polyline"), "{name}");
        let pixels = rendered(&folder.path().join(format!("a/svg/{name}.svg")));
        assert_eq!((pixels.width(), pixels.height()), (960, 470 + 22 * rows + 14), "{name}");
        let inked = pixels.pixels().iter().filter(|p| p.red() < 0xa0).count();
        assert!(inked > 1_250, "{name} has {inked} dark pixels");
    }
}

#[test]
fn invalid_record_is_refused_by_name() {
    let folder = folder();
    let whole = sample::record(1).to_json();
    put(folder.path(), "short.json", &whole[..whole.len() / 2]);
    put(folder.path(), "other.json", "[1, 2]");
    put(folder.path(), "newer.json", &whole.replacen("\"schema\": 2", "\"schema\": 9", 1));
    let mut empty = sample::record(1);
    empty.series.clear();
    empty.figures.clear();
    let mut disorder = sample_scan::scans().swap_remove(0);
    disorder.points.reverse();
    let mut damaged = sample::record(1);
    damaged.scans.push(disorder);
    put(folder.path(), "damaged.json", &damaged.to_json());
    put(folder.path(), "empty.json", &empty.to_json());
    std::fs::write(folder.path().join("bytes.json"), [0xff, 0xfe]).unwrap();
    for (name, reason) in [
        ("none.json", "No such file"),
        ("short.json", "cut short"),
        ("other.json", "not a latlab record"),
        ("newer.json", "use a newer latlab"),
        ("empty.json", "it has no sample, no figure and no point of a scan"),
        ("damaged.json", "scan 0 (populate on CPU 1): its points are not in order of time"),
        ("bytes.json", "not a latlab record"),
    ] {
        let output = report(folder.path(), &["run.json", name]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(name) && said.contains(reason), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!folder.path().join("report.html").exists());
    }
}

#[test]
fn record_is_never_overwritten_by_report() {
    let folder = folder();
    let output = report(folder.path(), &["run.json", "-o", "./run.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("this is a record"));
    assert!(output.stdout.is_empty());
    let kept = std::fs::read_to_string(folder.path().join("run.json")).unwrap();
    assert_eq!(kept, sample::record(1).to_json());
}

/// Each of these names two records, of which the output is one.
#[test]
fn record_named_by_folder_pattern_or_list_is_never_overwritten_by_report() {
    let folder = folder();
    put(folder.path(), "run-2.json", &sample::record(1).to_json());
    let kept = || std::fs::read_to_string(folder.path().join("run-2.json")).unwrap();
    for records in [".", "run*.json", "run.json,run-2.json"] {
        for option in ["-o", "--folded"] {
            let output = report(folder.path(), &[records, option, "run-2.json"]);
            assert_eq!(output.status.code(), Some(2), "{records}: {}", said(&output));
            assert!(said(&output).contains("run-2.json: this is a record"), "{}", said(&output));
            assert_eq!(kept(), sample::record(1).to_json());
        }
    }
}

#[test]
fn two_outputs_are_never_written_to_one_file() {
    let folder = folder();
    let output = report(folder.path(), &["run.json", "-o", "new", "--folded", "./new"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("new: two outputs"), "{}", said(&output));
}

/// A `noise` that never exceeded its threshold has no sample, and its figures are the result.
#[test]
fn record_with_figures_only_is_shown() {
    let folder = folder();
    let mut figures = sample::record(1);
    for series in &mut figures.series {
        series.set_histogram(&Histogram::new());
        series.timeline = latlab_core::timeline::Timeline::new();
        series.counts = latlab_core::record::Counts::default();
    }
    figures.worst.clear();
    put(folder.path(), "figures.json", &figures.to_json());
    for records in [&["figures.json"][..], &["figures.json", "run.json"]] {
        let output = report(folder.path(), records);
        assert!(output.status.success(), "{}", said(&output));
        let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        assert!(page.contains("no samples") && page.contains("run time"), "{page}");
    }
}

#[test]
fn records_of_different_time_domains_are_refused() {
    let folder = folder();
    let simulated = sample::record(1).to_json();
    let simulated = simulated.replacen("\"silicon\"", "\"instructions\"", 1);
    put(folder.path(), "lab.json", &simulated);
    let output = report(folder.path(), &["run.json", "lab.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("run.json and lab.json: one record is in silicon time"));
}

#[test]
fn report_of_many_samples_is_fast() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = sample::record(1);
    for series in &mut record.series {
        let mut histogram = series.histogram().unwrap();
        while histogram.count() < 100_000_000 {
            histogram.add(&histogram.clone());
        }
        series.counts.recorded = histogram.count();
        series.set_histogram(&histogram);
    }
    put(folder.path(), "run.json", &record.to_json());
    // Two seconds of CPU time: other programs take wall-clock time, too.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -t 2; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_latlab")]);
    let output = command.current_dir(folder.path()).args(["report", "run.json"]).output();
    let output = output.expect("sh starts");
    assert!(output.status.success(), "{}: {}", output.status, said(&output));
}

/// The text, the histogram and the JSON of one run of cyclictest are one distribution.
#[test]
fn results_of_cyclictest_are_read_as_records() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["-q", "-t1", "-i", "500", "-l", "400", "-h", "50", "--json=run.json"];
    let ran = Command::new("cyclictest").args(words).current_dir(folder.path()).output();
    let ran = ran.expect("cyclictest is installed: tools/need cyclictest=rt-tests");
    put(folder.path(), "run.hist", &String::from_utf8(ran.stdout).unwrap());
    let series = |name: &str| {
        let kept = format!("{name}.kept.json");
        let output = report(folder.path(), &[name, "--out", &kept]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(said(&output).contains("measured by cyclictest"), "{}", said(&output));
        let text = std::fs::read_to_string(folder.path().join(kept)).unwrap();
        Record::from_json(&text).unwrap().series.swap_remove(0)
    };
    let (of_text, of_json) = (series("run.hist"), series("run.json"));
    assert_eq!(of_text.counts.recorded, 400);
    assert_eq!((&of_text.hdr, of_text.min, of_text.max), (&of_json.hdr, of_json.min, of_json.max));
    assert!(of_json.interval.is_none_or(|interval| interval == Nanos::from_micros(500)));
}

/// Each histogram is read, what is above its range is said, and rows of which only a bound is known are no result.
#[test]
fn samples_above_the_range_are_said_and_never_compared() {
    let folder = tempfile::tempdir().unwrap();
    let histogram = |above: u64| {
        format!(
            "# cyclictest -t1 -i1000 -h400\n# Histogram\n000003 009900\n000012 000090\n# Min Latencies: 00003\n\
             # Avg Latencies: 00003\n# Max Latencies: 03785\n# Histogram Overflows: {above:05}\n"
        )
    };
    put(folder.path(), "a.hist", &histogram(10));
    put(folder.path(), "b.hist", &histogram(200));
    let shown = report(folder.path(), &["a.hist"]);
    assert_eq!(shown.status.code(), Some(0), "{}", said(&shown));
    assert!(
        said(&shown).contains("10 of 10000 samples are above the range of the histogram"),
        "{}",
        said(&shown)
    );
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("≥ 400 µs"), "p99.99 is above the range");
    let mut compare = Command::new(env!("CARGO_BIN_EXE_latlab"));
    let compared =
        compare.current_dir(folder.path()).args(["compare", "a.hist", "b.hist"]).output().unwrap();
    let text = String::from_utf8(compared.stdout).unwrap();
    let has = |name: &str| text.lines().any(|line| line.split_whitespace().next() == Some(name));
    assert!(has("p50") && has("p90") && has("max"), "{text}");
    assert!(!has("p99") && !has("p99.99") && !has("mean"), "{text}");
    put(folder.path(), "cut.hist", histogram(10).split("# Max").next().unwrap());
    let refused = report(folder.path(), &["cut.hist"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said(&refused).contains("cut.hist: this is a result of cyclictest, but it ends before"),
        "{}",
        said(&refused)
    );
}
