//! Pictures: which figures of a paper a study draws of what it has measured.

/// A picture of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What its file is called, and its place in the report.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// Which figure of the paper it redoes.
    pub source: String,
    /// Its form.
    pub kind: Kind,
    /// What it shows, by place in the study's figures: of a distribution and of a course over time
    /// all samples that these are taken of. A scan has none.
    pub figures: Vec<usize>,
    /// Of which cells, by place in the study's cells.
    pub cells: Vec<usize>,
    /// What bars and curves stand over; of the others there is nothing.
    pub over: Option<Over>,
    /// Whether values are on a logarithmic axis.
    pub log: bool,
}

/// The form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The share of samples at or below each latency.
    Cdf,
    /// How the samples are spread.
    Density,
    /// The worst sample of each stretch of time.
    OverTime,
    /// Bars over the labels of an axis.
    Bars,
    /// Lines over the labels of an axis.
    Curves,
    /// How late a task runs over the moment of the interrupt, across a call that was scanned.
    Pdlt,
}

/// The axis of a study over which figures stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// Which one, by place in the study's axes.
    pub axis: usize,
    /// The labels that are shown, in order.
    pub labels: Vec<String>,
    /// Where each of them stands; evenly apart where nothing is said.
    pub at: Option<Vec<f64>>,
    /// By which cells values are divided: those with this label on this axis.
    pub relative_to: Option<(usize, String)>,
    /// Whether bars of several figures stand on each other.
    pub stacked: bool,
}

impl Kind {
    /// All forms, by name.
    pub const ALL: [(&'static str, Kind); 6] = [
        ("cdf", Kind::Cdf),
        ("density", Kind::Density),
        ("over-time", Kind::OverTime),
        ("bars", Kind::Bars),
        ("curves", Kind::Curves),
        ("pdlt", Kind::Pdlt),
    ];

    /// What has this name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether it shows samples, and not single values.
    pub fn of_samples(self) -> bool {
        matches!(self, Kind::Cdf | Kind::Density | Kind::OverTime)
    }

    /// Whether it shows values over the labels of an axis.
    pub fn over_axis(self) -> bool {
        matches!(self, Kind::Bars | Kind::Curves)
    }
}
