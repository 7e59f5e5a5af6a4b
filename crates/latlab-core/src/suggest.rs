//! Suggestions for misspelt names, for error messages.

/// Returns up to three of `names` that are similar to `wrong`, the most similar first.
///
/// The similarity is Jaro-Winkler's, as in clap and git; suggestions below 0.7 would only confuse.
pub fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Vec<&'a str> {
    let mut near: Vec<(f64, &str)> = names
        .iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), *name))
        .filter(|(similarity, _)| *similarity > 0.7)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Returns "did you mean a or b?", or all names if none is similar.
pub fn hint(wrong: &str, names: &[&str]) -> String {
    let near = nearest(wrong, names);
    if near.is_empty() {
        return format!("choose from {}", names.join(", "));
    }
    format!("did you mean {}?", near.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_name_gets_suggestions() {
        let names = ["cyclic", "nanosleep", "timer"];
        assert_eq!(nearest("cylic", &names), ["cyclic"]);
        assert_eq!(hint("timre", &names), "did you mean timer?");
        assert_eq!(hint("xyzzy", &names), "choose from cyclic, nanosleep, timer");
    }
}
