//! Mesh-based shardings, which are kept inside as the text HLO prints for them, and replica groups,
//! which are written out.

use crate::base::Result;
use crate::collective::MeshAxis;
use crate::collective::expand_iota;
use crate::collective::expand_mesh;
use crate::proto::xla as pb;
use crate::wire::number::bad;

/// A mesh: `mesh[x=2,y=4]`, with `device_ids=` when they are not an iota.
fn mesh_text(mesh: &pb::MeshProto) -> String {
    let axes = mesh.axes.iter();
    let axes: Vec<String> = axes.map(|a| format!("'{}'={}", a.name, a.size)).collect();
    let mut text = format!("mesh[{}]", axes.join(","));
    if let Some(iota) = &mesh.iota_transform {
        let list = |v: &[i64]| v.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        text += &format!(
            ", device_ids=([{}]T({}))",
            list(&iota.reshape_dims),
            list(&iota.transpose_perm)
        );
    } else if !mesh.device_ids.is_empty() {
        let ids: Vec<String> = mesh.device_ids.iter().map(i64::to_string).collect();
        text += &format!(", device_ids=({})", ids.join(","));
    }
    text
}

fn axis_text(mesh: &pb::MeshProto, axis: &pb::AxisRefProto) -> Result<String> {
    let index = usize::try_from(axis.mesh_axis_index).ok();
    let named = index.and_then(|i| mesh.axes.get(i)).ok_or_else(|| {
        bad(format!(
            "a sharding names mesh axis {}, the mesh has {}",
            axis.mesh_axis_index,
            mesh.axes.len()
        ))
    })?;
    Ok(match &axis.sub_axis_info {
        None => format!("'{}'", named.name),
        Some(sub) => format!("'{}':({}){}", named.name, sub.pre_size, sub.size),
    })
}

fn axes_text(mesh: &pb::MeshProto, axes: &[pb::AxisRefProto]) -> Result<String> {
    let texts: Result<Vec<_>> = axes.iter().map(|a| axis_text(mesh, a)).collect();
    Ok(texts?.join(", "))
}

/// The text of a sharding that names mesh axes, without the outer braces.
pub(super) fn sharding_text(proto: &pb::OpSharding) -> Result<String> {
    let empty = pb::NamedShardingProto::default();
    let named = proto.named_sharding.as_ref().unwrap_or(&empty);
    let no_mesh = pb::MeshProto::default();
    let mesh = named.mesh.as_ref().unwrap_or(&no_mesh);
    let mut dims = Vec::new();
    for dim in &named.dim_shardings {
        let axes = axes_text(mesh, &dim.axes)?;
        let open = match (dim.is_closed, dim.axes.is_empty()) {
            (true, _) => "",
            (false, true) => "?",
            (false, false) => ", ?",
        };
        dims.push(format!("{{{axes}{open}}}"));
    }
    let mut text = format!("{}, [{}]", mesh_text(mesh), dims.join(", "));
    for (word, axes) in [
        ("replicated", &named.replicated_axes),
        ("unreduced", &named.unreduced_axes),
        ("manual", &named.manual_axes),
    ] {
        if !axes.is_empty() {
            text += &format!(", {word}={{{}}}", axes_text(mesh, axes)?);
        }
    }
    Ok(text)
}

/// Replica groups that name mesh axes, written out.
pub(super) fn groups(proto: &pb::MeshAxesReplicaGroupListProto) -> Result<Vec<Vec<i64>>> {
    let no_mesh = pb::MeshProto::default();
    let mesh = proto.mesh.as_ref().unwrap_or(&no_mesh);
    let sizes: Vec<i64> = mesh.axes.iter().map(|axis| axis.size).collect();
    let devices = match &mesh.iota_transform {
        None => Some(mesh.device_ids.clone()),
        Some(iota) => expand_iota(&iota.reshape_dims, &iota.reshape_dims, &iota.transpose_perm)
            .map(|groups| groups.concat()),
    };
    let axes = proto.axes.iter().map(|axis| {
        Some(MeshAxis {
            axis: usize::try_from(axis.mesh_axis_index).ok()?,
            part: axis
                .sub_axis_info
                .as_ref()
                .map(|part| (part.pre_size, part.size)),
        })
    });
    let axes: Option<Vec<MeshAxis>> = axes.collect();
    let groups = devices
        .zip(axes)
        .and_then(|(devices, axes)| expand_mesh(&sizes, &devices, &axes));
    groups.ok_or_else(|| bad("replica groups do not fit their mesh"))
}
