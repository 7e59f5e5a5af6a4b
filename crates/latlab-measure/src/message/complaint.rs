//! Complaints of a target outside of its messages: on the console of a guest, on the stderr of a
//! host. Kept complaints become part of a record, which must stay readable.

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
