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
    /// Whether it is an argument that every device has in another order.
    pub varies: bool,
}

/// How results are handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// As one tuple.
    #[default]
    Tuple,
    /// A single one as it is.
    Bare,
    /// As tuples in a tuple, one of them empty; arguments come in a tuple too.
    Nested,
}

/// A program and its inputs.
#[derive(Clone, Debug)]
pub struct Program {
    /// Replicas and partitions that run it together.
    pub devices: (usize, usize),
    /// How arguments come in and results go out.
    pub door: Door,
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
    /// Instructions whose shapes do not say that they are dynamic.
    pub undeclared: Vec<usize>,
    /// What comes before what, by name.
    pub edges: Vec<(usize, usize)>,
    /// Results that may lie where arguments were, by name.
    pub aliases: Vec<(usize, usize)>,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            devices: (1, 1),
            door: Door::Tuple,
            others: Vec::new(),
            lines: Vec::new(),
            outputs: Vec::new(),
            layouts: Vec::new(),
            inside: Vec::new(),
            undeclared: Vec::new(),
            edges: Vec::new(),
            aliases: Vec::new(),
        }
    }
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

    /// How many devices run it.
    pub fn device_count(&self) -> usize {
        self.devices.0 * self.devices.1
    }

    /// The arguments of the first device, in order.
    pub fn inputs(&self) -> Vec<ArrayLiteral> {
        self.inputs_of(0)
    }

    /// The arguments of a device, in order. Devices have the same elements, each from another one on.
    pub fn inputs_of(&self, device: usize) -> Vec<ArrayLiteral> {
        let values = self.lines.iter().filter_map(|line| match &line.source {
            Source::Parameter(value) if line.varies && !value.is_empty() => {
                let width = value.bytes().len() / value.len();
                let mut bytes = value.bytes().to_vec();
                bytes.rotate_left(device % value.len() * width);
                Some(ArrayLiteral::new(value.shape().clone(), bytes))
            }
            Source::Parameter(value) => Some(value.clone()),
            Source::Op(_) => None,
        });
        values.collect()
    }

    /// The outputs as lines, in order.
    pub fn results(&self) -> Vec<&Line> {
        self.outputs.iter().map(|&name| self.line(name)).collect()
    }

    /// The shape of a line, with its layout at the door.
    fn at_door(&self, line: &Line) -> String {
        let layout = self.layouts.iter().find(|(name, _)| *name == line.name);
        match layout {
            Some((_, order)) => format!("{}{{{}}}", line.shape, list(order)),
            None => line.shape.clone(),
        }
    }

    /// HLO text, with these lines as results.
    pub fn text(&self, outputs: &[usize]) -> String {
        let params = self
            .lines
            .iter()
            .filter(|l| matches!(l.source, Source::Parameter(_)));
        let results = outputs.iter().map(|&name| self.line(name));
        let mut text = "HloModule fuzz".to_owned();
        if self.device_count() > 1 {
            let (replicas, partitions) = self.devices;
            text.push_str(&format!(
                ", replica_count={replicas}, num_partitions={partitions}"
            ));
        }
        text.push_str(&self.alias_text(outputs));
        if !self.layouts.is_empty() {
            let params: Vec<String> = params.clone().map(|line| self.at_door(line)).collect();
            let shapes: Vec<String> = results.clone().map(|line| self.at_door(line)).collect();
            let params = params.join(", ");
            let params = match self.door {
                Door::Nested => format!("({params})"),
                Door::Tuple | Door::Bare => params,
            };
            let shape = self.result_shape(&shapes);
            text.push_str(&format!(
                ", entry_computation_layout={{({params})->{shape}}}"
            ));
        }
        text.push_str("\n\n");
        for (_, other) in &self.others {
            text.push_str(other);
            text.push('\n');
        }
        text.push_str("ENTRY main {\n");
        if self.door == Door::Nested {
            let shapes: Vec<String> = params.map(|line| line.shape.clone()).collect();
            text.push_str(&format!("  in = ({}) parameter(0)\n", shapes.join(", ")));
        }
        let mut number = 0;
        for line in &self.lines {
            let what = match &line.source {
                Source::Parameter(_) => {
                    number += 1;
                    match self.door {
                        Door::Nested => format!("get-tuple-element(in), index={}", number - 1),
                        Door::Tuple | Door::Bare => format!("parameter({})", number - 1),
                    }
                }
                Source::Op(text) => text.clone(),
            };
            let inside = self.inside.iter().find(|(name, _)| *name == line.name);
            let layout = inside.map_or(String::new(), |(_, order)| format!("{{{}}}", list(order)));
            let shape = match self.undeclared.contains(&line.name) {
                true => line.shape.replace("<=", ""),
                false => line.shape.clone(),
            };
            let edges = self.edge_text(line);
            text.push_str(&format!(
                "  v{} = {shape}{layout} {what}{edges}\n",
                line.name
            ));
        }
        let plain: Vec<String> = results.map(|line| line.shape.clone()).collect();
        let names: Vec<String> = outputs.iter().map(|name| format!("v{name}")).collect();
        let (shape, names) = (self.result_shape(&plain), names.join(", "));
        text.push_str(&match self.door {
            Door::Bare if plain.len() == 1 => format!("  ROOT out = {shape} copy({names})\n}}\n"),
            Door::Tuple | Door::Bare => format!("  ROOT out = {shape} tuple({names})\n}}\n"),
            Door::Nested => format!(
                "  all = ({}) tuple({names})\n  nothing = () tuple()\n  ROOT out = {shape} tuple(all, nothing)\n}}\n",
                plain.join(", ")
            ),
        });
        text
    }

    /// What must have come before a line, of what is there.
    fn edge_text(&self, line: &Line) -> String {
        let there = |name: usize| self.lines.iter().any(|line| line.name == name);
        let edges = self.edges.iter();
        let before = edges.filter(|(before, after)| *after == line.name && there(*before));
        let names: Vec<String> = before.map(|(before, _)| format!("v{before}")).collect();
        match names.is_empty() || matches!(line.source, Source::Parameter(_)) {
            true => String::new(),
            false => format!(", control-predecessors={{{}}}", names.join(", ")),
        }
    }

    /// Which of these results may lie where arguments were.
    fn alias_text(&self, outputs: &[usize]) -> String {
        let params = self.lines.iter();
        let params = params.filter(|line| matches!(line.source, Source::Parameter(_)));
        let params: Vec<usize> = params.map(|line| line.name).collect();
        let pairs = self.aliases.iter().filter_map(|(result, argument)| {
            let result = outputs.iter().position(|name| name == result)?;
            let argument = params.iter().position(|name| name == argument)?;
            Some(match (self.door, outputs.len()) {
                (Door::Nested, _) => format!("{{0, {result}}}: (0, {{{argument}}}, may-alias)"),
                (Door::Bare, 1) => format!("{{}}: ({argument}, {{}}, must-alias)"),
                _ => format!("{{{result}}}: ({argument}, {{}}, may-alias)"),
            })
        });
        let pairs: Vec<String> = pairs.collect();
        match pairs.is_empty() {
            true => String::new(),
            false => format!(", input_output_alias={{ {} }}", pairs.join(", ")),
        }
    }

    /// The shape of what is handed out, of these arrays.
    fn result_shape(&self, arrays: &[String]) -> String {
        match (self.door, arrays) {
            (Door::Bare, [single]) => single.clone(),
            (Door::Nested, _) => format!("(({}), ())", arrays.join(", ")),
            (Door::Tuple | Door::Bare, _) => format!("({})", arrays.join(", ")),
        }
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
            undeclared: self.undeclared.clone(),
            edges: self.edges.clone(),
            aliases: self.aliases.clone(),
            devices: self.devices,
            door: self.door,
            lines,
        }
    }
}

/// Whether a text has that word.
fn mentions(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).any(|found| found == word)
}
