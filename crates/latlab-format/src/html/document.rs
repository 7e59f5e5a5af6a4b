//! Frame of every page: head, style sheet, body, and the scripts that draw the charts.

use crate::picture::Chart;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// ECharts and charts.js, compressed by the build; the page decompresses them.
static CHARTS: &[u8] = include_bytes!(env!("LATLAB_CHARTS"));
static STYLE: &str = include_str!("page.css");
static START: &str = include_str!("start.js");

/// The page may load nothing, whatever a record contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data: blob:";

/// Returns a complete page that needs no network, with the code and the data of its charts, if
/// there are any.
pub(super) fn document(title: &str, body: &Markup, charts: &[&Chart]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                @if !charts.is_empty() { (scripts(charts)) }
            }
        }
    };
    page.into_string()
}

/// The charts as a JSON data island, the drawing code, and the script that starts it.
fn scripts(charts: &[&Chart]) -> Markup {
    let code = BASE64.encode(CHARTS);
    html! {
        script id="charts" type="application/json" { (PreEscaped(data_island(charts))) }
        script id="code" type="text/plain" { (PreEscaped(code)) }
        script { (PreEscaped(START)) }
    }
}

/// JSON that can't end the script element it is in: `<` occurs only inside strings, where an
/// escape sequence may replace it.
fn data_island(charts: &[&Chart]) -> String {
    let json = serde_json::to_string(charts).expect("charts are plain data");
    json.replace('<', "\\u003c")
}
