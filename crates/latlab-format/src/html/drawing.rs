//! Drawings of a page that are made without scripts: rows of blocks. A block is as wide as its share
//! of the row, and text has the same size on every screen.

use crate::{micro, picture, printable};
use latlab_core::time::Nanos;
use maud::{Markup, html};

/// Colour of unexplained time.
pub(super) const GREY: &str = "#9aa1ab";

/// Blocks that are narrower, in percent of the row, are left out where there may be thousands: they
/// are invisible.
pub(super) const NARROWEST: f64 = 0.04;

/// Wider blocks are separated from the next one, in percent of the row.
const APART: f64 = 0.4;

/// Rows of a drawing, from top to bottom.
#[derive(Default)]
pub(super) struct Drawing {
    rows: Vec<Row>,
    /// Positions in percent of the row, and their times.
    ticks: Vec<(f64, Nanos)>,
    /// Colours with their names.
    legend: Vec<(&'static str, String)>,
}

/// A row of blocks.
#[derive(Default)]
pub(super) struct Row {
    /// Its name and its value, which may be empty.
    pub(super) name: String,
    pub(super) value: String,
    pub(super) blocks: Vec<Block>,
    /// What the tooltips say, where there are none: on paper and on touch screens.
    pub(super) note: String,
}

/// A coloured block.
pub(super) struct Block {
    /// Its left end and its width, in percent of the row.
    pub(super) place: (f64, f64),
    pub(super) colour: &'static str,
    pub(super) shade: Shade,
    pub(super) title: String,
    /// Text inside, as far as it fits.
    pub(super) text: String,
}

/// Opacity of a block.
#[derive(Clone, Copy)]
pub(super) enum Shade {
    Full,
    /// Text on it is readable.
    Half,
    Faint,
}

impl Drawing {
    pub(super) fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds an axis from 0 to `end` below the rows.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ticks are whole numbers of a few digits"
    )]
    pub(super) fn axis(&mut self, end: Nanos) {
        let step = (picture::round_step(end.0 as f64) as u64).max(1);
        let ticks = (0..=end.0 / step).map(|n| Nanos(n * step));
        self.ticks = ticks.map(|tick| (percent(tick, end), tick)).collect();
    }

    /// Adds a colour to the legend.
    pub(super) fn explain(&mut self, colour: &'static str, name: &str) {
        self.legend.push((colour, printable(name)));
    }

    /// Returns the elements. `id` must be unique on the page.
    pub(super) fn markup(&self, id: &str) -> Markup {
        let nameless = |row: &Row| row.name.is_empty() && row.value.is_empty();
        let class = match self.rows.iter().filter(|row| nameless(row)).count() {
            0 => "drawing",
            all if all == self.rows.len() => "drawing dense bare",
            _ => "drawing dense",
        };
        html! {
            div id=(id) class=(class) {
                @for row in &self.rows { (row.markup()) }
                @if !self.ticks.is_empty() { (self.ticks_markup()) }
            }
            @if !self.legend.is_empty() {
                ul class="legend" {
                    @for (colour, name) in &self.legend {
                        li { span style={ "background:" (colour) } {} (name) }
                    }
                }
            }
        }
    }

    fn ticks_markup(&self) -> Markup {
        html! {
            div class="track ticks" {
                @for (place, time) in &self.ticks {
                    @let side = if *place > 90.0 { "last" } else if *place < 3.0 { "first" } else { "" };
                    span class=(side) style=(format_args!("left:{place:.2}%")) { (micro(*time)) }
                }
            }
        }
    }
}

impl Row {
    fn markup(&self) -> Markup {
        html! {
            div class="row" {
                @if !self.name.is_empty() { div class="name" { (printable(&self.name)) } }
                @if !self.value.is_empty() { div class="value" { (self.value) } }
                div class="track" { @for block in &self.blocks { (block.markup()) } }
                @if !self.note.is_empty() { div class="unhovered" { (printable(&self.note)) } }
            }
        }
    }
}

impl Block {
    fn markup(&self) -> Markup {
        let (from, width) = self.place;
        let (colour, alpha) = (self.colour, self.shade.alpha());
        let style = format!("left:{from:.2}%;width:{width:.2}%;background:{colour}{alpha}");
        html! {
            div class={ "block" @if width > APART { " apart" } } title=(printable(&self.title)) style=(style) {
                @if self.has_room() { span { (printable(&self.text)) } }
            }
        }
    }

    /// Whether there is room for some letters on a wide screen. On a narrow one, the style sheet
    /// hides the text.
    fn has_room(&self) -> bool {
        const WIDEST: f64 = 10.7;
        const FEW_LETTERS: f64 = 26.0;
        !self.text.is_empty() && self.place.1 * WIDEST > FEW_LETTERS
    }
}

impl Shade {
    /// Two hexadecimal digits for a colour.
    fn alpha(self) -> &'static str {
        match self {
            Shade::Full => "",
            Shade::Half => "80",
            Shade::Faint => "26",
        }
    }
}

/// Returns a part of a whole, in percent.
#[expect(clippy::cast_precision_loss, reason = "a pixel is more than a nanosecond in 2^52")]
pub(super) fn percent(part: Nanos, whole: Nanos) -> f64 {
    100.0 * part.0.min(whole.0) as f64 / whole.0.max(1) as f64
}
