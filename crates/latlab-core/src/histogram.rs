//! Latency distributions: `HdrHistogram` with exact minimum, maximum and sum.

use crate::time::Nanos;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::io::Read as _;

/// The largest value with a bucket of its own: one hour.
pub const LARGEST: Nanos = Nanos::from_secs(3_600);
const DIGITS: u8 = 3;

/// A distribution of latencies from 1 ns to 1 h at three significant digits.
///
/// `HdrHistogram` knows a maximum only to the width of its bucket, so the exact minimum, maximum
/// and sum are kept separately. Merging is associative and commutative.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    hdr: hdrhistogram::Histogram<u64>,
    min: Nanos,
    max: Nanos,
    sum: u128,
}

/// The quantiles that every series carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The median.
    pub p50: Nanos,
    /// 90 % of the samples are at or below.
    pub p90: Nanos,
    /// 99 % of the samples are at or below.
    pub p99: Nanos,
    /// 99.9 % of the samples are at or below.
    #[serde(rename = "p99.9")]
    pub p99_9: Nanos,
    /// 99.99 % of the samples are at or below.
    #[serde(rename = "p99.99")]
    pub p99_99: Nanos,
}

impl Quantiles {
    /// Returns names and values in ascending order.
    pub fn named(&self) -> [(&'static str, Nanos); 5] {
        let values = [self.p50, self.p90, self.p99, self.p99_9, self.p99_99];
        std::array::from_fn(|nth| (SHARES[nth].0, values[nth]))
    }
}

/// The names of these quantiles and their shares of the samples, in ascending order.
pub const SHARES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// One bucket of a histogram: `count` samples from `from` up to, but not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest value in the bucket.
    pub from: Nanos,
    /// The smallest value above the bucket.
    pub to: Nanos,
    /// Number of samples.
    pub count: u64,
}

/// The least and the greatest minimum, maximum and sum of the samples of a histogram.
struct Exact {
    min: (u64, u64),
    max: (u64, u64),
    sum: (u128, u128),
}

/// The error of reading a damaged histogram.
#[derive(Debug, thiserror::Error)]
#[error("its histogram is damaged: {0}")]
pub struct DamagedHistogram(String);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    /// Creates a histogram without samples.
    pub fn new() -> Histogram {
        let hdr = hdrhistogram::Histogram::new_with_bounds(1, LARGEST.0, DIGITS)
            .expect("the bounds are constant and valid");
        Histogram { hdr, min: Nanos::MAX, max: Nanos(0), sum: 0 }
    }

    pub(crate) fn from_parts(
        counts: impl Iterator<Item = (u64, u64)>,
        min: Nanos,
        max: Nanos,
        sum: u128,
    ) -> Histogram {
        let mut histogram = Histogram { min, max, sum, ..Histogram::new() };
        for (value, count) in counts {
            histogram.hdr.saturating_record_n(value, count);
        }
        // A thread that writes meanwhile may have counted a sample and not added it yet, or the reverse.
        if let Some(exact) = histogram.exact() {
            histogram.min = Nanos(min.0.clamp(exact.min.0, exact.min.1));
            histogram.max = Nanos(max.0.clamp(exact.max.0, exact.max.1));
            histogram.sum = sum.clamp(exact.sum.0, exact.sum.1);
        }
        histogram
    }

    /// Between which values minimum, maximum and sum are, by the buckets; none without samples.
    fn exact(&self) -> Option<Exact> {
        let (mut first, mut last) = (None, None);
        let mut sum = (0, 0);
        for bucket in self.buckets() {
            let count = u128::from(bucket.count);
            // The last bucket has all samples beyond an hour, too.
            let is_open = bucket.to > LARGEST;
            let most = if is_open { u64::MAX } else { bucket.to.0 - 1 };
            sum.0 += u128::from(bucket.from.0) * count;
            sum.1 += u128::from(most) * count;
            first.get_or_insert((bucket.from.0, most));
            last = Some((bucket.from.0, most));
        }
        Some(Exact { min: first?, max: last?, sum })
    }

    /// Whether minimum, maximum and sum, which are stored apart, can be those of the samples.
    pub(crate) fn is_sound(&self) -> bool {
        match self.exact() {
            None => self.max == Nanos(0) && self.sum == 0,
            Some(Exact { min, max, sum }) => {
                (min.0..=min.1).contains(&self.min.0)
                    && (max.0..=max.1).contains(&self.max.0)
                    && self.min <= self.max
                    && (sum.0..=sum.1).contains(&self.sum)
            }
        }
    }

    /// Adds a sample. Above one hour it is counted in the last bucket; the maximum is exact.
    pub fn record(&mut self, latency: Nanos) {
        self.hdr.saturating_record(latency.0);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        self.sum += u128::from(latency.0);
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.hdr.len()
    }

    /// Returns the exact minimum; 0 without samples.
    pub fn min(&self) -> Nanos {
        if self.count() == 0 { Nanos(0) } else { self.min }
    }

    /// Returns the exact maximum; 0 without samples.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Returns the exact sum of all samples in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the mean, rounded down to a nanosecond; 0 without samples.
    pub fn mean(&self) -> Nanos {
        let mean = self.sum.checked_div(u128::from(self.count())).unwrap_or(0);
        Nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the standard deviation of the buckets, rounded to a nanosecond.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a deviation is positive and below an hour"
    )]
    pub fn stddev(&self) -> Nanos {
        Nanos(self.hdr.stdev().round() as u64)
    }

    /// Returns the smallest value that a share `q` (0 to 1) of the samples does not exceed, to
    /// three digits, between minimum and maximum.
    pub fn quantile(&self, q: f64) -> Nanos {
        Nanos(self.hdr.value_at_quantile(q)).clamp(self.min(), self.max().max(self.min()))
    }

    /// Returns the quantiles that every series carries.
    pub fn quantiles(&self) -> Quantiles {
        let [p50, p90, p99, p99_9, p99_99] = SHARES.map(|(_, share)| self.quantile(share));
        Quantiles { p50, p90, p99, p99_9, p99_99 }
    }

    /// Returns the distribution corrected for missed periods: for each sample above `interval` it
    /// adds samples for the periods that were missed meanwhile, each shorter by `interval` than the one
    /// before, down to `interval` (expected-interval correction of `HdrHistogram`). The shortest of
    /// the missed ones, below `interval`, is not among them, so that low quantiles are on the high
    /// side.
    #[must_use]
    pub fn corrected(&self, interval: Nanos) -> Histogram {
        Histogram { hdr: self.hdr.clone_correct(interval.0.max(1)), ..self.clone() }
    }

    /// Adds the samples of `other`.
    pub fn add(&mut self, other: &Histogram) {
        self.hdr.add(&other.hdr).expect("both have the same bounds");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Returns the number of samples above `limit`, exact to a bucket: at least one where the maximum
    /// is above it.
    pub fn count_above(&self, limit: Nanos) -> u64 {
        if self.max() <= limit {
            return 0;
        }
        let above = self.buckets().filter(|bucket| bucket.from > limit).map(|bucket| bucket.count);
        above.sum::<u64>().max(1)
    }

    /// Returns the number of samples in the buckets from that of `limit` on.
    pub fn count_from(&self, limit: Nanos) -> u64 {
        self.buckets().filter(|bucket| bucket.to > limit).map(|bucket| bucket.count).sum()
    }

    /// Iterates over the buckets with samples, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.hdr.iter_recorded().map(|step| {
            let value = step.value_iterated_to();
            Bucket {
                from: Nanos(self.hdr.lowest_equivalent(value)),
                to: Nanos(self.hdr.next_non_equivalent(value)),
                count: step.count_at_value(),
            }
        })
    }

    /// Returns the share of samples at or above the start of each bucket: the points of a
    /// complementary CDF.
    #[expect(clippy::cast_precision_loss, reason = "a share is only displayed")]
    pub fn above(&self) -> Vec<(Nanos, f64)> {
        let total = self.count();
        let mut seen = 0;
        self.buckets()
            .map(|bucket| {
                let share = (total - seen) as f64 / total as f64;
                seen += bucket.count;
                (bucket.from, share)
            })
            .collect()
    }

    /// Encodes the buckets as base64 of the V2 compressed format, which every `HdrHistogram`
    /// library reads.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.hdr, &mut bytes)
            .expect("writing to memory does not fail");
        BASE64.encode(bytes)
    }

    /// Decodes a text of [`Histogram::encode`]; minimum, maximum and sum are stored separately.
    pub fn decode(
        text: &str,
        min: Nanos,
        max: Nanos,
        sum: u128,
    ) -> Result<Histogram, DamagedHistogram> {
        let bytes = BASE64.decode(text).map_err(|e| DamagedHistogram(e.to_string()))?;
        let bytes = inflated(&bytes)?;
        let read: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| DamagedHistogram(e.to_string()))?;
        let mut histogram = Histogram { min, max, sum, ..Histogram::new() };
        // Into a histogram with our bounds, so that histograms of any writer can be added.
        histogram.hdr.add(&read).map_err(|e| DamagedHistogram(e.to_string()))?;
        if histogram.count() == 0 {
            histogram.min = Nanos::MAX;
        }
        Ok(histogram)
    }
}

/// Decompresses the V2 compressed format to the V2 format. The decoder reserves as much memory as
/// the header asks for, so the header is checked here.
fn inflated(bytes: &[u8]) -> Result<Vec<u8>, DamagedHistogram> {
    /// Bytes; the counts of a histogram of five digits up to 2^64 - 1 take less than half of them.
    const LONGEST: usize = 128 << 20;
    /// Bytes before the counts.
    const HEADER: usize = 40;
    /// The format, with counts as LEB128 words of zig-zag numbers.
    const COOKIE: u32 = 0x1c84_9314;
    let damaged = |why: &str| DamagedHistogram(why.to_owned());
    let Some((COOKIE, rest)) = first_number(bytes) else {
        return Err(damaged("it is not in the V2 compressed format"));
    };
    let (length, compressed) = first_number(rest).unwrap_or_default();
    if length as usize != compressed.len() {
        return Err(damaged("its length is not the one that it states"));
    }
    let mut inflated = Vec::new();
    let read = ZlibDecoder::new(compressed).take(LONGEST as u64 + 1).read_to_end(&mut inflated);
    read.map_err(|e| DamagedHistogram(e.to_string()))?;
    if inflated.len() > LONGEST {
        return Err(damaged("it is longer than any histogram"));
    }
    let length = inflated.get(4..).and_then(first_number).map(|(length, _)| length as usize);
    match length {
        Some(length) if HEADER + length <= inflated.len() => Ok(inflated),
        _ => Err(damaged("it is cut short")),
    }
}

/// Returns a big-endian number and what follows it.
fn first_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use std::io::Write as _;

    fn histogram(samples: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for sample in samples {
            histogram.record(Nanos(*sample));
        }
        histogram
    }

    #[test]
    fn stall_shows_in_corrected_quantiles_only() {
        let mut samples = vec![10_000; 2_500];
        samples.push(500_000_000);
        let raw = histogram(&samples);
        let corrected = raw.corrected(Nanos::from_millis(1));
        assert!(raw.quantiles().p99 < Nanos(11_000));
        assert!(corrected.quantiles().p99 > Nanos::from_millis(400));
        assert_eq!(corrected.count(), 2_501 + 499);
    }

    /// Returns the error for these bytes, compressed as a histogram is.
    fn refused(contents: &[u8]) -> String {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(contents).unwrap();
        let compressed = zlib.finish().unwrap();
        let length = u32::try_from(compressed.len()).unwrap().to_be_bytes();
        let bytes = [&[0x1c, 0x84, 0x93, 0x14][..], &length, &compressed].concat();
        let read = Histogram::decode(&BASE64.encode(bytes), Nanos(0), Nanos(0), 0);
        read.unwrap_err().to_string()
    }

    #[test]
    fn histogram_that_asks_for_more_memory_than_it_has_bytes_is_refused() {
        let header = [0x1c_u8, 0x84, 0x93, 0x13, 0xff, 0xff, 0xff, 0xff];
        let contents = [&header[..], &[0; 100]].concat();
        assert_eq!(refused(&contents), "its histogram is damaged: it is cut short");
        let bomb = vec![0; 200 << 20];
        assert_eq!(refused(&bomb), "its histogram is damaged: it is longer than any histogram");
        let read = Histogram::decode("c2hvcnQ=", Nanos(0), Nanos(0), 0).unwrap_err().to_string();
        assert!(read.ends_with("it is not in the V2 compressed format"), "{read}");
    }

    #[test]
    fn histogram_with_another_length_than_it_states_is_refused() {
        let histogram = histogram(&[1_000]);
        let mut bytes = BASE64.decode(histogram.encode()).unwrap();
        bytes[4..8].fill(0xff);
        let read = Histogram::decode(&BASE64.encode(bytes), Nanos(1_000), Nanos(1_000), 1_000);
        let why = "its histogram is damaged: its length is not the one that it states";
        assert_eq!(read.unwrap_err().to_string(), why);
    }

    #[test]
    fn copy_of_a_histogram_that_is_being_written_agrees_with_its_buckets() {
        // The second sample is in its bucket, and in nothing else yet.
        let counts = [(1_000, 1), (9_000_000, 1)].into_iter();
        let copy = Histogram::from_parts(counts, Nanos(1_000), Nanos(1_000), 1_000);
        assert!(copy.is_sound() && copy.max() >= Nanos(8_990_000), "{:?}", copy.max());
        assert!(copy.sum() > 8_990_000 && copy.min() == Nanos(1_000));
    }

    #[test]
    fn empty_histogram_has_zero_statistics() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.mean()), (Nanos(0), Nanos(0), Nanos(0)));
        assert_eq!(empty.quantiles(), Quantiles::default());
        assert!(empty.above().is_empty());
    }

    proptest! {
        #[test]
        fn quantiles_ascend_between_minimum_and_maximum(samples in proptest::collection::vec(0u64..10_000_000_000, 1..100)) {
            let histogram = histogram(&samples);
            let named = histogram.quantiles().named();
            prop_assert!(named.windows(2).all(|w| w[0].1 <= w[1].1));
            prop_assert!(named[0].1 >= histogram.min() && named[4].1 <= histogram.max());
        }

        #[test]
        fn histogram_survives_encoding_and_decoding(samples in proptest::collection::vec(0..LARGEST.0, 0..100)) {
            let histogram = histogram(&samples);
            let read = Histogram::decode(&histogram.encode(), histogram.min(), histogram.max(), histogram.sum());
            prop_assert_eq!(read.unwrap(), histogram);
        }

        #[test]
        fn addition_is_associative(a in proptest::collection::vec(0u64..1_000_000, 0..20),
                                 b in proptest::collection::vec(0u64..1_000_000, 0..20),
                                 c in proptest::collection::vec(0u64..1_000_000, 0..20)) {
            let (a, b, c) = (histogram(&a), histogram(&b), histogram(&c));
            let mut left = a.clone();
            left.add(&b);
            left.add(&c);
            let mut right = b;
            right.add(&c);
            let mut all = a;
            all.add(&right);
            prop_assert_eq!(left, all);
        }
    }
}
