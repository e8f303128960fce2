//! The known name that a mistyped one probably means.

/// The candidate closest to `name`, when one is close: at most a third of the name, and at most
/// three characters, added, dropped, swapped or changed; letter case and `-` or `_` do not count.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |s: &str| s.to_ascii_lowercase().replace(['-', ' '], "_");
    let wanted = fold(name);
    if wanted.len() > 100 {
        return None;
    }
    let most = (wanted.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&wanted, &fold(candidate)), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of single-character edits between two texts (neighbours swapped count once).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut best = (last[j] + usize::from(a[i] != b[j]))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_close_one_only() {
        let names = ["h100_sxm", "h100_pcie", "haswell", "znver3"];
        assert_eq!(closest("h100-sxm", names), Some("h100_sxm"));
        assert_eq!(closest("hasewll", names), Some("haswell"));
        assert_eq!(closest("zenver3", names), Some("znver3"));
        assert_eq!(closest("tpu_v5", names), None);
    }
}
