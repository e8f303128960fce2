//! `sharding={devices=[2,1]<=[2]}` and its kin.

use crate::base::Cursor;
use crate::base::Result;
use crate::front::hlo_text::Reader;
use crate::hlo::ArraySharding;
use crate::hlo::Sharding;
use crate::hlo::ShardingKind;

fn kind(word: &str) -> Option<ShardingKind> {
    Some(match word {
        "replicated" => ShardingKind::Replicated,
        "maximal" => ShardingKind::Maximal,
        "manual" => ShardingKind::Manual,
        "unknown" => ShardingKind::Unknown,
        "unreduced" => ShardingKind::Unreduced,
        _ => return None,
    })
}

impl Reader<'_> {
    /// One sharding, or in another pair of braces one for each leaf of a tuple.
    pub(super) fn sharding(&mut self) -> Result<Sharding> {
        let start = self.cursor.pos();
        self.cursor.expect("{")?;
        let next = self.cursor.peek();
        if next != b'{' && next != b'}' {
            self.cursor.set_pos(start);
            return Ok(Sharding::Array(Box::new(self.array_sharding()?)));
        }
        let mut elements = Vec::new();
        while !self.cursor.eat("}") {
            if !elements.is_empty() {
                self.cursor.expect(",")?;
            }
            elements.push(Sharding::Array(Box::new(self.array_sharding()?)));
        }
        Ok(Sharding::Tuple(elements))
    }

    fn array_sharding(&mut self) -> Result<ArraySharding> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        self.cursor.expect("{")?;
        if matches!(self.cursor.peek_word(), Some("mesh" | "maximal_mesh")) {
            self.cursor.set_pos(start);
            let text = self.cursor.braced()?.to_owned();
            return Ok(ArraySharding {
                kind: ShardingKind::Other,
                text: Some(text),
                ..ArraySharding::default()
            });
        }
        let mut sharding = ArraySharding::default();
        let mut given = None;
        while !self.cursor.eat("}") {
            self.cursor.skip_space();
            let place = self.cursor.pos();
            let Some(word) = self.cursor.word() else {
                return Err(self.cursor.unexpected("a part of a sharding or `}`"));
            };
            match word {
                "device" => {
                    self.cursor.expect("=")?;
                    sharding.tile_assignment_devices = vec![self.cursor.integer()?];
                    sharding.tile_assignment_dimensions = vec![1];
                }
                "devices" => {
                    self.cursor.expect("=")?;
                    self.tile_assignment(&mut sharding)?;
                }
                "metadata" => {
                    self.cursor.expect("=")?;
                    sharding.metadata = self.metadata_list()?;
                }
                "last_tile_dims" => {
                    self.cursor.expect("=")?;
                    sharding.last_tile_dims = self.last_tile_dims()?;
                }
                "last_tile_dim_replicate" => sharding.replicate_on_last_tile_dim = true,
                "shard_as" | "shard_like" => {
                    sharding.is_shard_group = true;
                    sharding.shard_group_type = i32::from(word == "shard_like");
                    sharding.shard_group_id = self.cursor.integer()?;
                }
                _ => match kind(word) {
                    Some(kind) => given = Some(kind),
                    None => return Err(self.unknown(place, "part of a sharding", word)),
                },
            }
            self.cursor.eat(",");
        }
        let devices = sharding.tile_assignment_devices.len();
        let tiled = devices > 1 || !sharding.iota_reshape_dims.is_empty();
        sharding.kind = given.unwrap_or(ShardingKind::Other);
        let fits = match sharding.kind {
            ShardingKind::Other => tiled,
            ShardingKind::Maximal => devices == 1,
            _ => devices == 0 && !tiled,
        };
        if !fits {
            let message = "a sharding whose devices do not fit its kind";
            return Err(self.cursor.error_at(start, message));
        }
        Ok(sharding)
    }

    /// `[2,1]0,1` or `[2,1]<=[2]`
    fn tile_assignment(&mut self, sharding: &mut ArraySharding) -> Result<()> {
        sharding.tile_assignment_dimensions = self.cursor.list("[", "]", Cursor::integer)?;
        if self.cursor.eat("<=") {
            (sharding.iota_reshape_dims, sharding.iota_transpose_perm) = self.iota()?;
            return Ok(());
        }
        sharding.tile_assignment_devices.clear();
        loop {
            let device = self.cursor.integer()?;
            sharding.tile_assignment_devices.push(device);
            if !self.cursor.eat(",") {
                return Ok(());
            }
        }
    }

    /// `{replicated, manual}`
    fn last_tile_dims(&mut self) -> Result<Vec<ShardingKind>> {
        self.cursor.list("{", "}", |c| {
            c.skip_space();
            let place = c.pos();
            c.word().and_then(kind).ok_or_else(|| {
                c.set_pos(place);
                c.unexpected("a kind of sharding")
            })
        })
    }
}
