//! Makes a wrong program small: fewer results, fewer ops, plainer inputs.

use xla_aot::literal::ArrayLiteral;

use super::check::Way;
use super::check::check;
use super::check::evaluate;
use super::program::Accuracy;
use super::program::Door;
use super::program::Program;
use super::program::Source;

/// Attempts at most.
const ATTEMPTS: usize = 200;

/// The smallest program found that is still wrong in that way.
pub fn shrink(program: &Program, way: Way) -> Program {
    let mut search = Search {
        way,
        left: ATTEMPTS,
    };
    let mut best = program.clone();
    loop {
        let before = best.text(&best.outputs);
        best = search.fewer_results(best);
        best = search.cut(best);
        best = search.plainer(best);
        if best.text(&best.outputs) == before || search.left == 0 {
            return best;
        }
    }
}

struct Search {
    way: Way,
    left: usize,
}

impl Search {
    fn is_wrong(&mut self, program: &Program) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        check(program, &[self.way]).is_err()
    }

    /// One result by itself, or all but one.
    fn fewer_results(&mut self, best: Program) -> Program {
        for &name in &best.outputs {
            let single = Program {
                outputs: vec![name],
                ..best.clone()
            };
            let single = single.without_dead();
            if best.outputs.len() > 1 && self.is_wrong(&single) {
                return single;
            }
        }
        let mut best = best;
        for name in best.outputs.clone() {
            let mut fewer = best.clone();
            fewer.outputs.retain(|&n| n != name);
            let fewer = fewer.without_dead();
            if !fewer.outputs.is_empty() && self.is_wrong(&fewer) {
                best = fewer;
            }
        }
        best
    }

    /// Values become arguments, the last first.
    fn cut(&mut self, best: Program) -> Program {
        let Ok(values) = evaluate(&best) else {
            return best;
        };
        // Devices that run it together have different values, and a program names those of one.
        let alone = best.device_count() == 1;
        let mut best = best;
        for i in (0..best.lines.len()).rev().filter(|_| alone) {
            let Some(line) = best.lines.get(i) else {
                continue;
            };
            if line.array.is_none() || matches!(line.source, Source::Parameter(_)) {
                continue;
            }
            let name = line.name;
            let mut shorter = best.clone();
            shorter.lines[i].source = Source::Parameter(values[0].get(name).clone());
            shorter.lines[i].operands.clear();
            shorter.lines[i].accuracy = Accuracy::Bits;
            shorter.outputs.retain(|&output| output != name);
            let shorter = shorter.without_dead();
            if !shorter.outputs.is_empty() && self.is_wrong(&shorter) {
                best = shorter;
            }
        }
        let mut plain = best.clone();
        plain.layouts.clear();
        if !best.layouts.is_empty() && self.is_wrong(&plain) {
            best = plain.clone();
        }
        plain = best.clone();
        plain.inside.clear();
        if !best.inside.is_empty() && self.is_wrong(&plain) {
            best = plain.clone();
        }
        plain = best.clone();
        plain.undeclared.clear();
        plain.door = Door::Tuple;
        plain.edges.clear();
        plain.aliases.clear();
        let odd = best.door != Door::Tuple
            || !(best.undeclared.is_empty() && best.edges.is_empty() && best.aliases.is_empty());
        if odd && self.is_wrong(&plain) {
            best = plain;
        }
        best
    }

    /// Arguments of one value, or of zeros.
    fn plainer(&mut self, best: Program) -> Program {
        let mut best = best;
        for i in 0..best.lines.len() {
            let Source::Parameter(value) = &best.lines[i].source else {
                continue;
            };
            let (shape, value) = (value.shape().clone(), value.clone());
            if value.is_empty() {
                continue;
            }
            let first = value.element(0).repeat(value.len());
            let zeros = ArrayLiteral::zeros(shape.clone());
            for plain in [zeros, ArrayLiteral::new(shape.clone(), first)] {
                if plain == value {
                    break;
                }
                let mut plainer = best.clone();
                plainer.lines[i].source = Source::Parameter(plain);
                if self.is_wrong(&plainer) {
                    best = plainer;
                    break;
                }
            }
        }
        best
    }
}
