//! The width of text: on a terminal, lines are wrapped to its columns; in a pipe or a file, they are
//! left whole and digits are not grouped, for programs that parse them.

use latlab_sys::terminal;

/// The columns of a terminal, or none in a pipe or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(Option<usize>);

impl Width {
    /// The width of what stdout writes to.
    pub fn of_stdout() -> Width {
        Width(terminal::stdout_columns().map(usize::from))
    }

    /// The width of what stderr writes to.
    pub fn of_stderr() -> Width {
        Width(terminal::stderr_columns().map(usize::from))
    }

    /// Whether a line of so many characters fits.
    pub fn fits(self, length: usize) -> bool {
        self.0.is_none_or(|columns| length <= columns)
    }

    /// The columns, but at most `most`.
    pub fn at_most(self, most: usize) -> usize {
        self.0.map_or(most, |columns| columns.min(most))
    }

    /// The columns at which sentences are wrapped: the terminal's, but at most `most`. Without a
    /// terminal they are not wrapped.
    pub fn wraps_at(self, most: usize) -> usize {
        self.0.map_or(usize::MAX, |columns| columns.min(most))
    }

    /// Wraps the lines of a text that is printed on a terminal; removes the spaces between groups of
    /// digits from any other.
    pub fn lay_out(self, text: &str) -> String {
        let lines = text.split('\n');
        let lines = lines.map(|line| match self.0 {
            Some(columns) if length(line) > columns => hanging(line, columns),
            Some(_) => line.to_owned(),
            None => ungrouped(line),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Width {
    /// The width of a pipe or a file.
    pub const UNLIMITED: Width = Width(None);

    /// The width of a terminal with so many columns.
    pub const fn columns(columns: usize) -> Width {
        Width(Some(columns))
    }
}

/// Wraps a line. The lines after the first begin below its last column, where it is a row of two or
/// more, as in a list of names with descriptions; further left, if a word is too long for that.
fn hanging(line: &str, columns: usize) -> String {
    let (first, text) = line.split_at(start_of_text(line, columns * 2 / 3));
    let pieces = pieces(text.trim_end(), columns.saturating_sub(length(first)));
    let longest = pieces.iter().map(|(_, piece)| length(piece)).max().unwrap_or(0);
    let indent = length(first).min(columns.saturating_sub(longest));
    let mut lines = vec![first.to_owned()];
    for (gap, piece) in pieces {
        match lines.last_mut() {
            Some(line) if length(line) + length(gap) + length(piece) <= columns => {
                line.push_str(gap);
                line.push_str(piece);
            }
            // Nothing precedes a word that is too long.
            Some(line) if line.trim().is_empty() => *line = format!("{:indent$}{piece}", ""),
            _ => lines.push(format!("{:indent$}{piece}", "")),
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// The byte at which the last column that begins before `limit` begins. Two blanks or more separate
/// columns.
fn start_of_text(line: &str, limit: usize) -> usize {
    let begins = |at: usize| {
        !line[at..].starts_with(' ') && (line[..at].ends_with("  ") || line[..at].trim().is_empty())
    };
    let starts = line.char_indices().take(limit).map(|(at, _)| at);
    starts.filter(|at| begins(*at)).last().unwrap_or(0)
}

/// Wraps text at `width` characters. A command in backticks stays on one line, so that it can be
/// copied, unless it is longer than a line.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (gap, piece) in pieces(text.trim(), width) {
        match lines.last_mut() {
            Some(line) if length(line) + length(gap) + length(piece) <= width => {
                line.push_str(gap);
                line.push_str(piece);
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines
}

/// Splits text into words and commands, each with the blanks before it. A command has the punctuation
/// around it, and is split where it is longer than a line.
fn pieces(text: &str, width: usize) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (gap, words) = rest.split_at(rest.len() - rest.trim_start().len());
        let end = command_end(words)
            .filter(|end| length(&words[..*end]) <= width)
            .or_else(|| words.find(' '))
            .unwrap_or(words.len());
        pieces.push((gap, &words[..end]));
        rest = &words[end..];
    }
    pieces
}

/// The end of the first piece if a command begins in it: the first blank after the command.
fn command_end(text: &str) -> Option<usize> {
    let start = text.find(['`', ' ']).filter(|start| text[*start..].starts_with('`'))?;
    let close = start + 1 + text[start + 1..].find('`')?;
    Some(text[close..].find(' ').map_or(text.len(), |blank| close + blank))
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The separator of groups of three digits: a narrow no-break space.
pub(super) const SEPARATOR: char = '\u{202f}';

/// Removes the separators of digits. A number in a column keeps its right edge.
fn ungrouped(line: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(SEPARATOR) {
        let start = rest[..at].rfind(|c: char| !c.is_ascii_digit());
        let start = start.map_or(0, |before| rest[..at].ceil_char_boundary(before + 1));
        let end = rest[at..].find(|c: char| !c.is_ascii_digit() && c != SEPARATOR);
        let end = end.map_or(rest.len(), |end| at + end);
        text.push_str(&rest[..start]);
        if text.ends_with("  ") && !text.trim().is_empty() {
            text.extend(rest[start..end].chars().filter(|c| *c == SEPARATOR).map(|_| ' '));
        }
        text.extend(rest[start..end].chars().filter(|c| *c != SEPARATOR));
        rest = &rest[end..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_all_words_and_short_commands_whole() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("so (`echo 1 > a b`; x", 17), ["so", "(`echo 1 > a b`;", "x"]);
        assert_eq!(wrapped("`echo 1 > a b`", 8), ["`echo 1", "> a b`"]);
        assert_eq!(wrapped("`never closed", 8), ["`never", "closed"]);
        assert_eq!(wrapped("a very-long-word", 4), ["a", "very-long-word"]);
        assert_eq!(wrapped("a   b c", 5), ["a   b", "c"]);
        assert!(wrapped(" ", 4).is_empty());
    }

    #[test]
    fn terminal_wraps_below_the_last_column() {
        let narrow = |text| Width::columns(20).lay_out(text);
        assert_eq!(narrow("short\n\n  also\n"), "short\n\n  also\n");
        assert_eq!(narrow("a sentence of several words"), "a sentence of\nseveral words");
        assert_eq!(
            narrow("  fork  starts many processes"),
            "  fork  starts many\n        processes"
        );
        assert_eq!(narrow("  indented sentence here"), "  indented sentence\n  here");
        assert_eq!(narrow("  12 us  in a-very-long-symbol"), "  12 us  in\n  a-very-long-symbol");
        assert_eq!(narrow("a-word-of-several-syllables"), "a-word-of-several-syllables");
        assert_eq!(narrow("1\u{202f}000"), "1\u{202f}000");
    }

    #[test]
    fn pipe_gets_whole_lines_and_plain_digits() {
        let line = "12\u{202f}345 of 1\u{202f}000\u{202f}000 samples ".repeat(9);
        assert_eq!(Width::UNLIMITED.lay_out(&line), "12345 of 1000000 samples ".repeat(9));
        let row = "cyclic  19\u{202f}997  1\u{202f}000\n";
        assert_eq!(Width::UNLIMITED.lay_out(row), "cyclic   19997   1000\n");
        assert_eq!(Width::UNLIMITED.lay_out("5 us – 10 us\u{202f}x"), "5 us – 10 usx");
    }
}
