//! What a target complains of on the side: the console of a guest, the stderr of a host. All that is kept
//! becomes part of a record, which must stay readable.

/// Number of complaints that are kept.
pub const COMPLAINTS: usize = 20;

/// Characters of a complaint that are kept.
pub const LONGEST: usize = 1_000;

/// The first [`LONGEST`] characters of a complaint.
pub fn cut(line: String) -> String {
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}
