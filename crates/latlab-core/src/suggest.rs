//! The valid names nearest to a wrong one, for error messages.

/// Up to three of `names` that look like `wrong`, the likeliest first.
///
/// Likeness is Jaro-Winkler's, as in clap and git; below 0.7 a suggestion would only confuse.
pub fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Vec<&'a str> {
    let mut near: Vec<(f64, &str)> = names
        .iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), *name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// "did you mean a or b?", or all the names where none is near and they are few.
pub fn hint(wrong: &str, names: &[&str]) -> String {
    let near = nearest(wrong, names);
    if near.is_empty() {
        return format!("there is {}", names.join(", "));
    }
    format!("did you mean {}?", near.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let names = ["cyclic", "nanosleep", "timer"];
        assert_eq!(nearest("cylic", &names), ["cyclic"]);
        assert_eq!(hint("timre", &names), "did you mean timer?");
        assert_eq!(hint("xyzzy", &names), "there is cyclic, nanosleep, timer");
    }
}
