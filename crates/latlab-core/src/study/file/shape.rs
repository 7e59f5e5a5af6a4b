//! The structure of a study's file, for deserialization from TOML.

use crate::study::bound::BoundChange;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

pub(super) type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) title: Text,
    pub(super) paper: String,
    pub(super) redoes: String,
    #[serde(default)]
    pub(super) about: String,
    pub(super) limit: Option<Text>,
    #[serde(default)]
    pub(super) plan: Choice,
    #[serde(default)]
    pub(super) axis: Vec<Axis>,
    pub(super) figure: Vec<FigureText>,
    #[serde(default)]
    pub(super) published: BTreeMap<Text, BTreeMap<Text, String>>,
    #[serde(default)]
    pub(super) published_in: String,
    #[serde(default)]
    pub(super) claim: Vec<ClaimText>,
    #[serde(default)]
    pub(super) picture: Vec<PictureText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Axis {
    pub(super) name: Text,
    pub(super) each: Vec<Choice>,
}

/// The plan, or a choice on an axis.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice {
    pub(super) label: Option<Text>,
    pub(super) on: Option<Text>,
    pub(super) probes: Option<Vec<Text>>,
    pub(super) scans: Option<Vec<Text>>,
    pub(super) loads: Option<Vec<Text>>,
    #[serde(rename = "for")]
    pub(super) time: Option<Text>,
    pub(super) count: Option<Spanned<u64>>,
    pub(super) full: Option<Spanned<Full>>,
    pub(super) warm_up: Option<Text>,
    pub(super) set: Option<Vec<Text>>,
    pub(super) adapt: Option<Spanned<Adapt>>,
    pub(super) seed: Option<u64>,
    pub(super) repeat: Option<Spanned<u32>>,
}

/// A time, or a number of samples.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Full {
    Time(String),
    Count(u64),
}

/// `true` for all mechanisms, `false` for none, or a list separated by commas.
pub(super) struct Adapt(pub(super) Option<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureText {
    pub(super) name: Text,
    pub(super) title: Option<String>,
    pub(super) probe: Option<Text>,
    pub(super) load: Option<Text>,
    pub(super) span: Option<String>,
    pub(super) figure: Option<Text>,
    pub(super) take: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimText {
    pub(super) says: String,
    #[serde(default)]
    pub(super) quote: String,
    #[serde(default)]
    pub(super) source: String,
    pub(super) claim: Text,
    pub(super) bound: Option<Text>,
    #[serde(default)]
    pub(super) changed: Vec<BoundChange>,
    #[serde(default)]
    pub(super) why: String,
    pub(super) gone: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PictureText {
    pub(super) name: Text,
    pub(super) kind: Text,
    pub(super) title: String,
    #[serde(default)]
    pub(super) source: String,
    pub(super) figures: Option<Vec<Text>>,
    pub(super) cells: Option<Vec<Text>>,
    pub(super) along: Option<Text>,
    pub(super) at: Option<Spanned<Vec<f64>>>,
    pub(super) relative_to: Option<Text>,
    pub(super) stacked: Option<Spanned<bool>>,
    pub(super) log: Option<Spanned<bool>>,
}

impl<'de> Deserialize<'de> for Adapt {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Adapt, D::Error> {
        struct AdaptVisitor;
        impl Visitor<'_> for AdaptVisitor {
            type Value = Adapt;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or mechanisms separated by commas")
            }
            fn visit_bool<E>(self, all: bool) -> Result<Adapt, E> {
                Ok(Adapt(all.then(String::new)))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Adapt, E> {
                if text.is_empty() {
                    return Err(E::custom("it names no mechanism: write true for all of them"));
                }
                Ok(Adapt(Some(text.to_owned())))
            }
        }
        from.deserialize_any(AdaptVisitor).map_err(D::Error::custom)
    }
}
