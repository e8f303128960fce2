//! Shardings of Shardy as shardings of HLO.
//!
//! Shardy names, for each dimension of an array, the axes of a mesh of devices that cut it, or parts
//! of axes. HLO lists the tiles of the array: their number in each dimension, and the devices that
//! have them, which are all devices in a shape of their own, turned. Axes that cut nothing are
//! another dimension of the tiles, whose devices all have the same. Where XLA has several ways to
//! say the same, this is the one it prints.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::collective::MeshAxis;
use crate::collective::expand_mesh;
use crate::hlo::ArraySharding;
use crate::hlo::ShardingKind;
use crate::mlir::Attr;
use crate::mlir::StructAttr;
use crate::shape::index;

/// The meshes of a module, by name.
pub type Meshes<'m> = BTreeMap<&'m str, &'m StructAttr>;

/// The most devices whose ids are listed one by one.
const MAX_LISTED: i64 = 1 << 20;

/// The most axes a mesh is read with.
const MAX_AXES: usize = 256;

/// A part of an axis of a mesh; the whole axis is the part from 1 to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// The place of the axis in the mesh.
    axis: usize,
    /// The product of the sizes of the parts before this one.
    from: i64,
    /// That product, this part's size included.
    to: i64,
}

/// An axis of a mesh.
struct Axis<'a> {
    name: &'a str,
    size: i64,
}

/// The sharding of HLO that a `#sdy.sharding` means, or in words why there is none.
pub fn convert(of: &StructAttr, meshes: &Meshes<'_>) -> Result<ArraySharding, String> {
    let mesh = mesh_of(of, meshes)?;
    let axes = axes_of(mesh)?;
    let devices = mesh.ints("device_ids").unwrap_or_default();
    if axes.is_empty() {
        return Ok(match devices.first() {
            Some(&device) => ArraySharding {
                kind: ShardingKind::Maximal,
                tile_assignment_dimensions: vec![1],
                tile_assignment_devices: vec![device],
                ..ArraySharding::default()
            },
            None => ArraySharding::default(),
        });
    }
    let list = |name: &str| of.field(name).and_then(Attr::as_array).unwrap_or_default();
    let dims = list("dim_shardings").iter().map(|dim| match dim {
        Attr::Struct(dim) => parts_of(dim.field("axes"), &axes),
        _ => Err("a dimension that is sharded in an unknown way".to_owned()),
    });
    let dims: Vec<Vec<Part>> = dims.collect::<Result<_, _>>()?;
    let replicated = parts_of(of.field("replicated_axes"), &axes)?;
    let unreduced = parts_of(of.field("unreduced_axes"), &axes)?;
    let all = dims.iter().flatten().chain(&replicated).chain(&unreduced);
    let pieces = pieces(&axes, all)?;
    tiles(&axes, &pieces, &dims, &unreduced, &devices)
}

/// The devices that differ only along the axes of a `#stablehlo.replica_group_mesh_axes`, group by
/// group, or in words why there are none.
pub fn groups(of: &StructAttr, meshes: &Meshes<'_>) -> Result<Vec<Vec<i64>>, String> {
    let mesh = mesh_of(of, meshes)?;
    let axes = axes_of(mesh)?;
    let along = parts_of(of.field("axes"), &axes)?;
    let along = along.iter().map(|part| MeshAxis {
        axis: part.axis,
        part: Some((part.from, part.to / part.from)),
    });
    let sizes: Vec<i64> = axes.iter().map(|axis| axis.size).collect();
    let devices = mesh.ints("device_ids").unwrap_or_default();
    let groups = expand_mesh(&sizes, &devices, &along.collect::<Vec<_>>());
    groups.ok_or_else(|| "axes that do not fit their mesh".to_owned())
}

fn mesh_of<'a>(of: &'a StructAttr, meshes: &Meshes<'a>) -> Result<&'a StructAttr, String> {
    match of.field("mesh") {
        Some(Attr::Struct(mesh)) => Ok(mesh),
        Some(Attr::Symbol(name)) => {
            let name = name.leaf().as_str();
            let mesh = meshes.get(name).copied();
            mesh.ok_or_else(|| format!("there is no mesh `{name}`"))
        }
        _ => Err("a sharding without a mesh".to_owned()),
    }
}

/// The axes of a mesh, whose sizes have a product.
fn axes_of(mesh: &StructAttr) -> Result<Vec<Axis<'_>>, String> {
    let list = mesh.field("axes").and_then(Attr::as_array);
    let list = list.unwrap_or_default();
    if list.len() > MAX_AXES {
        return Err(format!("a mesh of more than {MAX_AXES} axes"));
    }
    let axes = list.iter().map(|axis| {
        let axis = match axis {
            Attr::Struct(axis) if &*axis.kind == "mesh_axis" => axis,
            _ => return None,
        };
        let name = axis.field("name")?.as_str()?;
        let size = axis.int("size").filter(|size| *size > 0)?;
        Some(Axis { name, size })
    });
    let axes: Option<Vec<Axis<'_>>> = axes.collect();
    let axes = axes.ok_or("a mesh whose axes have no names or sizes")?;
    let devices = axes.iter().try_fold(1i64, |n, a| n.checked_mul(a.size));
    match devices {
        Some(_) => Ok(axes),
        None => Err("a mesh of more devices than can be counted".to_owned()),
    }
}

/// The parts of axes in a list.
fn parts_of(list: Option<&Attr>, axes: &[Axis<'_>]) -> Result<Vec<Part>, String> {
    let list = list.and_then(Attr::as_array).unwrap_or_default();
    let parts = list.iter().map(|of| {
        // StableHLO and Shardy have attributes of this name that are alike.
        let of = match of {
            Attr::Struct(of) if &*of.kind == "axis_ref" => Some(&**of),
            _ => None,
        };
        let name = of.and_then(|of| of.field("name")).and_then(Attr::as_str);
        let (Some(of), Some(name)) = (of, name) else {
            return Err("a reference to an axis without its name".to_owned());
        };
        let axis = axes.iter().position(|axis| axis.name == name);
        let axis = axis.ok_or_else(|| format!("the mesh has no axis `{name}`"))?;
        let whole = axes[axis].size;
        let (from, to) = match of.field("sub_axis_info") {
            Some(Attr::Struct(sub)) => {
                let from = sub.int("pre_size").unwrap_or(0);
                (from, from.saturating_mul(sub.int("size").unwrap_or(0)))
            }
            _ => (1, whole),
        };
        if from <= 0 || to <= 0 || whole % to != 0 {
            return Err(format!("a part of the axis `{name}` that it does not have"));
        }
        Ok(Part { axis, from, to })
    });
    parts.collect()
}

/// The parts that these cut all axes into, the outermost first.
fn pieces<'a>(
    axes: &[Axis<'_>],
    parts: impl Iterator<Item = &'a Part>,
) -> Result<Vec<Part>, String> {
    let mut cuts: Vec<BTreeSet<i64>> = axes.iter().map(|a| BTreeSet::from([1, a.size])).collect();
    for part in parts {
        cuts[part.axis].extend([part.from, part.to]);
    }
    let mut pieces = Vec::new();
    for (axis, cuts) in cuts.iter().enumerate() {
        let bounds: Vec<i64> = cuts.iter().copied().collect();
        if axes[axis].size == 1 {
            let (from, to) = (1, 1);
            pieces.push(Part { axis, from, to });
        }
        for pair in bounds.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            if to % from != 0 {
                let name = axes[axis].name;
                return Err(format!(
                    "parts of the axis `{name}` that do not fit together"
                ));
            }
            pieces.push(Part { axis, from, to });
        }
    }
    Ok(pieces)
}

/// The tiles of an array whose dimensions are cut by these parts.
fn tiles(
    axes: &[Axis<'_>],
    pieces: &[Part],
    dims: &[Vec<Part>],
    unreduced: &[Part],
    devices: &[i64],
) -> Result<ArraySharding, String> {
    let mut order: Vec<usize> = Vec::with_capacity(pieces.len());
    let mut take = |part: &Part| -> Result<(), String> {
        for (at, piece) in pieces.iter().enumerate() {
            if piece.axis != part.axis || piece.from < part.from || piece.to > part.to {
                continue;
            }
            if order.contains(&at) {
                let name = axes[part.axis].name;
                return Err(format!("the axis `{name}` is used twice"));
            }
            order.push(at);
        }
        Ok(())
    };
    let mut counts: Vec<i64> = Vec::with_capacity(dims.len() + 2);
    for parts in dims {
        parts.iter().try_for_each(&mut take)?;
        counts.push(parts.iter().map(|p| p.to / p.from).product());
    }
    unreduced.iter().try_for_each(&mut take)?;
    let cut: i64 = counts.iter().product();
    let rest: Vec<usize> = (0..pieces.len()).filter(|at| !order.contains(at)).collect();
    let partial: i64 = unreduced.iter().map(|p| p.to / p.from).product();
    let same: i64 = rest
        .iter()
        .map(|&at| pieces[at].to / pieces[at].from)
        .product();
    order.extend(rest);
    let mut kinds = vec![
        (ShardingKind::Unreduced, partial),
        (ShardingKind::Replicated, same),
    ];
    kinds.retain(|(_, count)| *count > 1);
    if cut == 1 && kinds.len() < 2 {
        let kind = match kinds.first() {
            Some(&(kind, _)) => kind,
            None if unreduced.is_empty() => ShardingKind::Replicated,
            None => ShardingKind::Unreduced,
        };
        return Ok(ArraySharding {
            kind,
            ..ArraySharding::default()
        });
    }
    counts.extend(kinds.iter().map(|(_, count)| *count));
    let mut sharding = ArraySharding {
        kind: ShardingKind::Other,
        tile_assignment_dimensions: counts,
        ..ArraySharding::default()
    };
    match &*kinds {
        [] => {}
        [(ShardingKind::Replicated, _)] => sharding.replicate_on_last_tile_dim = true,
        kinds => sharding.last_tile_dims = kinds.iter().map(|k| k.0).collect(),
    }
    let sizes: Vec<i64> = pieces.iter().map(|p| p.to / p.from).collect();
    if devices.is_empty() {
        (sharding.iota_reshape_dims, sharding.iota_transpose_perm) = iota(&sizes, &order);
    } else {
        let mut ids = listed(&sizes, &order, devices)?;
        if sharding.replicate_on_last_tile_dim {
            // Devices that have the same stand in the order of their numbers.
            let same = usize::try_from(same).unwrap_or(1).max(1);
            ids.chunks_mut(same).for_each(<[i64]>::sort_unstable);
        }
        sharding.tile_assignment_devices = ids;
    }
    Ok(sharding)
}

/// Devices in the shape `sizes`, turned: without dimensions of size one, and with those as one that
/// stay beside each other.
fn iota(sizes: &[i64], order: &[usize]) -> (Vec<i64>, Vec<i64>) {
    // Dimensions that stay together: where they begin, what follows them, and their size.
    let mut runs: Vec<(usize, usize, i64)> = Vec::new();
    let real: Vec<usize> = (0..sizes.len()).filter(|&d| sizes[d] != 1).collect();
    for &d in order {
        let Ok(place) = real.binary_search(&d) else {
            continue;
        };
        match runs.last_mut() {
            Some((_, end, size)) if *end == place => {
                *end += 1;
                *size *= sizes[d];
            }
            _ => runs.push((place, place + 1, sizes[d])),
        }
    }
    if runs.is_empty() {
        return (vec![1], vec![0]);
    }
    let mut starts: Vec<usize> = (0..runs.len()).collect();
    starts.sort_by_key(|&run| runs[run].0);
    let places = index::inverse_permutation(&starts);
    let reshape = starts.iter().map(|&run| runs[run].2).collect();
    let places = places.iter().map(|&p| i64::try_from(p).unwrap_or(i64::MAX));
    (reshape, places.collect())
}

/// The ids of devices in the shape `sizes`, turned, one after the other.
fn listed(sizes: &[i64], order: &[usize], devices: &[i64]) -> Result<Vec<i64>, String> {
    let count: i64 = sizes.iter().product();
    if usize::try_from(count) != Ok(devices.len()) || count > MAX_LISTED {
        let found = devices.len();
        return Err(format!("a mesh of {count} devices that lists {found}"));
    }
    let sizes = sizes.iter().map(|&size| usize::try_from(size).unwrap_or(0));
    let sizes: Vec<usize> = sizes.collect();
    let turned: Vec<usize> = order.iter().map(|&d| sizes[d]).collect();
    let mut from = vec![0; sizes.len()];
    let mut out = Vec::with_capacity(devices.len());
    index::for_each_index(&turned, |at| {
        for (place, &d) in order.iter().enumerate() {
            from[d] = at[place];
        }
        out.push(devices[index::linear_index(&sizes, &from)]);
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::Sharding;
    use crate::hlo::print;
    use crate::mlir::text::read_attr;

    /// What the sharding is in a module with this mesh.
    fn said(mesh: &str, sharding: &str) -> String {
        let mesh = read_attr(&format!("#sdy.mesh<{mesh}>")).unwrap();
        let of = read_attr(&format!("#sdy.sharding<@mesh, {sharding}>")).unwrap();
        let meshes = Meshes::from([("mesh", mesh.as_struct("sdy", "mesh").unwrap())]);
        match convert(of.as_struct("sdy", "sharding").unwrap(), &meshes) {
            Ok(sharding) => print::sharding(&Sharding::Array(Box::new(sharding))),
            Err(what) => what,
        }
    }

    #[test]
    fn what_is_no_sharding_is_told() {
        let mesh = r#"["a"=4, "b"=6]"#;
        for (sharding, wanted) in [
            (r#"[{"c"}]"#, "the mesh has no axis `c`"),
            (r#"[{"a"}, {"a"}]"#, "the axis `a` is used twice"),
            (r#"[{"a":(1)2, "a"}]"#, "the axis `a` is used twice"),
            (r#"[{"a":(3)2}]"#, "a part of the axis `a`"),
            (r#"[{"a":(0)2}]"#, "a part of the axis `a`"),
            (r#"[{"b":(1)2, "b":(3)2}]"#, "do not fit together"),
        ] {
            let told = said(mesh, sharding);
            assert!(told.contains(wanted), "{sharding}: {told}");
        }
        let huge = r#"["a"=4294967296, "b"=4294967296]"#;
        assert!(said(huge, "[{}]").contains("more devices than"));
        let short = r#"["a"=4], device_ids=[0, 1, 2]"#;
        assert!(said(short, r#"[{"a"}]"#).contains("4 devices that lists 3"));
        let nowhere = Meshes::new();
        let of = read_attr("#sdy.sharding<@mesh, [{}]>").unwrap();
        let told = convert(of.as_struct("sdy", "sharding").unwrap(), &nowhere).unwrap_err();
        assert_eq!(told, "there is no mesh `mesh`");
    }

    /// Devices in the shape that is turned are the devices listed one by one.
    #[test]
    fn both_forms_name_the_same_devices() {
        let ids: Vec<String> = (0..24).map(|id| id.to_string()).collect();
        let axes = r#"["a"=4, "b"=1, "c"=3, "d"=2]"#;
        let listed = format!("{axes}, device_ids=[{}]", ids.join(", "));
        for sharding in [
            r#"[{"a"}, {"c"}]"#,
            r#"[{"c", "a"}, {"d"}]"#,
            r#"[{"d"}, {}, {"a":(2)2}]"#,
            r#"[{"a":(2)2, "d", "a":(1)2}]"#,
            r#"[{"b"}, {"c"}], unreduced={"d"}"#,
            r#"[{"d"}, {"b", "a":(2)2}], unreduced={"c"}"#,
        ] {
            let (turned, listed) = (said(axes, sharding), said(&listed, sharding));
            let (tiles, rest) = turned.split_once("<=").unwrap();
            let (reshape, rest) = rest.split_once(']').unwrap();
            let numbers = |text: &str| -> Vec<usize> {
                let words = text.trim_matches(['[', ']', '(', ')', 'T']).split(',');
                words.map(|n| n.parse().unwrap()).collect()
            };
            let sizes = numbers(reshape);
            let rest = rest.strip_suffix('}').unwrap();
            let (order, kind) = match rest.strip_prefix('T') {
                Some(rest) => rest.split_once(')').unwrap(),
                None => ("", rest),
            };
            let order = match order {
                "" => (0..sizes.len()).collect(),
                order => numbers(order),
            };
            let turned: Vec<usize> = order.iter().map(|&d| sizes[d]).collect();
            let mut out = Vec::new();
            index::for_each_index(&turned, |at| {
                let mut from = vec![0; sizes.len()];
                for (place, &d) in order.iter().enumerate() {
                    from[d] = at[place];
                }
                out.push(index::linear_index(&sizes, &from).to_string());
            });
            assert_eq!(
                format!("{tiles}{}{kind}}}", out.join(",")),
                listed,
                "{sharding}"
            );
        }
    }
}
