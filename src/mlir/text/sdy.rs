//! Attributes of Shardy in MLIR text.

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::text::Reader;
use crate::mlir::text::formats::REDUCTIONS;
use crate::mlir::types::Name;

impl<'a> Reader<'a> {
    /// An attribute of Shardy after `#sdy.kind` or `#sdy`; nothing, without having moved, when the
    /// kind is not known.
    pub(super) fn sdy_attr(&mut self, kind: &'a str) -> Result<Option<Attr>> {
        let back = self.scan.pos();
        let wrapped = kind.is_empty();
        let mut kind = kind;
        if wrapped {
            self.scan.expect("<")?;
            kind = self.scan.keyword().unwrap_or_default();
        }
        let attr = match kind {
            "mesh" => self.sdy_mesh()?,
            "sharding" => self.sdy_sharding()?,
            "sharding_per_value" => self.sdy_sharding_per_value()?,
            "manual_axes" => self.sdy_manual_axes()?,
            "axis_ref_list" => self.sdy_axis_list()?,
            "list_of_axis_ref_lists" => self.sdy_axis_lists()?,
            "all_to_all_param_list" => self.sdy_all_to_all()?,
            "all_to_all_param" => self.sdy_all_to_all_param()?,
            "axis_ref" => self.sdy_axis()?,
            "dimension_sharding" => self.sdy_dimension()?,
            "mesh_axis" => self.sdy_mesh_axis()?,
            "sub_axis_info" => self.sdy_sub_axis()?,
            _ => {
                self.scan.set_pos(back);
                return Ok(None);
            }
        };
        if wrapped {
            self.scan.expect(">")?;
        }
        Ok(Some(attr))
    }
    /// Items with commas between, up to a closing bracket.
    fn sdy_items(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<Attr>,
    ) -> Result<Vec<Attr>> {
        self.items([open, close], |r| {
            r.count()?;
            r.nested(&mut item)
        })
    }
    /// `<["x"=2, "y"=4], device_ids=[3, 2, 1, 0]>`.
    pub(super) fn sdy_mesh(&mut self) -> Result<Attr> {
        self.scan.expect("<")?;
        let axes = self.sdy_items("[", "]", Self::sdy_mesh_axis)?;
        let mut fields = Vec::new();
        push_list(&mut fields, "axes", axes);
        if self.scan.eat(",") {
            self.scan.expect_keyword("device_ids")?;
            self.scan.expect("=")?;
            let ids = self.ints()?;
            if !ids.is_empty() {
                fields.push(("device_ids".into(), Attr::i64_array(&ids)));
            }
        }
        self.scan.expect(">")?;
        Ok(Attr::structure("sdy", "mesh", fields))
    }
    /// `"x"=2`.
    fn sdy_mesh_axis(&mut self) -> Result<Attr> {
        let mut fields = vec![("name".into(), Attr::String(self.scan.string()?.into()))];
        self.scan.expect("=")?;
        push_int(&mut fields, "size", self.scan.integer()?);
        Ok(Attr::structure("sdy", "mesh_axis", fields))
    }
    /// `"x"` or `"x":(1)2`.
    fn sdy_axis(&mut self) -> Result<Attr> {
        let mut fields = vec![("name".into(), Attr::String(self.scan.string()?.into()))];
        if self.scan.eat(":") {
            fields.push(("sub_axis_info".into(), self.sdy_sub_axis()?));
        }
        Ok(Attr::structure("sdy", "axis_ref", fields))
    }
    /// `(1)2`.
    fn sdy_sub_axis(&mut self) -> Result<Attr> {
        let mut fields = Vec::new();
        self.scan.expect("(")?;
        push_int(&mut fields, "pre_size", self.scan.integer()?);
        self.scan.expect(")")?;
        push_int(&mut fields, "size", self.scan.integer()?);
        Ok(Attr::structure("sdy", "sub_axis_info", fields))
    }
    fn sdy_axes(&mut self) -> Result<Vec<Attr>> {
        self.sdy_items("{", "}", Self::sdy_axis)
    }
    /// `{"x", "y":(1)2, ?}p1`.
    fn sdy_dimension(&mut self) -> Result<Attr> {
        self.scan.expect("{")?;
        let mut axes = Vec::new();
        let mut open = false;
        while !self.scan.eat("}") {
            if !axes.is_empty() {
                self.scan.expect(",")?;
            }
            if self.scan.eat("?") {
                open = true;
                self.scan.expect("}")?;
                break;
            }
            axes.push(self.sdy_axis()?);
        }
        let mut fields = Vec::new();
        push_list(&mut fields, "axes", axes);
        if open {
            fields.push(("is_open".into(), Attr::Unit));
        }
        if self.scan.byte(0) == b'p' {
            self.scan.set_pos(self.scan.pos() + 1);
            let priority = Attr::i64(self.scan.small()?.into());
            fields.push(("priority".into(), priority));
        }
        Ok(Attr::structure("sdy", "dimension_sharding", fields))
    }
    /// `<@mesh, [{"x"}, {}], replicated={"y"}, unreduced={"z"}>`.
    pub(super) fn sdy_sharding(&mut self) -> Result<Attr> {
        self.count()?;
        self.scan.expect("<")?;
        let mesh = match self.scan.eat_keyword("mesh") {
            true => self.sdy_mesh()?,
            false => Attr::Symbol(self.symbol_ref()?),
        };
        let mut fields = vec![("mesh".into(), mesh)];
        self.scan.expect(",")?;
        let dims = self.sdy_items("[", "]", Self::sdy_dimension)?;
        push_list(&mut fields, "dim_shardings", dims);
        let (mut replicated, mut unreduced, mut reduction) = (Vec::new(), Vec::new(), None);
        while self.scan.eat(",") {
            if self.scan.eat_keyword("replicated") {
                self.scan.expect("=")?;
                replicated = self.sdy_axes()?;
            } else {
                self.scan.expect_keyword("unreduced")?;
                if self.scan.eat("=") {
                    reduction = self.scan.keyword();
                    if reduction.is_some_and(|word| !REDUCTIONS.contains(&word)) {
                        let wanted = format!("axes or one of `{}`", REDUCTIONS.join("`, `"));
                        return Err(self.scan.unexpected(&wanted));
                    }
                }
                unreduced = self.sdy_axes()?;
            }
        }
        let is_partial = !unreduced.is_empty();
        push_list(&mut fields, "replicated_axes", replicated);
        push_list(&mut fields, "unreduced_axes", unreduced);
        if let Some(case) = reduction.filter(|case| is_partial && *case != REDUCTIONS[0]) {
            fields.push((
                "reduction_op".into(),
                Attr::enumeration("sdy", "reduction_op", case),
            ));
        }
        self.scan.expect(">")?;
        Ok(Attr::structure("sdy", "sharding", fields))
    }
    /// `<[<@mesh, [{}]>, ...]>`.
    fn sdy_sharding_per_value(&mut self) -> Result<Attr> {
        self.scan.expect("<")?;
        let attr = self.sdy_shardings()?;
        self.scan.expect(">")?;
        Ok(attr)
    }
    /// `[<@mesh, [{}]>, ...]`.
    pub(super) fn sdy_shardings(&mut self) -> Result<Attr> {
        let shardings = self.sdy_items("[", "]", Self::sdy_sharding)?;
        let mut fields = Vec::new();
        push_list(&mut fields, "shardings", shardings);
        Ok(Attr::structure("sdy", "sharding_per_value", fields))
    }
    /// `{"x", "y"}`.
    pub(super) fn sdy_manual_axes(&mut self) -> Result<Attr> {
        let axes = self.sdy_items("{", "}", |r| Ok(Attr::String(r.scan.string()?.into())))?;
        let mut fields = Vec::new();
        push_list(&mut fields, "axes", axes);
        Ok(Attr::structure("sdy", "manual_axes", fields))
    }
    /// `{"x", "y":(1)2}`.
    pub(super) fn sdy_axis_list(&mut self) -> Result<Attr> {
        let axes = self.sdy_axes()?;
        let mut fields = Vec::new();
        push_list(&mut fields, "axes", axes);
        Ok(Attr::structure("sdy", "axis_ref_list", fields))
    }
    /// `[{"x"}, {}]`.
    pub(super) fn sdy_axis_lists(&mut self) -> Result<Attr> {
        let lists = self.sdy_items("[", "]", |r| Ok(Attr::array(r.sdy_axes()?)))?;
        let mut fields = Vec::new();
        push_list(&mut fields, "lists", lists);
        Ok(Attr::structure("sdy", "list_of_axis_ref_lists", fields))
    }
    /// `[{"x"}: 0->1, {"y"}: 2->3]`.
    pub(super) fn sdy_all_to_all(&mut self) -> Result<Attr> {
        let params = self.sdy_items("[", "]", Self::sdy_all_to_all_param)?;
        let mut fields = Vec::new();
        push_list(&mut fields, "value", params);
        Ok(Attr::structure("sdy", "all_to_all_param_list", fields))
    }
    /// `{"x"}: 0->1`.
    fn sdy_all_to_all_param(&mut self) -> Result<Attr> {
        let mut fields = Vec::new();
        push_list(&mut fields, "axes", self.sdy_axes()?);
        self.scan.expect(":")?;
        push_int(&mut fields, "src_dim", self.scan.integer()?);
        self.scan.expect("->")?;
        push_int(&mut fields, "tgt_dim", self.scan.integer()?);
        Ok(Attr::structure("sdy", "all_to_all_param", fields))
    }
}

/// Adds a field with this integer, unless it is zero.
fn push_int(fields: &mut Vec<(Name, Attr)>, name: &str, value: i64) {
    if value != 0 {
        fields.push((name.into(), Attr::i64(value)));
    }
}

/// Adds a field with these items, when there are any.
fn push_list(fields: &mut Vec<(Name, Attr)>, name: &str, items: Vec<Attr>) {
    if !items.is_empty() {
        fields.push((name.into(), Attr::array(items)));
    }
}
