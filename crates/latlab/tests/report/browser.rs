//! Pages in a browser: what it draws, and what is hard to read.

use super::{put, said};
use std::path::Path;
use std::process::Command;

/// Returns the page after its scripts have run, and the log of the browser.
pub(super) fn browse(page: &Path) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    // Beside other tests it needs longer than alone; 60 s until 28 November 2026.
    let output = Command::new("timeout")
        .args(["180", "/usr/bin/chromium", "--headless=new", "--no-sandbox"])
        .args(["--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args([
            "--disable-sync",
            "--enable-logging=stderr",
            "--v=0",
            "--run-all-compositor-stages-before-draw",
        ])
        .args(["--window-size=1200,2400", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("coreutils are installed");
    assert!(
        output.status.success(),
        "this test needs a working /usr/bin/chromium (Debian's chromium package): {}",
        said(&output)
    );
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    (dom, said(&output))
}

/// Tells the page around it what is hard to read, once the charts are drawn.
const LOOK: &str = r#"<script>
const looking = setInterval(() => {
  const root = document.documentElement;
  if (root.dataset.drawn === undefined) return;
  clearInterval(looking);
  const said = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  if (root.scrollWidth > innerWidth) said.push(`the page scrolls sideways to ${root.scrollWidth}`);
  const headings = all("h1, h2, h3").map((heading) => heading.textContent.trim());
  headings.filter((text, n) => headings.indexOf(text) !== n).forEach((text) => said.push(`twice: ${text}`));
  for (const text of all(".chart text, .drawing div, .drawing span")) {
    const words = text.textContent.trim();
    if (!words || text.children.length || text.getClientRects().length === 0) continue;
    const matrix = text.getScreenCTM?.();
    const size = parseFloat(getComputedStyle(text).fontSize) * (matrix ? Math.hypot(matrix.a, matrix.b) : 1);
    if (size < 9) said.push(`${size} px: ${words}`);
    if (/^\d+\/\d+$/.test(words)) said.push(`a legend has pages: ${words}`);
    const [box, around] = [text, text.closest(".chart, .drawing")].map((one) => one.getBoundingClientRect());
    if (box.right > around.right + 2 || box.left < around.left - 2) said.push(`cut: ${words}`);
  }
  for (const table of innerWidth > 1000 ? all(".wide") : []) {
    if (table.scrollWidth > table.clientWidth) said.push(`a table is cut: ${table.getAttribute("aria-label")}`);
  }
  parent.postMessage(said, "*");
}, 20);
</script></body>"#;

/// Returns what is hard to read on pages in `folder`, at a width in pixels.
pub(super) fn hard_to_read(folder: &Path, pages: &[&str], width: u32) -> Vec<String> {
    let frames = pages.iter().enumerate().map(|(n, page)| {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        put(folder, &format!("look-{n}.html"), &text.replace("</body>", LOOK));
        format!("<iframe src='look-{n}.html'></iframe>")
    });
    let frames: String = frames.collect();
    let around = format!(
        "<pre></pre><script>addEventListener('message', ({{ data }}) => document.querySelector('pre')\
         .append(...data.map((one) => one + '\\n'), 'looked\\n'))</script>\
         <style>iframe {{ width: {width}px; height: 2000px; border: 0 }}</style>{frames}"
    );
    put(folder, "around.html", &around);
    // A headless browser may end before its first frame.
    let mut looks = (0..3).map(|_| look(&folder.join("around.html")));
    let all = looks.find(|(looked, _)| *looked == pages.len());
    all.unwrap_or_else(|| panic!("not all pages were drawn at {width} px: {pages:?}")).1
}

/// Returns the number of pages that were drawn, and what is hard to read on them.
fn look(page: &Path) -> (usize, Vec<String>) {
    let (dom, _) = browse(page);
    let (_, said) = dom.split_once("<pre>").unwrap();
    let said = said.split_once("</pre>").unwrap().0.lines().map(str::to_owned);
    let (looked, complaints): (Vec<_>, Vec<_>) = said.partition(|line| line == "looked");
    (looked.len(), complaints)
}

/// Returns the figure with this id.
pub(super) fn drawn<'a>(dom: &'a str, id: &str) -> &'a str {
    let (_, rest) = dom.split_once(&format!("id=\"{id}\"")).unwrap();
    rest.split_once("</figure>").unwrap().0
}

/// Returns the numbers of corners of the lines in a drawing, without grid and icons.
pub(super) fn corners(drawing: &str) -> Vec<usize> {
    let paths = drawing.split("<path d=\"").skip(1);
    let paths = paths.map(|path| path.split_once('"').unwrap().0);
    let corners = paths.map(|path| path.split_ascii_whitespace().count() / 2);
    corners.filter(|corners| *corners > 40).collect()
}
