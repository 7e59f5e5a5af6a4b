//! Signature in picture files, by which a study recognises its own files and removes no others.

use flate2::Crc;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

const SIGNATURE: &str = "drawn by latlab study";

/// End of the first chunk of a PNG file, which is its header (<https://www.w3.org/TR/png/>).
const HEADER_END: usize = 33;

/// Returns an SVG picture with the signature.
pub fn svg(picture: &str) -> String {
    let (tag, rest) = picture.split_at(picture.find('>').map_or(0, |end| end + 1));
    format!("{tag}<!-- {SIGNATURE} -->{rest}")
}

/// Returns a PNG picture with the signature.
pub fn png(picture: &[u8]) -> Vec<u8> {
    let (header, rest) = picture.split_at(HEADER_END.min(picture.len()));
    let text = format!("tEXtSoftware\0{SIGNATURE}");
    let length = u32::try_from(text.len() - 4).expect("the signature is short");
    let mut sum = Crc::new();
    sum.update(text.as_bytes());
    let chunk = [&length.to_be_bytes(), text.as_bytes(), &sum.sum().to_be_bytes()].concat();
    [header, &chunk, rest].concat()
}

/// Whether a file is a picture with the signature.
pub fn is_ours(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(1024).read_to_end(&mut begin)?;
    Ok(begin.windows(SIGNATURE.len()).any(|words| words == SIGNATURE.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::png as drawing;
    use latlab_sys::file::write_atomically;
    use resvg::tiny_skia::Pixmap;

    #[test]
    fn signed_picture_is_unchanged_and_recognised() {
        let plain = "<svg width=\"4\" height=\"2\" xmlns=\"http://www.w3.org/2000/svg\">\
                     <rect width=\"3\" height=\"1\" fill=\"#123456\"/></svg>";
        let (svg, drawn) = (svg(plain), drawing::draw(plain));
        assert_eq!(drawing::draw(&svg), drawn);
        let png = png(&drawn);
        let pixels = |bytes: &[u8]| Pixmap::decode_png(bytes).unwrap().data().to_vec();
        assert_eq!(pixels(&png), pixels(&drawn));
        let folder = tempfile::tempdir().unwrap();
        let is_ours = |bytes: &[u8]| {
            let path = folder.path().join("picture");
            write_atomically(&path, bytes).unwrap();
            is_ours(&path).unwrap()
        };
        assert!(is_ours(svg.as_bytes()) && is_ours(&png));
        assert!(!is_ours(plain.as_bytes()) && !is_ours(&drawn) && !is_ours(b""));
    }
}
