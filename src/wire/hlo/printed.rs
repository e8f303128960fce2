//! Attributes that are kept inside as the text HLO prints for them.

use crate::proto::xla as pb;

/// `mode=highest` or `tolerance={atol=1,rtol=0,ulps=2}`; nothing for the default.
pub(super) fn accuracy_text(proto: &pb::ResultAccuracy) -> Option<String> {
    use pb::result_accuracy::Specs;
    match proto.specs.as_ref()? {
        Specs::Mode(1) => Some("mode=highest".to_owned()),
        Specs::Mode(_) => None,
        Specs::Tolerance(t) => Some(format!(
            "tolerance={{atol={},rtol={},ulps={}}}",
            t.atol, t.rtol, t.ulps
        )),
    }
}

/// The inverse of [`accuracy_text`]; nothing for texts it does not write.
pub(super) fn parse_accuracy(text: &str) -> Option<pb::ResultAccuracy> {
    use pb::result_accuracy::Specs;
    use pb::result_accuracy::Tolerance;
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some(mode) = squeezed.strip_prefix("mode=") {
        let mode = match mode.to_ascii_lowercase().as_str() {
            "highest" => 1,
            "default" => 0,
            _ => return None,
        };
        return Some(pb::ResultAccuracy {
            specs: Some(Specs::Mode(mode)),
        });
    }
    let body = squeezed.strip_prefix("tolerance={")?.strip_suffix('}')?;
    let mut tolerance = Tolerance::default();
    for pair in body.split(',') {
        let (key, value) = pair.split_once('=')?;
        match key {
            "atol" => tolerance.atol = value.parse().ok()?,
            "rtol" => tolerance.rtol = value.parse().ok()?,
            "ulps" => tolerance.ulps = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(pb::ResultAccuracy {
        specs: Some(Specs::Tolerance(tolerance)),
    })
}

/// `visualizing_index=0,name=1.5`.
pub(super) fn statistics_text(proto: &pb::StatisticsViz) -> String {
    let mut text = format!("visualizing_index={}", proto.stat_index_to_visualize);
    for statistic in &proto.statistics {
        text += &format!(",{}={}", statistic.stat_name, statistic.stat_val);
    }
    text
}

/// The inverse of [`statistics_text`].
pub(super) fn parse_statistics(text: &str) -> Option<pb::StatisticsViz> {
    let mut proto = pb::StatisticsViz::default();
    for (i, pair) in text.split(',').enumerate() {
        let (key, value) = pair.trim().split_once('=')?;
        if i == 0 && key == "visualizing_index" {
            proto.stat_index_to_visualize = value.parse().ok()?;
        } else {
            proto.statistics.push(pb::Statistic {
                stat_name: key.to_owned(),
                stat_val: value.parse().ok()?,
            });
        }
    }
    Some(proto)
}

/// `{"name" {1}}`, one group a leaf, nested braces left flat for tuples.
pub(super) fn origin_text(proto: &pb::OriginalValueProto) -> String {
    let element = |e: &pb::OriginalValueElementProto| {
        let Some(array) = &e.original_array else {
            return "{}".to_owned();
        };
        let index = array.shape_index.iter().map(i64::to_string);
        let index: Vec<String> = index.collect();
        match index.is_empty() {
            true => format!("{{\"{}\"}}", array.instruction_name),
            false => format!("{{\"{}\" {{{}}}}}", array.instruction_name, index.join(",")),
        }
    };
    let elements: Vec<String> = proto.elements.iter().map(element).collect();
    match proto.elements.as_slice() {
        [only] if only.shape_index.is_empty() => elements.concat(),
        _ => format!("({})", elements.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_and_statistics_round_trip() {
        for text in ["mode=highest", "tolerance={atol=0.5,rtol=0,ulps=3}"] {
            let proto = parse_accuracy(text).unwrap();
            assert_eq!(accuracy_text(&proto).as_deref(), Some(text));
        }
        assert_eq!(parse_accuracy("mode=lowest"), None);
        let text = "visualizing_index=1,bytes=2,flops=0.25";
        assert_eq!(statistics_text(&parse_statistics(text).unwrap()), text);
        assert_eq!(parse_statistics("x"), None);
    }
}
