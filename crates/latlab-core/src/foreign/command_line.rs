//! The command line of a program of rt-tests: the options that say how it measured.

use crate::time::Nanos;

/// What a command line says; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// Options by their long names, and their values.
    options: Vec<(String, Option<String>)>,
}

/// Options with a value, in their short and in their long form.
const VALUED: [(char, &str); 13] = [
    ('b', "breaktrace"),
    ('c', "clock"),
    ('d', "distance"),
    ('D', "duration"),
    ('F', "fifo"),
    ('h', "histogram"),
    ('H', "histofall"),
    ('i', "interval"),
    ('l', "loops"),
    ('o', "oscope"),
    ('p', "priority"),
    ('y', "policy"),
    ('T', "tracer"),
];

/// Options without a value.
const FLAGS: [(char, &str); 2] = [('N', "nsecs"), ('S', "smp")];

/// Short options with a value that may follow at once.
const OPTIONAL: [char; 3] = ['a', 'A', 't'];

impl CommandLine {
    /// Reads the words after the program's name.
    pub(super) fn of(text: &str) -> CommandLine {
        let mut options = Vec::new();
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let mut next = || words.next_if(|next| !next.starts_with('-')).map(str::to_owned);
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None if VALUED.iter().any(|(_, name)| *name == long) => (long, next()),
                    None => (long, None),
                };
                let name = if name == "prio" { "priority" } else { name };
                options.push((name.to_owned(), value));
            } else if let Some(letters) = word.strip_prefix('-') {
                options.extend(short(letters, next));
            }
        }
        CommandLine { options }
    }

    /// The number of its options.
    pub(super) fn len(&self) -> usize {
        self.options.len()
    }

    /// Whether there is one: options that are not given then have their defaults.
    fn is_known(&self) -> bool {
        !self.options.is_empty()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(option, _)| option == name)?.1.as_deref()
    }

    fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(option, _)| option == name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }

    fn micros(&self, name: &str) -> Option<Nanos> {
        self.number(name)?.checked_mul(1_000).map(Nanos)
    }

    /// The period of a thread: the interval, and the distance for each thread before it, which is 0 with a histogram.
    pub(super) fn interval(&self, thread: u64) -> Option<Nanos> {
        if !self.is_known() {
            return None;
        }
        let interval = self.micros("interval").unwrap_or(Nanos::from_micros(1000));
        let distance = match self.range() {
            Some(_) => Nanos(0),
            None if self.has("smp") => Nanos(0),
            None => self.micros("distance").unwrap_or(Nanos::from_micros(500)),
        };
        let interval = interval.0.saturating_add(distance.0.saturating_mul(thread));
        // Shorter ones are no periods.
        (interval >= 1_000).then_some(Nanos(interval))
    }

    /// The end of the histogram's range, in units of the histogram.
    pub(super) fn range(&self) -> Option<u64> {
        self.number("histogram").or_else(|| self.number("histofall"))
    }

    /// The last bucket of oslat, which has everything above, too.
    pub(super) fn last_bucket(&self) -> u64 {
        self.number("bucket-size").or_else(|| self.number("breaktrace")).unwrap_or(32)
    }

    /// Whether values are in nanoseconds.
    pub(super) fn is_in_nanoseconds(&self) -> bool {
        self.has("nsecs")
    }

    /// The duration that was asked for.
    pub(super) fn duration(&self) -> Option<Nanos> {
        let text = self.value("duration")?;
        let (number, unit) =
            text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let seconds: u64 = match unit {
            "" | "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        let seconds = number.parse::<u64>().ok()?.checked_mul(seconds)?;
        seconds.checked_mul(1_000_000_000).map(Nanos)
    }

    /// The periods of a thread that passed if the run took the whole time that was asked for; none where something
    /// else could end it.
    pub(super) fn periods(&self, thread: u64) -> Option<u64> {
        if self.has("breaktrace") || self.has("loops") {
            return None;
        }
        Some(self.duration()?.0 / self.interval(thread)?.0.max(1))
    }

    /// Policy and priority of the threads.
    pub(super) fn schedule(&self) -> Option<(String, u32)> {
        if !self.is_known() {
            return None;
        }
        let priority = self.value("priority").and_then(|text| text.parse().ok()).unwrap_or(0);
        let policy =
            self.value("policy").map(|text| text.trim_start_matches("SCHED_").to_lowercase());
        let usual = if priority > 0 { "fifo" } else { "other" };
        Some((policy.unwrap_or_else(|| usual.to_owned()), priority))
    }
}

/// The short options of a word, `letters`; the last may have its value in the `next` word.
fn short(letters: &str, mut next: impl FnMut() -> Option<String>) -> Vec<(String, Option<String>)> {
    let mut options = Vec::new();
    for (at, letter) in letters.char_indices() {
        let rest = &letters[at + letter.len_utf8()..];
        if let Some((_, name)) = VALUED.iter().find(|(short, _)| *short == letter) {
            let value = if rest.is_empty() { next() } else { Some(rest.to_owned()) };
            options.push(((*name).to_owned(), value));
            return options;
        }
        let flag = FLAGS.iter().find(|(short, _)| *short == letter);
        options.push((flag.map_or(letter.to_string(), |(_, name)| (*name).to_owned()), None));
        if OPTIONAL.contains(&letter) {
            return options;
        }
    }
    options
}
