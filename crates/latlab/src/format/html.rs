//! The report as one page that needs no network: pictures, numbers, machine, plan, all in a file.

mod drawing;
mod explained;
mod facts;
mod numbers;
mod paths;
mod scans;
pub(crate) mod study;
mod table;
mod verdict;
mod warnings;

use super::picture::{Chart, Source};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use latlab_core::machine::TimeDomain;
use latlab_core::time::Nanos;
use std::fmt::Write as _;
use table::escaped;

/// ECharts and charts.js, packed; the page unpacks them.
static CHARTS: &[u8] = include_bytes!(env!("LATLAB_CHARTS"));
static STYLE: &str = include_str!("html/page.css");
static START: &str = include_str!("html/start.js");

/// Nothing may be loaded from anywhere, whatever a record says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data: blob:";

/// How to look closer.
const HINT: &str = "<p class=\"note hint\">In the pictures: pointing shows numbers, Ctrl and the \
                    wheel zoom, dragging moves, a click on a name hides its line.</p>\n";

/// The whole page.
pub(crate) fn page(sources: &[Source], charts: &[Chart]) -> String {
    let names: Vec<&str> = sources.iter().map(|s| s.name.as_str()).collect();
    let title = format!("{} – latlab report", names.join(", "));
    let mut body = header(sources);
    body += &warnings::of_each(sources);
    body += HINT;
    for chart in charts {
        body += &figure(chart, "", "");
    }
    body += &explained::pictures(sources);
    body += &paths::pictures(sources);
    body += &explained::tables(sources);
    body += &scans::tables(sources);
    body += &numbers::tables(sources);
    body += &facts::tables(sources);
    framed(&title, &body, &charts.iter().collect::<Vec<_>>())
}

/// A page of its own, with the code that draws its charts.
fn framed(title: &str, body: &str, charts: &[&Chart]) -> String {
    let (title, scripts) = (escaped(title), scripts(charts));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n{scripts}</body>\n</html>\n"
    )
}

fn header(sources: &[Source]) -> String {
    let mut text = "<header>\n<h1>Latency report</h1>\n".to_owned();
    for verdict in verdict::of_both(sources)
        .into_iter()
        .chain(verdict::verdicts(sources))
        .chain(scans::verdicts(sources))
    {
        let _ = writeln!(
            text,
            "<p class=\"verdict\"><span>{}</span> {} <small>{}</small></p>",
            escaped(&verdict.about),
            escaped(&verdict.text),
            escaped(&verdict.but)
        );
    }
    for source in sources {
        let record = &source.record;
        let _ = writeln!(
            text,
            "<p class=\"origin\">{} · {} · {} · {}</p>",
            escaped(&source.name),
            escaped(&record.machine.kernel),
            date(record.started),
            escaped(&record.tool),
        );
    }
    text += domain(sources);
    text + "</header>\n"
}

/// What kind of time all records are in, where that is not a real machine's.
fn domain(sources: &[Source]) -> &'static str {
    match sources.first().map(|source| source.record.machine.time_domain) {
        Some(TimeDomain::Instructions) => {
            "<p class=\"note\">Time here is the number of instructions of a simulated machine: \
             exactly repeatable, but not the time of any real one.</p>\n"
        }
        Some(TimeDomain::Virtualized) => {
            "<p class=\"note\">Measured in a virtual machine that latlab started: its host \
             has a share in every latency.</p>\n"
        }
        Some(TimeDomain::Silicon) | None => "",
    }
}

/// The place of a chart, what it is made after, and what stands below it.
fn figure(chart: &Chart, after: &str, below: &str) -> String {
    let (name, title, mut about) = (&chart.name, escaped(&chart.title), escaped(&chart.about));
    if !after.is_empty() {
        about = format!("After {}. {about}", escaped(after));
    }
    format!(
        "<figure aria-labelledby=\"{name}-title\">\n<h2 id=\"{name}-title\">{title}</h2>\n\
         <figcaption>{about}</figcaption>\n\
         <div class=\"chart\" id=\"{name}\" role=\"img\" aria-label=\"{title}\">\
         The picture needs JavaScript; the numbers below do not.</div>\n{below}</figure>\n"
    )
}

fn scripts(charts: &[&Chart]) -> String {
    let data = serde_json::to_string(charts).expect("charts are plain data");
    // In JSON a `<` stands in strings only, and there it may be written so that no tag ends here.
    let data = data.replace('<', "\\u003c");
    format!(
        "<script id=\"charts\" type=\"application/json\">{data}</script>\n\
         <script id=\"code\" type=\"text/plain\">{}</script>\n<script>\n{START}</script>\n",
        BASE64.encode(CHARTS)
    )
}

/// The day and minute of a time since 1970, in UTC.
fn date(since_1970: Nanos) -> String {
    let minutes = since_1970.0 / 60_000_000_000;
    let days = minutes / 1440;
    // Howard Hinnant's civil_from_days: years that begin in March keep the leap day last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::picture::charts;
    use crate::format::picture::tests::{sample_explained, sample_scan, source};

    #[test]
    fn nothing_in_a_record_becomes_markup() {
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
        scan.regions[0].function = Some(text.to_owned());
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
            page.contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;&#39;")
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let of = |seconds| date(Nanos::from_secs(seconds));
        assert_eq!(of(0), "1970-01-01 00:00 UTC");
        assert_eq!(of(1_709_210_100), "2024-02-29 12:35 UTC");
        assert_eq!(of(1_795_172_640), "2026-11-20 11:04 UTC");
    }
}
