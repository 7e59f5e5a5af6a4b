//! HTML report: one page with charts, tables and all code they need.

pub mod check;
mod document;
mod drawing;
mod explained;
mod facts;
mod figure;
mod header;
mod headline;
mod numbers;
mod paths;
mod scans;
mod side_by_side;
pub mod study;
mod table;
mod warnings;

use super::output::{self, Destination, Format};
use super::picture::{Chart, NamedRecord};
use document::document;
use figure::{Level, chart, hint};
use latlab_part::part::About;
use maud::{Markup, html};

/// The format in the table of output formats.
pub(super) const FORMAT: Format = Format {
    about: About {
        name: "html",
        summary: "HTML page to write: charts, tables, machine and parameters",
    },
    option: "output",
    short: Some('o'),
    destination: Destination::DefaultFile("report.html"),
    needs_explanation: false,
    write: |contents, path| output::write(path, page(contents.sources, contents.charts).as_bytes()),
};

/// Records on a page, and the level of the headings of their tables and figures.
#[derive(Clone, Copy)]
struct Scope<'a> {
    sources: &'a [NamedRecord],
    level: Level,
}

/// Returns the page of a report.
pub fn page(sources: &[NamedRecord], charts: &[Chart]) -> String {
    let names: Vec<&str> = sources.iter().map(|s| s.name.as_str()).collect();
    let title = format!("{} – latlab report", names.join(", "));
    let scope = Scope { sources, level: Level::Section };
    let body = html! {
        (header::header(sources))
        (warnings::merged(sources, "records"))
        (explained::figures(scope))
        (paths::figures(scope))
        (hint())
        @for one in charts { (chart(scope.level, one, &one.title, "", &Markup::default())) }
        (explained::tables(scope))
        (scans::tables(scope))
        (numbers::tables(scope))
        (facts::tables(scope))
    };
    document(&title, &body, &charts.iter().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::charts;
    use crate::picture::tests::source;
    use latlab_testing::{sample_explained, sample_scan};

    #[test]
    fn latency_of_several_cpus_together_names_all() {
        let mut source = source("hackbench", 1);
        let record = &mut source.record;
        record.series.truncate(1);
        record.series[0].together = Some((0..3).collect());
        record.worst[0].cpu = 0;
        record.explained = sample_explained::record().explained;
        let sources = [source];
        let page = page(&sources, &charts(&sources));
        let texts = [" on CPUs 0-2, p99.9", "cyclic · CPUs 0-2", ">0-2</td>"];
        assert_eq!(texts.map(|text| page.contains(text)), [true; 3]);
        assert!(!page.contains("CPU 0 ") && !page.contains("CPU 0<"));
    }

    #[test]
    fn record_text_never_becomes_markup() {
        let mut hostile = source("</script><b>x", 1);
        let text = "</script><script>alert(1)</script> & \"'";
        hostile.record.machine.cmdline = text.to_owned();
        hostile.record.series[0].probe = text.to_owned();
        hostile.record.warnings[0].text = text.to_owned();
        hostile.record.scans = sample_scan::scans();
        let scan = &mut hostile.record.scans[0];
        scan.call.name = text.to_owned();
        scan.call.params.insert(text.to_owned(), text.into());
        scan.profile = Some(text.to_owned());
        scan.sections[0].function = Some(text.to_owned());
        hostile.record.worst[0].causes[0].culprit = text.to_owned();
        let mut path = sample_explained::path();
        path.steps[1].function = text.to_owned();
        path.functions[1].function = text.to_owned();
        path.held[0].function = text.to_owned();
        hostile.record.worst[0].path = Some(path);
        let mut explained = sample_explained::record().explained.unwrap();
        explained.causes[0].cause = text.to_owned();
        explained.causes[1].function = Some(text.to_owned());
        explained.stacks[0].stack = text.to_owned();
        explained.missing[0] = text.to_owned();
        explained.cost[0].program = text.to_owned();
        hostile.record.explained = Some(explained);
        let sources = [hostile];
        let page = page(&sources, &charts(&sources));
        assert!(!page.contains("alert(1)</script>"));
        assert!(!page.contains("<b>x"));
        assert_eq!(page.matches("<script").count(), 3);
        assert!(
            page.contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;'")
        );
    }
}
