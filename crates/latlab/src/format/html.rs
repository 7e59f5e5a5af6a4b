//! The report as one page that needs no network: pictures, numbers, machine, plan, all in a file.

mod drawing;
mod explained;
mod facts;
mod numbers;
mod paths;
mod scans;
mod table;
mod verdict;

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

/// The whole page.
pub(crate) fn page(sources: &[Source], charts: &[Chart]) -> String {
    let names: Vec<&str> = sources.iter().map(|s| s.name.as_str()).collect();
    let title = escaped(&format!("{} – latlab report", names.join(", ")));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    page += &header(sources);
    page += &warnings(sources);
    page += "<p class=\"note hint\">In the pictures: pointing shows numbers, Ctrl and the wheel \
             zoom, dragging moves, a click on a name hides its line.</p>\n";
    for chart in charts {
        page += &figure(chart);
    }
    page += &explained::pictures(sources);
    page += &paths::pictures(sources);
    page += &explained::tables(sources);
    page += &scans::tables(sources);
    page += &numbers::tables(sources);
    page += &facts::tables(sources);
    page += "</main>\n";
    page += &scripts(charts);
    page += "</body>\n</html>\n";
    page
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
    let domain = sources.first().map(|s| s.record.machine.time_domain);
    text += match domain {
        Some(TimeDomain::Instructions) => {
            "<p class=\"note\">Time here is the number of instructions of a simulated machine: \
             exactly repeatable, but not the time of any real one.</p>\n"
        }
        Some(TimeDomain::Virtualized) => {
            "<p class=\"note\">Measured in a virtual machine that latlab started: its host \
             has a share in every latency.</p>\n"
        }
        Some(TimeDomain::Silicon) | None => "",
    };
    text + "</header>\n"
}

fn warnings(sources: &[Source]) -> String {
    let mut items = String::new();
    for source in sources {
        for warning in &source.record.warnings {
            let place =
                if sources.len() > 1 { format!("{}: ", source.name) } else { String::new() };
            let _ = writeln!(items, "<li>{}{}</li>", escaped(&place), escaped(&warning.text));
        }
    }
    if items.is_empty() {
        return items;
    }
    format!(
        "<aside class=\"warnings\" role=\"note\" aria-label=\"Warnings\">\n<h2>Before you believe it</h2>\n<ul>\n{items}</ul>\n</aside>\n"
    )
}

fn figure(chart: &Chart) -> String {
    let (name, title, about) = (&chart.name, escaped(&chart.title), escaped(&chart.about));
    format!(
        "<figure aria-labelledby=\"{name}-title\">\n<h2 id=\"{name}-title\">{title}</h2>\n\
         <figcaption>{about}</figcaption>\n\
         <div class=\"chart\" id=\"{name}\" role=\"img\" aria-label=\"{title}\">\
         The picture needs JavaScript; the numbers below do not.</div>\n</figure>\n"
    )
}

fn scripts(charts: &[Chart]) -> String {
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
        hostile.record.worst[0].causes[0].who = text.to_owned();
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
