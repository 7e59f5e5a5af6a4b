//! Tokens of claims.

use super::super::quantity::Quantity;
use super::Fault;
use crate::time::Nanos;

/// A token, and the byte offsets of its beginning and its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) word: Word,
    pub(super) at: usize,
    pub(super) end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Value(Quantity),
    Name(String),
    /// `+`, `<=`, `(` and the like, and `and`.
    Sign(&'static str),
}

const SIGNS: [&str; 12] = ["<=", ">=", "==", "<", ">", "+", "-", "*", "/", "(", ")", ","];

/// Splits a claim into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (word, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() || first == '.' {
            let length = rest.find(|c: char| !is_of_number(c)).unwrap_or(rest.len());
            (Word::Value(value(&rest[..length], at)?), length)
        } else if first.is_ascii_alphabetic() || rest.starts_with("*.") {
            let length = length_of_name(rest);
            match &rest[..length] {
                "and" => (Word::Sign("and"), length),
                name => (Word::Name(name.to_owned()), length),
            }
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Word::Sign(sign), sign.len())
        } else {
            let why = format!("unexpected '{first}': a comparison is <, <=, >, >= or ==");
            return Err(Fault { at, why });
        };
        tokens.push(Token { word, at, end: at + length });
        at += length;
    }
    Ok(tokens)
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '%')
}

fn value(text: &str, at: usize) -> Result<Quantity, Fault> {
    if let Ok(number) = text.parse::<f64>()
        && number.is_finite()
        && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        return Ok(Quantity::number(number));
    }
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    if let Some(percent) = percent.filter(|percent| percent.is_finite()) {
        return Ok(Quantity::number(percent / 100.0));
    }
    let time = text.parse::<Nanos>().map(Quantity::time);
    time.map_err(|e| Fault { at, why: e.to_string() })
}

/// Returns the length of a name: words of letters, digits, `_` and inner hyphens, joined by dots; a
/// `*` stands for a word.
fn length_of_name(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_word =
        |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let mut at = 0;
    loop {
        let more = match bytes.get(at) {
            Some(b'.' | b'-') => {
                at > 0 && (is_word(at + 1) || bytes.get(at..at + 2) == Some(b".*"))
            }
            Some(b'*') => at == 0 || bytes[at - 1] == b'.',
            Some(_) => is_word(at),
            None => false,
        };
        if !more {
            return at;
        }
        at += 1;
    }
}
