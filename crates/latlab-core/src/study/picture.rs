//! Pictures: the figures of a paper that a study draws from its results.

/// A picture of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Name of its file, and its anchor in the report.
    pub name: String,
    /// Title, in a line.
    pub title: String,
    /// The figure of the paper that it reproduces.
    pub source: String,
    /// Its form.
    pub kind: PictureKind,
    /// Indices of the figures shown; a distribution or a course over time shows all samples behind
    /// them. Empty for scans.
    pub figures: Vec<usize>,
    /// Indices of the cells shown.
    pub cells: Vec<usize>,
    /// The axis of bars and curves; none for other forms.
    pub over: Option<CategoryAxis>,
    /// Whether the value axis is logarithmic.
    pub log: bool,
}

/// The form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureKind {
    /// Cumulative distribution: the share of samples at or below each latency.
    Cdf,
    /// Density of the samples.
    Density,
    /// The worst sample of each interval of time.
    OverTime,
    /// The worst sample so far, over time.
    Maximum,
    /// Bars over the labels of an axis.
    Bars,
    /// Lines over the labels of an axis.
    Curves,
    /// Process dispatch latency over the moment of the interrupt, across a scanned call.
    Pdlt,
}

/// The axis of a study that bars and curves are drawn over.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryAxis {
    /// Index of the axis.
    pub axis: usize,
    /// The labels shown, in order.
    pub labels: Vec<String>,
    /// Position of each label; evenly spaced if absent.
    pub at: Option<Vec<f64>>,
    /// Values are divided by those of the cells with this label on this axis.
    pub relative_to: Option<(usize, String)>,
    /// Whether the bars of several figures are stacked.
    pub stacked: bool,
}

impl PictureKind {
    /// All forms, by name.
    pub const ALL: [(&'static str, PictureKind); 7] = [
        ("cdf", PictureKind::Cdf),
        ("density", PictureKind::Density),
        ("over-time", PictureKind::OverTime),
        ("maximum", PictureKind::Maximum),
        ("bars", PictureKind::Bars),
        ("curves", PictureKind::Curves),
        ("pdlt", PictureKind::Pdlt),
    ];

    /// Returns the form of this name.
    pub fn named(name: &str) -> Option<PictureKind> {
        PictureKind::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether it shows samples rather than single values.
    pub fn shows_samples(self) -> bool {
        matches!(
            self,
            PictureKind::Cdf | PictureKind::Density | PictureKind::OverTime | PictureKind::Maximum
        )
    }

    /// Whether it shows values over the labels of an axis.
    pub fn has_axis(self) -> bool {
        matches!(self, PictureKind::Bars | PictureKind::Curves)
    }
}
