//! The forms results are shown in: text, and pictures.

pub(crate) mod html;
pub(crate) mod picture;
pub(crate) mod png;
pub(crate) mod svg;

use latlab_core::time::Nanos;

/// A time as pages and pictures show it, where every font has a µ.
pub(crate) fn micro(time: Nanos) -> String {
    time.to_string().replace(" us", " µs")
}

/// A count with its digits in groups of three, apart by a narrow space that does not break.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}
