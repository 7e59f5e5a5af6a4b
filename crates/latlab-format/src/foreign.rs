//! Text of a program on another machine, which comes in pieces.

use super::harmless;

/// Makes pieces of text from elsewhere harmless for a terminal. A character may lie in two pieces.
#[derive(Debug, Default)]
pub struct Foreign {
    /// The begin of a character whose rest has not come yet.
    begun: Vec<u8>,
}

impl Foreign {
    /// The text up to the last whole character, without control characters but line ends and tabs.
    pub fn text(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
        // Only the begin of a character is no error at the end of a piece.
        let is_begun = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
        if is_begun {
            self.begun = bytes.split_off(bytes.len() - last.len());
        }
        harmless(&String::from_utf8_lossy(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_pieces_keeps_its_lines_and_no_escape_sequences() {
        let text = "größer\t\u{9b}2J\r\n\u{1b}]0;owned\u{7}€ 𝄞\n".as_bytes();
        for length in 1..=text.len() {
            let mut foreign = Foreign::default();
            let shown: String = text.chunks(length).map(|piece| foreign.text(piece)).collect();
            assert_eq!(shown, "größer\t 2J \n ]0;owned € 𝄞\n", "{length}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_at_once() {
        let mut foreign = Foreign::default();
        assert_eq!(foreign.text(b"a\x9b2J\xff"), "a\u{fffd}2J\u{fffd}");
        assert_eq!(foreign.text(b"\xe2\x82"), "");
        assert_eq!(foreign.text(b"\x1b[2J"), "\u{fffd} [2J");
    }
}
