//! The options of cyclictest's command line that say how it measured.

use crate::time::Nanos;

/// What a command line of cyclictest says; absent where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// Whether there is one: options that are not given then have their defaults.
    known: bool,
    words: Vec<String>,
}

impl CommandLine {
    /// Reads the words after the program's name, if the text has a command line of cyclictest with options.
    pub(super) fn of(text: &str) -> CommandLine {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let known = words.iter().any(|word| word.starts_with('-') && word.len() > 1);
        CommandLine { known, words }
    }

    /// The number of its words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The value of an option in its long or its short form.
    fn value(&self, long: &str, short: char) -> Option<&str> {
        let mut words = self.words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if let Some(rest) = word.strip_prefix("--") {
                match rest.split_once('=') {
                    Some((name, value)) if name == long => return Some(value),
                    None if rest == long => return words.peek().copied(),
                    _ => {}
                }
            } else if let Some(rest) =
                word.strip_prefix('-').and_then(|rest| rest.strip_prefix(short))
            {
                return if rest.is_empty() { words.peek().copied() } else { Some(rest) };
            }
        }
        None
    }

    fn has(&self, long: &str, short: char) -> bool {
        let is_short =
            |word: &str| !word.starts_with("--") && word.starts_with('-') && word.contains(short);
        self.words.iter().any(|word| word.trim_start_matches("--") == long || is_short(word))
    }

    fn micros(&self, long: &str, short: char) -> Option<Nanos> {
        self.value(long, short)?.parse().ok().map(Nanos::from_micros)
    }

    /// The period of a thread: the interval, and the distance for each thread before it, which is 0 with a histogram.
    pub(super) fn interval(&self, thread: u64) -> Option<Nanos> {
        if !self.known {
            return None;
        }
        let interval = self.micros("interval", 'i').unwrap_or(Nanos::from_micros(1000));
        let usual = if self.has("smp", 'S') { Nanos(0) } else { Nanos::from_micros(500) };
        let distance = match self.range() {
            Some(_) => Nanos(0),
            None => self.micros("distance", 'd').unwrap_or(usual),
        };
        Some(Nanos(interval.0.saturating_add(distance.0.saturating_mul(thread))))
    }

    /// The end of the histogram's range, in units of the histogram.
    pub(super) fn range(&self) -> Option<u64> {
        let value = |long, short| self.value(long, short)?.parse().ok();
        value("histogram", 'h').or_else(|| value("histofall", 'H'))
    }

    /// Whether values are in nanoseconds.
    pub(super) fn is_in_nanoseconds(&self) -> bool {
        self.words.iter().any(|word| word == "--nsecs" || word == "-N")
    }

    /// The duration that was asked for.
    pub(super) fn duration(&self) -> Option<Nanos> {
        let text = self.value("duration", 'D')?;
        let (number, unit) =
            text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let seconds = match unit {
            "" | "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        Some(Nanos::from_secs(number.parse::<u64>().ok()?.checked_mul(seconds)?))
    }

    /// Policy and priority of the threads.
    pub(super) fn schedule(&self) -> Option<(String, u32)> {
        let priority = self.value("priority", 'p').and_then(|text| text.parse().ok());
        let policy =
            self.value("policy", 'y').map(|text| text.trim_start_matches("SCHED_").to_lowercase());
        match (policy, priority) {
            (None, None) => None,
            (policy, priority) => {
                Some((policy.unwrap_or_else(|| "fifo".to_owned()), priority.unwrap_or(0)))
            }
        }
    }
}
