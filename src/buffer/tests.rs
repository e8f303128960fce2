//! Random programs through copies, schedule, assignment and check; and assignments broken on purpose.

use crate::base::ByteSize;
use crate::base::Result;
use crate::base::codes;
use crate::buffer;
use crate::buffer::BufferAssignment;
use crate::hlo::AliasKind;
use crate::hlo::AliasTarget;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::UnaryOp;
use crate::passes::finish::copies::insert_copies;
use crate::schedule;
use crate::schedule::Scheduled;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::target::CpuFamily;
use crate::target::CpuSpec;
use crate::target::DeviceSpec;
use crate::target::Target;

fn target() -> Target {
    Target {
        device: DeviceSpec::Cpu(CpuSpec {
            name: "x86-64-v3".into(),
            family: CpuFamily::X86_64,
            triple: "x86_64-unknown-linux-gnu".into(),
            llvm_cpu: "x86-64-v3".into(),
            features: Vec::new(),
            disabled_features: Vec::new(),
            vector_bytes: 32,
            vector_registers: 16,
            l1_bytes: ByteSize(32768),
            l2_bytes: ByteSize(262_144),
        }),
        buffer_alignment: 64,
        parameter_alignment: 64,
        parallelism: 4,
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        let mixed = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = mixed.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

const LARGE: usize = 64;
const SMALL: usize = 8;

/// Appends `steps` random instructions over values of `f32[64]`; gives all there are then.
fn grow(
    b: &mut Builder<'_>,
    given: &[InstrId],
    index: InstrId,
    steps: usize,
    depth: usize,
    random: &mut Random,
) -> Result<Vec<InstrId>> {
    let mut all = given.to_vec();
    for _ in 0..steps {
        let x = random.pick(&all);
        let y = random.pick(&all);
        let new = match random.below(if depth > 0 { 12 } else { 8 }) {
            0 | 1 => b.binary(BinaryOp::Add, x, y)?,
            2 => b.unary(UnaryOp::Tanh, x)?,
            3 => b.reverse(x, &[0])?,
            4 | 5 => {
                let part = b.slice_dim(y, 0, 8, 8 + SMALL)?;
                b.dynamic_update_slice(x, part, &[index])?
            }
            6 => b.copy(x)?,
            7 => b.full(PrimitiveType::F32, &[LARGE], 1.0)?,
            8 | 9 => {
                let count = 1 + random.below(4);
                let state: Vec<InstrId> = (0..count).map(|_| random.pick(&all)).collect();
                let steps = 1 + random.below(6);
                let ends = b.counted_loop("loop", 5, &state, |b, index, values| {
                    let made = grow(b, values, index, steps, depth - 1, random)?;
                    Ok((0..count).map(|_| random.pick(&made)).collect())
                })?;
                all.extend(ends);
                continue;
            }
            _ => {
                let zero = b.constant_int(PrimitiveType::S32, 0);
                let pred = b.compare(ComparisonDirection::Gt, index, zero)?;
                let steps = 1 + random.below(4);
                let count = 1 + random.below(3);
                let state = [
                    Shape::array(PrimitiveType::F32, [LARGE]),
                    Shape::array(PrimitiveType::F32, [LARGE]),
                    Shape::scalar(PrimitiveType::S32),
                ];
                let mut branches = Vec::new();
                for name in ["yes", "no"] {
                    let name = format!("{name}.{}", b.module.comps.len());
                    let whole = [Shape::Tuple(state.to_vec())];
                    branches.push(b.computation(name, &whole, |b, p| {
                        let e = b.elements(p[0])?;
                        let made = grow(b, &e[..2], e[2], steps, depth - 1, random)?;
                        let out: Vec<_> = (0..count).map(|_| random.pick(&made)).collect();
                        b.tuple(&out)
                    })?);
                }
                let operand = b.tuple(&[x, y, index])?;
                let out = b.conditional(pred, &branches, &[operand, operand])?;
                let out = b.elements(out)?;
                all.extend(out);
                continue;
            }
        };
        all.push(new);
    }
    Ok(all)
}

fn random_module(seed: u64) -> Result<Module> {
    let mut random = Random(seed);
    let mut module = Module::new("random");
    let entry = module.new_comp("entry");
    module.entry = entry;
    let mut b = module.builder(entry);
    let large = Shape::array(PrimitiveType::F32, [LARGE]);
    let given: Vec<_> = (0..3)
        .map(|i| b.parameter(format!("p{i}"), large.clone()))
        .collect();
    let index = b.parameter("index", Shape::scalar(PrimitiveType::S32));
    let steps = 2 + random.below(14);
    let all = grow(&mut b, &given, index, steps, 2, &mut random)?;
    let outputs: Vec<_> = (0..1 + random.below(4))
        .map(|_| random.pick(&all))
        .collect();
    let root = b.tuple(&outputs)?;
    b.set_root(root);
    for output in 0..outputs.len().min(random.below(3)) {
        let alias = AliasTarget {
            parameter: output,
            index: [].into_iter().collect(),
            kind: AliasKind::May,
        };
        let index = [output].into_iter().collect();
        module.input_output_alias.insert(index, alias);
    }
    Ok(module)
}

fn finished(seed: u64) -> Scheduled {
    let mut module = random_module(seed).expect("the random module is built");
    insert_copies(&mut module).expect("copies are inserted");
    schedule::run(module, &target()).expect("the module is scheduled")
}

#[test]
fn random_programs_pass_the_check() {
    for seed in 0..120 {
        let scheduled = finished(seed);
        let assignment = buffer::assign(&scheduled, &target()).expect("buffers are assigned");
        let findings = buffer::check(&scheduled, &assignment, &target());
        assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
    }
}

#[test]
fn the_listed_order_passes_too() {
    for seed in 0..40 {
        let mut module = random_module(seed).expect("the random module is built");
        module.input_output_alias.clear();
        insert_copies(&mut module).expect("copies are inserted");
        let scheduled = Scheduled::as_listed(module).expect("the module is listed");
        let assignment = buffer::assign(&scheduled, &target()).expect("buffers are assigned");
        let findings = buffer::check(&scheduled, &assignment, &target());
        assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
    }
}

#[test]
fn values_put_onto_others_are_found() {
    let mut tried = 0;
    for seed in 0..8 {
        let scheduled = finished(seed);
        let good = buffer::assign(&scheduled, &target()).expect("buffers are assigned");
        let ids: Vec<_> = good.flow.values().ids().collect();
        for (i, &a) in ids.iter().enumerate() {
            for &b in &ids[..i] {
                let (Some(at), Some(onto)) = (good.slices[a], good.slices[b]) else {
                    continue;
                };
                if !good.live.used.contains(a) || !good.live.used.contains(b) || at == onto {
                    continue;
                }
                if at.size != onto.size || !together(&good, a, b) {
                    continue;
                }
                let mut bad = good.clone();
                bad.slices.set(a, Some(onto));
                tried += 1;
                assert!(
                    !buffer::check(&scheduled, &bad, &target()).is_empty(),
                    "seed {seed}: {a:?} onto {b:?} is not found in\n{}",
                    buffer::print(&scheduled.module, &good)
                );
            }
        }
    }
    assert!(tried > 200, "{tried} broken assignments");
}

/// Whether two values are live at two points in a row.
fn together(
    assignment: &BufferAssignment,
    a: crate::analysis::ValueId,
    b: crate::analysis::ValueId,
) -> bool {
    let segments = &assignment.live.segments;
    segments[a].iter().any(|x| {
        let both = |y: &&crate::analysis::Segment| x.start.max(y.start) < x.end.min(y.end);
        segments[b].iter().any(|y| both(&y))
    })
}

#[test]
fn other_rules_are_checked() {
    let scheduled = finished(3);
    let good = buffer::assign(&scheduled, &target()).expect("buffers are assigned");
    let temp = good.allocs.ids().find(|&id| good.allocs[id].is_temp());
    let temp = temp.expect("the program has temporary values");
    let value = good
        .flow
        .values()
        .ids()
        .find(|&v| good.slices[v].is_some_and(|s| s.alloc == temp && s.size == 256));
    let value = value.expect("a temporary value");
    let slice = good.slices[value].expect("it has a slice");
    let says = |bad: &BufferAssignment| -> String {
        let findings = buffer::check(&scheduled, bad, &target());
        let messages: Vec<_> = findings.iter().map(|f| f.message.clone()).collect();
        messages.join("; ")
    };
    let moved = |change: &dyn Fn(&mut crate::executable::Slice)| {
        let mut bad = good.clone();
        let mut slice = slice;
        change(&mut slice);
        bad.slices.set(value, Some(slice));
        says(&bad)
    };
    assert!(moved(&|s| s.size -= 4).contains("a slice of 252 for 256"));
    let past = moved(&|s| s.offset += 1 << 20);
    assert!(past.contains("the slice leaves its allocation"));
    let shifted =
        moved(&|s| s.offset = s.offset.saturating_sub(32) + 32 * u64::from(s.offset == 0));
    assert!(shifted.contains("the slice is not aligned"), "{shifted}");
    let mut bad = good.clone();
    bad.allocs[temp].live_out = true;
    assert!(says(&bad).contains("wrongly said to live on"));
    let mut bad = good.clone();
    bad.slices.set(value, None);
    assert!(says(&bad).contains("has no slice"));
}

#[test]
fn sizes_that_cannot_be_added_up_are_refused() {
    let mut module = Module::new("m");
    let comp = module.new_comp("e");
    let mut b = module.builder(comp);
    // 2^60 bytes each.
    let p = b.parameter("p", Shape::array(PrimitiveType::F64, [1 << 57]));
    let ops = [UnaryOp::Cos, UnaryOp::Exp, UnaryOp::Sin, UnaryOp::Tanh];
    let mut sum = p;
    let terms: Vec<InstrId> = (0..20).map(|i| b.unary(ops[i % 4], p).unwrap()).collect();
    for term in terms {
        sum = b.add(term, sum).unwrap();
    }
    b.set_root(sum);
    let scheduled = schedule::run(module, &target()).unwrap();
    let error = buffer::assign(&scheduled, &target()).unwrap_err();
    assert_eq!(error.code, codes::MEMORY_LIMIT);
}
