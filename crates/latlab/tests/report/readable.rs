//! Pages on narrow and wide screens and on paper, and their headlines.

use super::browser::{Browser, assert_readable};
use super::{folder, put, report, said, scanned, traced};
use latlab_testing::{sample, sample_explained};

#[test]
fn every_page_is_readable_on_narrow_and_wide_screens() {
    let folder = folder();
    put(folder.path(), "why.json", &sample_explained::record().to_json());
    put(folder.path(), "traced.json", &traced().to_json());
    put(folder.path(), "scans.json", &scanned(&[0, 1]));
    put(folder.path(), "other-scans.json", &scanned(&[2]));
    let many: Vec<String> = (1..=9).map(|n| format!("a-long-name-of-a-record-{n}.json")).collect();
    for (times, name) in (1..).zip(&many) {
        let mut record = sample::record(times);
        record.plan.seed = times;
        record.machine.cmdline = format!("{} isolcpus={times}", "quiet nohz_full=1-63 ".repeat(9));
        put(folder.path(), name, &record.to_json());
    }
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let reports: [(&str, &[&str]); 6] = [
        ("one.html", &["run.json"]),
        ("why.html", &["why.json"]),
        ("both.html", &["run.json", "why.json"]),
        ("traced.html", &["traced.json"]),
        ("scans.html", &["scans.json", "other-scans.json"]),
        ("many.html", &many),
    ];
    for (page, records) in reports {
        let output = report(folder.path(), &[records, &["-o", page]].concat());
        assert!(output.status.success(), "{}", said(&output));
    }
    let pages = reports.map(|(page, _)| page);
    assert_readable(folder.path(), &pages);
}

/// Writes the notes that are visible into the page's first element.
const SHOWN: &str = r#"<script>
  const shown = (note) => getComputedStyle(note).display !== "none" && note.textContent;
  document.documentElement.dataset.notes = [...document.querySelectorAll(".unhovered")].map(shown).join("; ");
</script></body>"#;

/// A page is printed as its style sheet for paper says, without tooltips.
#[test]
fn causes_of_worst_samples_are_on_paper() {
    let folder = folder();
    put(folder.path(), "why.json", &sample_explained::record().to_json());
    report(folder.path(), &["why.json"]);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    let mut browser = Browser::start();
    let mut notes = |page: &str| {
        put(folder.path(), "report.html", &page.replace("</body>", SHOWN));
        let dom = browser.load(&folder.path().join("report.html"), "data-notes");
        let (_, notes) = dom.split_once("data-notes=\"").unwrap();
        notes.split_once('"').unwrap().0.to_owned()
    };
    let screen = page.replace("(hover: none)", "(max-width: 1px)");
    assert_eq!(notes(&screen), "false; false");
    let paper = notes(&screen.replace("@media print", "@media screen"));
    let worst = "350 µs interrupts-off (stress-ng-vm (pid 123) in copy_page_range+0x6f2), \
                 50 µs interrupt (interrupt 24 (virtio0-input)), 50 µs dispatch; 175 µs ";
    assert!(paper.starts_with(worst), "{paper}");
}

#[test]
fn headline_says_why_a_record_was_late() {
    let folder = folder();
    put(folder.path(), "why.json", &sample_explained::record().to_json());
    put(folder.path(), "traced.json", &traced().to_json());
    let header = |record: &str| {
        report(folder.path(), &[record]);
        let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        page.split_once("</header>").unwrap().0.to_owned()
    };
    for text in ["why wake-ups were late", "60 % ", "30 % ", "NET_RX"] {
        assert!(header("why.json").contains(text), "{text}");
    }
    for text in [
        "interrupts off for 3 µs of 2.004 ms, by timer_handler",
        "most expensive functions: wake_up 2 µs, timer_handler 1.5 µs",
    ] {
        assert!(header("traced.json").contains(text), "{text}");
    }
}
