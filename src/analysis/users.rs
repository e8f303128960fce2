//! Who uses whom: the users of every instruction, as one flat table.
//!
//! A user is an instruction that has the value as an operand; it is listed once however often it
//! uses the value. Control edges are not uses.

use crate::base::Id;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;

/// The users of every instruction of some computations.
#[derive(Clone, Debug, Default)]
pub struct Users {
    starts: Vec<u32>,
    list: Vec<InstrId>,
}

impl Users {
    /// The users within these computations.
    pub fn of(module: &Module, comps: &[CompId]) -> Self {
        let mut starts = vec![0u32; module.instrs.len() + 1];
        for_each_use(module, comps, |operand, _| starts[operand.index() + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let total = starts.last().copied().unwrap_or(0) as usize;
        let mut next = starts.clone();
        let mut list = vec![InstrId::from_index(0); total];
        for_each_use(module, comps, |operand, user| {
            let slot = &mut next[operand.index()];
            list[*slot as usize] = user;
            *slot += 1;
        });
        Self { starts, list }
    }
    /// The users of `id`, in the order of their computation.
    pub fn get(&self, id: InstrId) -> &[InstrId] {
        let i = id.index();
        match (self.starts.get(i), self.starts.get(i + 1)) {
            (Some(&start), Some(&end)) => &self.list[start as usize..end as usize],
            _ => &[],
        }
    }
    /// The number of users of `id`.
    pub fn count(&self, id: InstrId) -> usize {
        self.get(id).len()
    }
}

fn for_each_use(module: &Module, comps: &[CompId], mut visit: impl FnMut(InstrId, InstrId)) {
    for &comp in comps {
        for &user in &module.comps[comp].instrs {
            let operands = &module.instrs[user].operands;
            for (i, &operand) in operands.iter().enumerate() {
                if !operands[..i].contains(&operand) {
                    visit(operand, user);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::BinaryOp;
    use crate::shape::PrimitiveType;
    use crate::shape::Shape;

    #[test]
    fn a_user_is_listed_once_and_in_order() {
        let mut module = Module::new("m");
        let comp = module.new_comp("e");
        let mut b = module.builder(comp);
        let x = b.parameter("x", Shape::scalar(PrimitiveType::F32));
        let square = b.binary(BinaryOp::Multiply, x, x).unwrap();
        let sum = b.add(square, x).unwrap();
        b.set_root(sum);
        let users = Users::of(&module, &[comp]);
        assert_eq!(users.get(x), [square, sum]);
        assert_eq!(users.get(square), [sum]);
        assert_eq!(users.count(sum), 0);
    }
}
