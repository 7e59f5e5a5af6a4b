//! Charts as PNG files: the SVG files at twice their size, with an embedded font so that they look
//! the same on every machine.

use super::output::{Destination, Format, write_charts};
use super::svg;
use flate2::read::GzDecoder;
use latlab_part::part::About;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::io::Read as _;

/// The format in the table of output formats.
pub(super) const FORMAT: Format = Format {
    about: About {
        name: "png",
        summary: "Write the charts (histogram, ccdf, timeline, scan-CALL) as PNG files",
    },
    option: "png",
    short: None,
    destination: Destination::Folder,
    needs_explanation: false,
    write: |contents, folder| {
        write_charts(folder, contents.charts, "png", |chart| draw(&svg::draw(chart)))
    },
};

/// Pixels of the PNG for each pixel of the SVG.
const SCALE: u16 = 2;

/// The font, compressed.
static FONT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/font.gz"));

/// Converts one of our SVG pictures.
pub fn draw(svg: &str) -> Vec<u8> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    let mut font = Vec::new();
    GzDecoder::new(FONT).read_to_end(&mut font).expect("the build compressed it");
    fonts.load_font_data(font);
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(svg, &options).expect("our own SVG is valid");
    let size = tree.size().to_int_size();
    let scale = u32::from(SCALE);
    let mut pixels = Pixmap::new(size.width() * scale, size.height() * scale)
        .expect("a picture is not empty and fits into memory");
    let transform = Transform::from_scale(SCALE.into(), SCALE.into());
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels.encode_png().expect("encoding to memory does not fail")
}
