//! A program as a list of lines: easy to make at random, to print, and to make smaller.

use xla_aot::literal::ArrayLiteral;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;

/// How far results of different engines may be apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accuracy {
    /// Not at all, the bits of NaN included.
    Bits,
    /// Not at all, but for the bits of NaN.
    Exact,
    /// This far, relative to the element; of a complex one to its magnitude.
    Near(f64),
    /// This far, relative to the largest finite element, or to one if that is less.
    Spread(f64),
}

impl Accuracy {
    /// Whether it says which value there is, so that one can compute with it.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Bits | Self::Exact)
    }
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// An argument.
    Parameter(ArrayLiteral),
    /// An op: the text behind the shape.
    Op(String),
}

/// One instruction of the entry; its name is `v` and its place in the list it was made in.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name.
    pub name: usize,
    /// Shape, when it is an array.
    pub array: Option<ArrayShape>,
    /// Shape as text.
    pub shape: String,
    /// What gives it.
    pub source: Source,
    /// Names of operands.
    pub operands: Vec<usize>,
    /// How far results may be apart.
    pub accuracy: Accuracy,
    /// Largest magnitude, when all elements are whole numbers that sums keep exact.
    pub whole: Option<f64>,
}

/// A program and its inputs.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Computations besides the entry: name and text.
    pub others: Vec<(String, String)>,
    /// The entry, operands before users.
    pub lines: Vec<Line>,
    /// Names of the results.
    pub outputs: Vec<usize>,
    /// Layouts of parameters and results at the door, by name: minor to major.
    pub layouts: Vec<(usize, Vec<usize>)>,
    /// Layouts that instructions say they have, by name: minor to major.
    pub inside: Vec<(usize, Vec<usize>)>,
}

/// `f32[2,3]`
pub fn shape_text(ty: PrimitiveType, dims: &[usize]) -> String {
    format!("{ty}[{}]", list(dims))
}

/// `1,2,3`
pub fn list(numbers: &[usize]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(",")
}

impl Program {
    /// The line of that name.
    pub fn line(&self, name: usize) -> &Line {
        let found = self.lines.iter().find(|line| line.name == name);
        found.expect("operands are lines")
    }

    /// The arguments, in order.
    pub fn inputs(&self) -> Vec<ArrayLiteral> {
        let values = self.lines.iter().filter_map(|line| match &line.source {
            Source::Parameter(value) => Some(value.clone()),
            Source::Op(_) => None,
        });
        values.collect()
    }

    /// The outputs as lines, in order.
    pub fn results(&self) -> Vec<&Line> {
        self.outputs.iter().map(|&name| self.line(name)).collect()
    }

    /// HLO text, with these lines as results.
    pub fn text(&self, outputs: &[usize]) -> String {
        let door = |line: &Line| {
            let layout = self.layouts.iter().find(|(name, _)| *name == line.name);
            match layout {
                Some((_, order)) => format!("{}{{{}}}", line.shape, list(order)),
                None => line.shape.clone(),
            }
        };
        let params = self
            .lines
            .iter()
            .filter(|l| matches!(l.source, Source::Parameter(_)));
        let params: Vec<String> = params.map(door).collect();
        let results = outputs.iter().map(|&name| self.line(name));
        let shapes: Vec<String> = results.clone().map(door).collect();
        let mut text = "HloModule fuzz".to_owned();
        if !self.layouts.is_empty() {
            text.push_str(&format!(
                ", entry_computation_layout={{({})->({})}}",
                params.join(", "),
                shapes.join(", ")
            ));
        }
        text.push_str("\n\n");
        for (_, other) in &self.others {
            text.push_str(other);
            text.push('\n');
        }
        text.push_str("ENTRY main {\n");
        let mut number = 0;
        for line in &self.lines {
            let what = match &line.source {
                Source::Parameter(_) => {
                    number += 1;
                    format!("parameter({})", number - 1)
                }
                Source::Op(text) => text.clone(),
            };
            let inside = self.inside.iter().find(|(name, _)| *name == line.name);
            let layout = inside.map_or(String::new(), |(_, order)| format!("{{{}}}", list(order)));
            text.push_str(&format!(
                "  v{} = {}{layout} {what}\n",
                line.name, line.shape
            ));
        }
        let plain: Vec<String> = results.map(|line| line.shape.clone()).collect();
        let names: Vec<String> = outputs.iter().map(|name| format!("v{name}")).collect();
        text.push_str(&format!(
            "  ROOT out = ({}) tuple({})\n}}\n",
            plain.join(", "),
            names.join(", ")
        ));
        text
    }

    /// Without lines and computations that no result needs.
    pub fn without_dead(&self) -> Self {
        let mut live = self.outputs.clone();
        let mut lines: Vec<Line> = Vec::new();
        for line in self.lines.iter().rev() {
            if live.contains(&line.name) {
                live.extend(&line.operands);
                lines.push(line.clone());
            }
        }
        lines.reverse();
        let mut others: Vec<(String, String)> = Vec::new();
        let mut texts: Vec<String> = lines
            .iter()
            .filter_map(|line| match &line.source {
                Source::Op(text) => Some(text.clone()),
                Source::Parameter(_) => None,
            })
            .collect();
        for (name, text) in self.others.iter().rev() {
            if texts.iter().any(|user| mentions(user, name)) {
                texts.push(text.clone());
                others.push((name.clone(), text.clone()));
            }
        }
        others.reverse();
        let kept = |name: &usize| lines.iter().any(|line| line.name == *name);
        let those = |layouts: &[(usize, Vec<usize>)]| {
            let kept = layouts.iter().filter(|(name, _)| kept(name));
            kept.cloned().collect()
        };
        Self {
            others,
            outputs: self.outputs.clone(),
            layouts: those(&self.layouts),
            inside: those(&self.inside),
            lines,
        }
    }
}

/// Whether a text has that word.
fn mentions(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).any(|found| found == word)
}
