//! Pages in a browser: what it draws, what it complains of, and what is hard to read.
//!
//! The browser is driven through the protocol of its developer tools, over pipes: the test goes on when a page is drawn, however
//! long that takes.

use latlab_testing::Patience;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A browser with one page. It ends with the test.
pub(super) struct Browser {
    process: Child,
    requests: File,
    /// Answers and events.
    messages: Receiver<Value>,
    number: u64,
    session: Value,
    complaints: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser.
    pub(super) fn start() -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let pipe = |name: &str| folder.path().join(name);
        let made = Command::new("mkfifo").args([pipe("in"), pipe("out")]).status();
        assert!(made.expect("coreutils are installed").success());
        // It reads requests from descriptor 3, and writes answers to 4.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "exec 3<\"$1/in\" 4>\"$1/out\"; shift; exec \"$@\"", "sh"])
            .arg(folder.path());
        shell.args([
            "/usr/bin/chromium",
            "--headless=new",
            "--no-sandbox",
            "--remote-debugging-pipe",
        ]);
        shell.args(["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]);
        shell.args(["--disable-background-networking", "--disable-component-update"]);
        shell.arg("--window-size=1200,2400");
        shell.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        let process =
            shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("sh starts");
        // Opened for reading and writing, so that it does not wait for a browser that does not start.
        let open = |name| OpenOptions::new().read(true).write(true).open(pipe(name)).unwrap();
        let (requests, answers) = (open("in"), open("out"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                let _ = sender.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let session = Value::Null;
        let complaints = Vec::new();
        let number = 0;
        let mut browser =
            Browser { process, requests, messages, number, session, complaints, _folder: folder };
        browser.attach();
        browser
    }

    /// Opens the page that all pages are loaded into.
    fn attach(&mut self) {
        let page = self.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        self.session = self.ask("Target.attachToTarget", &attach)["sessionId"].take();
        for domain in ["Page", "Runtime", "Log"] {
            self.ask(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Loads a page, and waits until its element `html` has this attribute, as `data-drawn` once all charts are
    /// drawn. Returns the page as it is then. Panics where the browser complained of it.
    pub(super) fn load(&mut self, page: &Path, attribute: &str) -> String {
        let url = format!("file://{}", page.display());
        self.ask("Page.navigate", &json!({ "url": url }));
        let document = "document.documentElement";
        let is_there =
            format!("location.href === {url:?} && {document}.hasAttribute({attribute:?})");
        let dom = self.evaluate(&format!(
            "new Promise((resolve) => setInterval(() => {{ if ({is_there}) resolve({document}.outerHTML); }}, 10))"
        ));
        assert_eq!(self.complaints, Vec::<String>::new(), "{}", page.display());
        dom.as_str().unwrap().to_owned()
    }

    /// Makes the page as wide as a screen of this many pixels.
    pub(super) fn set_width(&mut self, width: u32) {
        let screen =
            json!({ "width": width, "height": 2000, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", &screen);
    }

    /// The value of an expression of JavaScript on the page, or of the promise that it is.
    pub(super) fn evaluate(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.ask("Runtime.evaluate", &asked);
        assert_eq!(answer["exceptionDetails"], Value::Null, "{expression}");
        answer["result"]["value"].take()
    }

    /// Sends a request and returns its result.
    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut request = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_null() {
            request["sessionId"] = self.session.clone();
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        loop {
            let mut message = self.receive(method);
            if message["id"] == self.number {
                assert_eq!(message["error"], Value::Null, "{method}");
                return message["result"].take();
            }
            self.note(&message);
        }
    }

    /// The next message.
    fn receive(&mut self, method: &str) -> Value {
        let mut patience = Patience::new(Duration::from_mins(3));
        loop {
            match self.messages.recv_timeout(Duration::from_millis(20)) {
                Ok(message) => return message,
                Err(RecvTimeoutError::Disconnected) => panic!("{method}: the browser has ended"),
                Err(RecvTimeoutError::Timeout) => {
                    let ended = self.process.try_wait().unwrap();
                    assert_eq!(ended, None, "make test installs a working /usr/bin/chromium");
                    assert!(!patience.is_over(), "{method}: the browser does not answer");
                }
            }
        }
    }

    /// Keeps what an event complains of.
    fn note(&mut self, event: &Value) {
        let complains = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        if event["method"].as_str().is_some_and(|method| complains.contains(&method)) {
            self.complaints.push(event["params"].to_string());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the page once its charts are drawn.
pub(super) fn browse(page: &Path) -> String {
    Browser::start().load(page, "data-drawn")
}

/// What is hard to read on a page whose charts are drawn.
const HARD_TO_READ: &str = r#"(() => {
  const root = document.documentElement;
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
  return said;
})()"#;

/// Asserts that pages in `folder` are easy to read on a narrow and on a wide screen.
pub(super) fn assert_readable(folder: &Path, pages: &[&str]) {
    let mut browser = Browser::start();
    for width in [400, 1300] {
        browser.set_width(width);
        for page in pages {
            browser.load(&folder.join(page), "data-drawn");
            let complaints = browser.evaluate(HARD_TO_READ);
            assert_eq!(complaints, json!([]), "{page} at {width} pixels");
        }
    }
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
