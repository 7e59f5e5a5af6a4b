//! Brief messages: texts from elsewhere are cut, so that none fills a terminal or a log.

use std::borrow::Cow;

/// The most characters of a text from elsewhere.
const TEXT: usize = 120;
/// The most characters of a word of a message: a text that was cut before, in quotes and with its …, stays.
const WORD: usize = TEXT + 10;
/// The most characters of a word with a slash: the longest path of Linux.
const PATH: usize = 4_096;
/// The most characters of a line of a message.
const LINE: usize = 4_096;

/// The first 120 characters of a text, with … and the length of a longer one.
pub fn text(text: &str) -> Cow<'_, str> {
    cut(text, TEXT, TEXT)
}

/// A message in which long words, such as a value of a file, are cut as [`text`] does. A path stays whole,
/// so that it can be used; a line of a message has at most 4096 characters.
pub fn message(message: &str) -> Cow<'_, str> {
    if message.len() <= TEXT {
        return message.into();
    }
    let lines = message.split('\n').map(|line| {
        let words = line.split(' ').map(|word| {
            if word.contains('/') { cut(word, PATH, PATH) } else { cut(word, WORD, TEXT) }
        });
        let words: Vec<Cow<'_, str>> = words.collect();
        cut(&words.join(" "), LINE, LINE).into_owned()
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").into()
}

/// A text of more than `most` characters is cut after the first `kept`.
fn cut(text: &str, most: usize, kept: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return text.into();
    }
    let begin: String = text.chars().take(kept).collect();
    format!("{begin}… ({} characters)", text.chars().count()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_with_its_length() {
        let long = "é".repeat(121);
        assert_eq!(text(&long), format!("{}… (121 characters)", "é".repeat(120)));
        assert_eq!(text(&long[..240]), long[..240]);
    }

    #[test]
    fn message_keeps_sentences_and_paths_and_cuts_values() {
        let sentence = "a sentence of words, as long as it needs to be. ".repeat(20);
        assert_eq!(message(&sentence), sentence);
        let path = format!("/{}: no such file\n  a second line", "folder/".repeat(100));
        assert_eq!(message(&path), path);
        let value = format!("bad CPU '{}' in {path}", "x".repeat(10_000_000));
        let brief = format!("bad CPU '{}… (10000002 characters) in {path}", "x".repeat(119));
        assert_eq!(message(&value), brief);
        assert_eq!(message(&brief), brief, "it was cut before");
        let blanks = message(&"x ".repeat(1_000_000)).into_owned();
        assert!(blanks.chars().count() < 4_200 && blanks.ends_with("… (2000000 characters)"));
    }
}
