//! Signature in picture files, by which a study recognises its own files and removes no others.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

const SIGNATURE: &str = "drawn by latlab study";

/// Returns an SVG picture with the signature.
pub fn svg(picture: &str) -> String {
    let (tag, rest) = picture.split_at(picture.find('>').map_or(0, |end| end + 1));
    format!("{tag}<!-- {SIGNATURE} -->{rest}")
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
    use crate::picture::tests::rendered;
    use latlab_sys::file::write_atomically;

    #[test]
    fn signed_picture_is_unchanged_and_recognised() {
        let plain = "<svg width=\"4\" height=\"2\" xmlns=\"http://www.w3.org/2000/svg\">\
                     <rect width=\"3\" height=\"1\" fill=\"#123456\"/></svg>";
        let svg = svg(plain);
        assert_eq!(rendered(&svg), rendered(plain));
        let folder = tempfile::tempdir().unwrap();
        let is_ours = |bytes: &[u8]| {
            let path = folder.path().join("picture");
            write_atomically(&path, bytes).unwrap();
            is_ours(&path).unwrap()
        };
        assert!(is_ours(svg.as_bytes()));
        assert!(!is_ours(plain.as_bytes()) && !is_ours(b""));
    }
}
