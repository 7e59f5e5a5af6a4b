//! Code that a run time makes while a program runs: its functions by a perf map, the file in which run times
//! name them (`tools/perf/Documentation/jit-interface.txt` of Linux).

use super::report::Frame;
use std::collections::BTreeMap;

/// The functions of a perf map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfMap {
    /// End and name of each by its start. They do not overlap.
    functions: BTreeMap<u64, (u64, String)>,
}

/// A run time: the names of its files without their versions, and how it writes a perf map.
struct RunTime {
    files: &'static [&'static str],
    remedy: &'static str,
}

const RUN_TIMES: [RunTime; 4] = [
    RunTime {
        files: &["python", "libpython"],
        remedy: "start it with -X perf, which Python 3.12 and later has",
    },
    RunTime {
        files: &["node", "nodejs", "libnode"],
        remedy: "start it with --perf-basic-prof --interpreted-frames-native-stack",
    },
    RunTime {
        files: &["java", "libjvm"],
        remedy: "start it with -XX:+PreserveFramePointer, and run jcmd PID Compiler.perfmap before the check ends \
                 (Java 17 and later)",
    },
    RunTime { files: &["dotnet", "libcoreclr"], remedy: "start it with DOTNET_PerfMapEnabled=1" },
];

/// Beginnings of the names of code that belongs to a run time itself.
const OWN_CODE: [&str; 7] =
    ["Builtin:", "BytecodeHandler:", "Stub:", "RegExp:", "Interpreter", "StubRoutines", "~"];
/// The kinds of functions of JavaScript.
const JAVA_SCRIPT: [&str; 5] = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
/// Packages of Java's own classes, also as in a class file.
const JAVA: [&str; 6] = ["java.", "jdk.", "sun.", "Ljava/", "Ljdk/", "Lsun/"];

impl PerfMap {
    /// Reads the text of a perf map: start and size in hexadecimal digits, and the name of each function. Where
    /// several have the same place, the last one counts. Other lines are left out.
    pub fn of(text: &str) -> PerfMap {
        let mut map = PerfMap::default();
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let mut number = || {
                let word = words.next()?;
                u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
            };
            let (Some(start), Some(size)) = (number(), number()) else { continue };
            let Some(name) = words.next() else { continue };
            map.add(start, start.saturating_add(size), name);
        }
        map
    }

    fn add(&mut self, start: u64, end: u64, name: &str) {
        if start >= end {
            return;
        }
        let before = self.functions.range(..end).rev();
        let replaced: Vec<u64> =
            before.take_while(|(_, (ends, _))| *ends > start).map(|(at, _)| *at).collect();
        for at in replaced {
            self.functions.remove(&at);
        }
        self.functions.insert(start, (end, name.to_owned()));
    }

    /// Whether it has no function.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function at an address.
    pub fn frame(&self, address: u64) -> Option<Frame> {
        let (start, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then(|| Frame { offset: address - start, ..of_name(name) })
    }
}

/// A function by its name in a perf map.
fn of_name(name: &str) -> Frame {
    let python = name.strip_prefix("py::").and_then(|rest| rest.split_once(':'));
    if let Some((function, path)) = python {
        let library = path.starts_with('<') || path.contains("/lib/python3");
        return function_of_file(function, path, None, library);
    }
    let script = JAVA_SCRIPT.iter().find_map(|kind| name.strip_prefix(kind));
    if let Some((function, place)) = script.and_then(|rest| rest.split_once(' ')) {
        // How far it is compiled.
        let function = function.trim_start_matches(['~', '^', '+', '*']);
        let (path, line) = place_of_script(place);
        let library = path.starts_with("node:") || path.contains("/node_modules/");
        let function = if function.is_empty() { "(anonymous)" } else { function };
        return function_of_file(function, path, line, library);
    }
    // A type that it returns may stand before Java's method.
    let method = name.split('(').next().and_then(|before| before.rsplit(' ').next());
    let is_javas = JAVA.iter().any(|package| method.is_some_and(|name| name.starts_with(package)));
    let library = is_javas || OWN_CODE.iter().any(|own| name.starts_with(own));
    Frame {
        function: Some(name.to_owned()),
        module: "perf map".to_owned(),
        library,
        ..Frame::default()
    }
}

fn function_of_file(function: &str, path: &str, line: Option<u32>, library: bool) -> Frame {
    let file = path.rsplit('/').next().unwrap_or(path).to_owned();
    let (function, module) = (Some(function.to_owned()), file.clone());
    Frame { function, file: Some(file), line, module, offset: 0, library }
}

/// The path and the line of `path:line:column`.
fn place_of_script(place: &str) -> (&str, Option<u32>) {
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, path) = (parts.next(), parts.next(), parts.next());
    match (path, line.and_then(|line| line.parse().ok())) {
        (Some(path), Some(line)) => (path, Some(line)),
        _ => (place, None),
    }
}

/// Whether a file with that name is a run time, which executes the user's functions.
pub fn is_run_time(file: &str) -> bool {
    run_time(file).is_some()
}

fn run_time(file: &str) -> Option<&'static RunTime> {
    // A version may follow.
    let is_of = |name: &&str| {
        let rest = file.strip_prefix(name);
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next != '.' && !next.is_ascii_digit())
        })
    };
    RUN_TIMES.iter().find(|one| one.files.iter().any(is_of))
}

/// How functions get names that the run time of that file executes. Another program makes code itself.
pub fn how_to_name(file: &str) -> String {
    match run_time(file) {
        Some(known) => {
            format!("{file} executes functions that have no names here: {}", known.remedy)
        }
        None => format!(
            "{file} makes code while it runs, whose functions have no names here: let it write a perf map, \
             /tmp/perf-PID.map"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(map: &PerfMap, address: u64) -> Option<(String, bool)> {
        map.frame(address).map(|frame| (frame.text(), frame.library))
    }

    #[test]
    fn functions_of_run_times_have_their_names_and_files() {
        for (name, expected, library) in [
            ("py::Loop.update:/home/me/loop.py", "Loop.update (loop.py)", false),
            ("py::choice:/usr/lib/python3.12/random.py", "choice (random.py)", true),
            (
                "py::_load:<frozen importlib._bootstrap>",
                "_load (<frozen importlib._bootstrap>)",
                true,
            ),
            ("JS:~update /home/me/a loop.js:12:16", "update (a loop.js:12)", false),
            ("JS:*update file:///home/me/loop.mjs:3:1", "update (loop.mjs:3)", false),
            ("LazyCompile:* /home/me/loop.js:7:1", "(anonymous) (loop.js:7)", false),
            ("JS:^load node:internal/modules/run_main:2:3", "load (run_main:2)", true),
            (
                "Builtin:InterpreterEntryTrampoline",
                "Builtin:InterpreterEntryTrampoline (perf map)",
                true,
            ),
            (
                "void Loop.update(java.lang.String)",
                "void Loop.update(java.lang.String) (perf map)",
                false,
            ),
            ("int java.lang.String.hashCode()", "int java.lang.String.hashCode() (perf map)", true),
            ("java.lang.String Loop.name()", "java.lang.String Loop.name() (perf map)", false),
            ("Ljava/lang/Thread;::run", "Ljava/lang/Thread;::run (perf map)", true),
        ] {
            let map = PerfMap::of(&format!("7f00 20 {name}\n"));
            assert_eq!(text(&map, 0x7f1f), Some((expected.to_owned(), library)));
            assert_eq!((text(&map, 0x7eff), text(&map, 0x7f20)), (None, None));
        }
    }

    #[test]
    fn last_function_of_a_place_counts() {
        let map =
            PerfMap::of("100 100 a\n200 10 b\n0x1f0 0x18 c\n180 0 d\nnonsense\n300 x e\n400 8");
        let names = [0x100, 0x1f0, 0x207, 0x208, 0x180, 0x400].map(|at| {
            let frame = map.frame(at);
            frame.and_then(|frame| frame.function)
        });
        assert_eq!(names, [None, Some("c".to_owned()), Some("c".to_owned()), None, None, None]);
        let end = PerfMap::of("ffffffffffffffff ff a\nfffffffffffffff0 ff b");
        assert_eq!(end.frame(u64::MAX - 1).and_then(|frame| frame.function).as_deref(), Some("b"));
    }

    #[test]
    fn run_time_is_named_with_its_option() {
        for (file, expected) in [
            ("python3.12", true),
            ("libpython3.12.so.1.0", true),
            ("node", true),
            ("libjvm.so", true),
            ("loop", false),
            ("nodelet", false),
            ("node_exporter", false),
        ] {
            assert_eq!(is_run_time(file), expected, "{file}");
        }
        assert!(how_to_name("python3").contains("-X perf"));
        assert!(how_to_name("luajit").contains("perf-PID.map"));
    }
}
