//! The names of arguments and results: the paths of the leaves of a tree.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::text::MAX_NESTING;
use crate::front::jax_export::flatbuffer::Table;

/// Most nodes of a tree. A table may stand in many places, so that a small file is a large tree.
const MAX_NODES: usize = 1 << 20;

/// The kinds of nodes, by `PyTreeDefKind` of `serialization.fbs`.
const LEAF: u8 = 0;
const NONE: u8 = 1;
const TUPLE: u8 = 2;
const LIST: u8 = 3;
const DICT: u8 = 4;
const CUSTOM: u8 = 5;

/// The names of the leaves of the tree of arguments, a tuple of the positional ones and the named:
/// `args[0]['w']`, `kwargs['scale']`.
pub(super) fn argument_names(tree: Option<Table<'_>>) -> Result<Vec<String>> {
    let names = leaf_names(tree, String::new())?;
    let names = names.into_iter().map(|path| {
        if let Some(rest) = path.strip_prefix("[0]") {
            format!("args{rest}")
        } else if let Some(rest) = path.strip_prefix("[1]") {
            format!("kwargs{rest}")
        } else {
            path
        }
    });
    Ok(names.collect())
}

/// The names of the leaves of the tree of results: `result[0]['w']`.
pub(super) fn result_names(tree: Option<Table<'_>>) -> Result<Vec<String>> {
    leaf_names(tree, "result".to_owned())
}

fn leaf_names(tree: Option<Table<'_>>, root: String) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut walk = Walk { left: MAX_NODES };
    if let Some(tree) = tree {
        walk.visit(tree, &root, 0, &mut names)?;
    }
    Ok(names)
}

struct Walk {
    left: usize,
}

impl Walk {
    fn visit(
        &mut self,
        tree: Table<'_>,
        path: &str,
        depth: usize,
        names: &mut Vec<String>,
    ) -> Result<()> {
        let limit = |what: &str| {
            let message = format!("the tree of an export is {what}");
            Err(Diagnostic::error(codes::INPUT_LIMIT, message))
        };
        if depth > MAX_NESTING {
            return limit("nested too deep");
        }
        self.left = match self.left.checked_sub(1 + path.len() / 64) {
            Some(left) => left,
            None => return limit("too large"),
        };
        let children = tree.offsets(1, "the nodes of a tree")?;
        let labels = tree.offsets(2, "the keys of a tree")?;
        let kind = tree.u8(0)?;
        match kind {
            LEAF => {
                names.push(path.to_owned());
                return Ok(());
            }
            NONE => return Ok(()),
            TUPLE | LIST | CUSTOM => {}
            DICT if labels.len() == children.len() => {
                let pairs = children
                    .tables("a node of a tree")
                    .zip(labels.texts("a key of a tree"));
                for (child, label) in pairs {
                    let path = format!("{path}['{}']", label?.escape_default());
                    self.visit(child?, &path, depth + 1, names)?;
                }
                return Ok(());
            }
            _ => {
                let message = format!("the tree of an export has a node of kind {kind}");
                return Err(Diagnostic::error(codes::PROTO_DECODE, message));
            }
        }
        for (i, child) in children.tables("a node of a tree").enumerate() {
            self.visit(child?, &format!("{path}[{i}]"), depth + 1, names)?;
        }
        Ok(())
    }
}
