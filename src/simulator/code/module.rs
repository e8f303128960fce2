//! A whole module: functions, variables, and what each kernel needs.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::simulator::code::function::Builder;
use crate::simulator::code::function::Globals;
use crate::simulator::code::function::align_of;
use crate::simulator::code::function::bytes_of;
use crate::simulator::code::function::entry_params;
use crate::simulator::code::function::frame_of;
use crate::simulator::code::inst::*;
use crate::simulator::code::operand::FUNCTION_BASE;
use crate::simulator::code::operand::Meaning;
use crate::simulator::code::operand::Pool;
use crate::simulator::code::place;
use crate::simulator::memory::AddressSpace;
use crate::simulator::memory::Allocation;
use crate::simulator::memory::Kind;
use crate::simulator::memory::raw;
use crate::simulator::memory::raw::Zeroed;
use crate::simulator::ptx;
use crate::simulator::ptx::Init;
use crate::simulator::ptx::Linkage;
use crate::simulator::ptx::Operand;
use crate::simulator::ptx::Statement;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::lanes::has_wide;

/// Most bytes of a module's variables of one space.
const MOST_GLOBAL: u64 = 1 << 34;
/// Local memory that a thread gets for calls whose depth nobody knows, and for what is taken from
/// the stack while it runs.
const STACK: u32 = 64 << 10;

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub offset: u32,
    /// Its bytes.
    pub size: u32,
    /// Its alignment.
    pub align: u32,
}

/// A decoded function.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of its name.
    pub line: u32,
    /// Whether it is a kernel.
    pub is_entry: bool,
    /// Its first instruction.
    pub start: u32,
    /// The instruction after its last.
    pub end: u32,
    /// Parameters of a kernel.
    pub params: Vec<Parameter>,
    /// Bytes of all of them.
    pub param_bytes: u32,
    /// Bytes of its frame in local memory.
    pub frame: u32,
    /// Local memory of a thread that runs this kernel.
    pub local: u32,
    /// Shared memory of its own.
    pub static_shared: u32,
    /// Where the dynamic part of shared memory begins.
    pub dynamic_shared_at: u32,
    /// Bytes of registers that a warp needs.
    pub register_bytes: u32,
    /// Most 32-bit registers of a thread alive at once.
    pub pressure: u32,
    /// `.maxntid`
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`
    pub required_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub cluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub explicit_cluster: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.minnctapersm`
    pub min_blocks_per_core: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// Where its registers are: first byte and class.
    pub places: Vec<(u32, Class)>,
    calls: BTreeSet<u32>,
    calls_indirectly: bool,
    allocates: bool,
}

/// A decoded module with its variables in memory.
pub struct Module {
    /// All instructions.
    pub code: Vec<Inst>,
    /// Functions by number.
    pub functions: Vec<Function>,
    /// The constants.
    pub constants: Zeroed,
    /// The text.
    pub text: Arc<str>,
    /// `.version`
    pub version: (u32, u32),
    /// The number of `.target`.
    pub sm: u32,
    /// Global and constant variables: name and allocation.
    pub variables: BTreeMap<String, Arc<Allocation>>,
    formals: Vec<(usize, Vec<Slot>)>,
    space: Arc<AddressSpace>,
}

impl Drop for Module {
    fn drop(&mut self) {
        for allocation in self.variables.values() {
            self.space.remove(allocation.base());
        }
    }
}

impl Module {
    /// A line of the text, from one, without the space around it.
    pub fn line(&self, line: u32) -> &str {
        let index = (line as usize).wrapping_sub(1);
        self.text.lines().nth(index).map_or("", str::trim)
    }

    /// Reads and decodes PTX, and puts its variables into memory of device `device`.
    ///
    /// # Errors
    /// When the text is not PTX, or uses what is not known, or memory runs out.
    pub fn load(text: &str, device: u32, space: &Arc<AddressSpace>) -> Result<Self> {
        let tree = ptx::parse(text)?;
        let mut module = Self {
            code: Vec::new(),
            functions: Vec::new(),
            constants: match Zeroed::new(16, 16) {
                Some(memory) => memory,
                None => return Err(out_of_memory("constants")),
            },
            text: Arc::from(text),
            version: tree.version,
            sm: tree.target.sm,
            variables: BTreeMap::new(),
            formals: Vec::new(),
            space: Arc::clone(space),
        };
        module.decode(&tree, device)?;
        Ok(module)
    }

    fn decode(&mut self, tree: &ptx::Module<'_>, device: u32) -> Result<()> {
        let numbers = number_functions(tree);
        let mut signatures: Vec<&ptx::Function<'_>> = Vec::new();
        for function in &tree.functions {
            let number = numbers.get(function.name).map_or(0, |n| *n as usize);
            match signatures.get_mut(number) {
                None => signatures.push(function),
                Some(known) if known.body.is_none() => *known = function,
                Some(_) => {}
            }
        }
        let mut names: BTreeMap<&str, Meaning> = BTreeMap::new();
        for (name, number) in &numbers {
            names.insert(name, Meaning::Function(*number));
        }
        for alias in &tree.aliases {
            if let Some(number) = numbers.get(alias.of) {
                names.insert(alias.name, Meaning::Function(*number));
            }
        }
        self.place_variables(tree, &mut names, device)?;
        self.fill_variables(tree, &names)?;
        let shared = SharedPlan::new(tree, &signatures)?;
        let mut pool = Pool::default();
        let mut globals = Globals {
            names: BTreeMap::new(),
            signatures: signatures.clone(),
            tree,
            wide: has_wide(),
        };
        let mut built = Vec::new();
        for (number, function) in signatures.iter().enumerate() {
            let mut function_names = names.clone();
            let plan = shared.of(number, function, &mut function_names)?;
            globals.names = function_names;
            let described = describe(function, &plan);
            if function.body.is_none() {
                self.functions.push(described);
                built.push(None);
                continue;
            }
            let builder = Builder::build(&globals, &mut pool, function)?;
            let (code, classes, frame) = (builder.code, builder.classes, builder.frame);
            let mut described = described;
            described.frame = frame.next_multiple_of(16);
            described.calls_indirectly = builder.calls_indirectly;
            described.allocates = builder.allocates;
            self.functions.push(described);
            built.push(Some((code, classes)));
        }
        self.join(built, &signatures)?;
        self.constants = pool.finish().ok_or_else(|| out_of_memory("constants"))?;
        self.measure();
        Ok(())
    }

    /// Allocates every global and constant variable.
    fn place_variables<'a>(
        &mut self,
        tree: &ptx::Module<'a>,
        names: &mut BTreeMap<&'a str, Meaning>,
        device: u32,
    ) -> Result<()> {
        let nested = tree.functions.iter().flat_map(|f| {
            let mut found = Vec::new();
            nested_variables(f.body.as_deref().unwrap_or(&[]), &mut found);
            found
        });
        let nested: Vec<ptx::Variable<'a>> = nested.cloned().collect();
        for variable in tree.variables.iter().chain(&nested) {
            let (kind, space) = match variable.space {
                ptx::Space::Global => (Kind::Global(device), Space::Global),
                ptx::Space::Const => (Kind::Constant(device), Space::Constant),
                _ => continue,
            };
            let at = || tree.line(variable.line);
            if variable.linkage == Linkage::Extern && !variable.dims.contains(&None) {
                let defined = tree
                    .variables
                    .iter()
                    .any(|v| v.name == variable.name && v.linkage != Linkage::Extern);
                if !defined {
                    let what = format!("extern variable `{}` is not defined", variable.name);
                    return Err(Diagnostic::error(codes::PTX_NAME, what).at(at()));
                }
                continue;
            }
            if names.contains_key(variable.name) && self.variables.contains_key(variable.name) {
                continue;
            }
            let bytes = bytes_of(variable).or_else(|| open_bytes(variable));
            let Some(bytes) = bytes.filter(|b| *b <= MOST_GLOBAL) else {
                let what = format!(
                    "variable `{}` has no size that memory can hold",
                    variable.name
                );
                return Err(Diagnostic::error(codes::PTX_LIMIT, what).at(at()));
            };
            let align = u64::from(align_of(variable)).max(16);
            let kind = if variable.managed {
                Kind::Managed
            } else {
                kind
            };
            let allocation = self.space.allocate(bytes, align, kind, variable.name)?;
            names.insert(variable.name, Meaning::Fixed(allocation.base(), space));
            self.variables.insert(variable.name.to_owned(), allocation);
        }
        Ok(())
    }

    /// Writes first values.
    fn fill_variables(
        &self,
        tree: &ptx::Module<'_>,
        names: &BTreeMap<&str, Meaning>,
    ) -> Result<()> {
        for variable in &tree.variables {
            let (Some(init), Some(allocation)) =
                (&variable.init, self.variables.get(variable.name))
            else {
                continue;
            };
            let mut bytes = Vec::new();
            let element = variable.ty.bytes().max(1) as usize;
            flatten(
                init,
                element,
                &variable.dims,
                variable.vector,
                names,
                &mut bytes,
            )
            .map_err(|name| {
                let what = format!("`{name}` is not declared, or has no address to store");
                Diagnostic::error(codes::PTX_NAME, what).at(tree.line(variable.line))
            })?;
            bytes.truncate(allocation.length() as usize);
            raw::write(allocation.base(), &bytes);
        }
        Ok(())
    }

    /// Puts the functions' instructions one after the other, and places their registers.
    fn join(
        &mut self,
        built: Vec<Option<(Vec<Inst>, Vec<Class>)>>,
        signatures: &[&ptx::Function<'_>],
    ) -> Result<()> {
        // Everybody's own registers come first, since any kernel may call any function.
        let mut start = 0u32;
        let order = |is_entry: bool| {
            (0..signatures.len()).filter(move |i| signatures[*i].is_entry == is_entry)
        };
        let mut built = built;
        for is_entry in [false, true] {
            for number in order(is_entry) {
                let Some((mut code, classes)) = built[number].take() else {
                    continue;
                };
                let offset = self.code.len() as u32;
                for inst in &mut code {
                    match &mut inst.op {
                        Op::Branch(target) => *target += offset,
                        Op::BranchIndex(_, targets) => {
                            targets.iter_mut().for_each(|t| *t += offset);
                        }
                        Op::Call(call) => {
                            if let Callee::Function(callee) = call.callee {
                                self.functions[number].calls.insert(callee);
                            }
                        }
                        _ => {}
                    }
                }
                // Formal registers are written by the caller: they keep their places.
                let formals = if is_entry {
                    0
                } else {
                    let all = signatures[number]
                        .returns
                        .iter()
                        .chain(&signatures[number].params);
                    all.filter(|v| v.space == ptx::Space::Reg).count()
                };
                let (placed, places) = place::place(&mut code, offset, &classes, formals, start);
                if placed.end >= Slot::CONSTANT {
                    let name = signatures[number].name;
                    let what = format!("the registers of `{name}` take more than a warp can have");
                    return Err(Diagnostic::error(codes::PTX_LIMIT, what));
                }
                let function = &mut self.functions[number];
                function.start = offset;
                function.pressure = placed.pressure;
                function.register_bytes = placed.end;
                let both = places
                    .iter()
                    .zip(&classes)
                    .filter(|(place, _)| place.is_some());
                let both = both.map(|(place, class)| (place.0, *class));
                let both: BTreeSet<(u32, Class)> = both.collect();
                function.places = both.into_iter().collect();
                let frame = function.frame;
                for inst in &mut code {
                    match &mut inst.op {
                        Op::Call(call) => call.frame = frame,
                        Op::Stack(Stack::Allocate { frame: own, .. }) => *own = frame,
                        _ => {}
                    }
                }
                self.code.extend(code);
                self.functions[number].end = self.code.len() as u32;
                self.formals
                    .push((number, places.into_iter().take(formals).collect()));
                if !is_entry {
                    start = placed.end;
                }
            }
        }
        self.finish_calls();
        Ok(())
    }

    /// Tells calls where formal registers are, and which must save registers.
    fn finish_calls(&mut self) {
        let count = self.functions.len();
        let mut reach: Vec<BTreeSet<u32>> =
            self.functions.iter().map(|f| f.calls.clone()).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..count {
                let further: Vec<u32> = reach[i]
                    .iter()
                    .flat_map(|j| reach.get(*j as usize).into_iter().flatten().copied())
                    .collect();
                for j in further {
                    changed |= reach[i].insert(j);
                }
            }
        }
        let formals: BTreeMap<usize, Vec<Slot>> =
            std::mem::take(&mut self.formals).into_iter().collect();
        for number in 0..count {
            let (from, to) = (self.functions[number].start, self.functions[number].end);
            let indirect = self.functions.iter().any(|f| f.calls_indirectly);
            for inst in &mut self.code[from as usize..to as usize] {
                let Op::Call(call) = &mut inst.op else {
                    continue;
                };
                let returns_here = match call.callee {
                    Callee::Function(callee) => {
                        callee as usize == number
                            || reach
                                .get(callee as usize)
                                .is_some_and(|r| r.contains(&(number as u32)))
                    }
                    Callee::Register(_) => true,
                    Callee::Builtin(_) => false,
                };
                if returns_here || (indirect && !matches!(call.callee, Callee::Builtin(_))) {
                    call.save = Some(number as u32);
                }
                if let Callee::Function(callee) = call.callee
                    && let Some(places) = formals.get(&(callee as usize))
                {
                    let both = call.results.iter_mut().chain(&mut call.arguments);
                    for pass in both {
                        if let Place::Register(reg) = &mut pass.callee {
                            let number = reg.slot.0 as usize;
                            reg.slot = places.get(number).copied().unwrap_or(reg.slot);
                        }
                    }
                }
            }
        }
    }

    /// Local memory, registers and pressure of each kernel with all it calls.
    fn measure(&mut self) {
        let most_function = self.functions.iter().filter(|f| !f.is_entry);
        let shared_registers = most_function.map(|f| f.register_bytes).max().unwrap_or(0);
        let stack = if self.functions.iter().any(|f| f.allocates) {
            STACK
        } else {
            0
        };
        for number in 0..self.functions.len() {
            if !self.functions[number].is_entry {
                continue;
            }
            let mut path = Vec::new();
            let deepest = self.deepest(number, &mut path, 0);
            let (local, pressure) = deepest.unwrap_or_else(|| {
                let most = self.functions.iter().map(|f| f.pressure).max().unwrap_or(0);
                (self.functions[number].frame.saturating_add(STACK), most)
            });
            let function = &mut self.functions[number];
            function.local = local.saturating_add(stack);
            function.pressure = pressure;
            function.register_bytes = function.register_bytes.max(shared_registers);
        }
    }

    /// The deepest local memory and the highest pressure below a function; `None` when calls come
    /// back or go through registers.
    fn deepest(&self, number: usize, path: &mut Vec<usize>, depth: u32) -> Option<(u32, u32)> {
        let function = self.functions.get(number)?;
        if path.contains(&number) || function.calls_indirectly || depth > 64 {
            return None;
        }
        path.push(number);
        let (mut local, mut pressure) = (0, 0);
        for callee in &function.calls {
            let (below, most) = self.deepest(*callee as usize, path, depth + 1)?;
            local = local.max(below);
            pressure = pressure.max(most);
        }
        path.pop();
        Some((function.frame + local, function.pressure.max(pressure)))
    }

    /// The number of the function whose address that is.
    pub fn function_at(&self, address: u64) -> Option<u32> {
        let number = address.checked_sub(FUNCTION_BASE)? / 16;
        let number = u32::try_from(number).ok()?;
        let function = self.functions.get(number as usize)?;
        (function.end > function.start && !function.is_entry).then_some(number)
    }
}

fn out_of_memory(what: &str) -> Box<Diagnostic> {
    Diagnostic::error(
        codes::DEVICE_FAULT,
        format!("no memory for the module's {what}"),
    )
}

/// A number for every function name, in order of appearance.
fn number_functions<'a>(tree: &ptx::Module<'a>) -> BTreeMap<&'a str, u32> {
    let mut numbers = BTreeMap::new();
    for function in &tree.functions {
        let next = numbers.len() as u32;
        numbers.entry(function.name).or_insert(next);
    }
    numbers
}

/// Global and constant variables within bodies.
fn nested_variables<'t, 'a>(
    statements: &'t [Statement<'a>],
    found: &mut Vec<&'t ptx::Variable<'a>>,
) {
    for statement in statements {
        match statement {
            Statement::Variable(variable) => found.push(variable),
            Statement::Block(inner) => nested_variables(inner, found),
            _ => {}
        }
    }
}

/// Bytes of an array whose first dimension is left to its first value.
fn open_bytes(variable: &ptx::Variable<'_>) -> Option<u64> {
    let [None, rest @ ..] = &variable.dims[..] else {
        return None;
    };
    let count = match &variable.init {
        Some(Init::Integers(list)) => list.len() as u64,
        Some(Init::List(list)) => list.len() as u64,
        _ => 1,
    };
    let mut bytes = u64::from(variable.ty.bytes()) * u64::from(variable.vector.max(1));
    let mut inner = 1u64;
    for dim in rest {
        inner = inner.checked_mul((*dim)?)?;
    }
    let nested = matches!(&variable.init, Some(Init::List(l)) if matches!(l.first(), Some(Init::List(_) | Init::Integers(_))));
    let count = if nested || rest.is_empty() {
        count
    } else {
        count.div_ceil(inner.max(1))
    };
    bytes = bytes.checked_mul(inner)?;
    bytes.checked_mul(count)
}

/// A first value as bytes. Gives the name that has no address, when there is one.
fn flatten(
    init: &Init<'_>,
    element: usize,
    dims: &[Option<u64>],
    vector: u32,
    names: &BTreeMap<&str, Meaning>,
    out: &mut Vec<u8>,
) -> std::result::Result<(), String> {
    let mut put = |value: u64| {
        let bytes = value.to_le_bytes();
        out.extend_from_slice(&bytes[..element.min(8)]);
        out.resize(out.len() + element.saturating_sub(8), 0);
    };
    match init {
        Init::Int(value) => put(*value as u64),
        Init::F32(bits) if element == 8 => put(f64::from(f32::from_bits(*bits)).to_bits()),
        Init::F32(bits) => put(u64::from(*bits)),
        Init::F64(bits) if element == 4 => put(u64::from((f64::from_bits(*bits) as f32).to_bits())),
        Init::F64(bits) => put(*bits),
        Init::Symbol(symbol) => {
            let address = match names.get(symbol.name) {
                Some(Meaning::Fixed(address, _)) => *address,
                Some(Meaning::Function(number)) => FUNCTION_BASE + u64::from(*number) * 16,
                _ => return Err(symbol.name.to_owned()),
            };
            let mut value = address.wrapping_add(symbol.offset as u64);
            if let Some(mask) = symbol.mask.filter(|m| *m != 0) {
                value = (value & mask) >> mask.trailing_zeros();
            }
            put(value);
        }
        Init::Integers(list) => list.iter().for_each(|value| put(*value as u64)),
        Init::List(list) => {
            // Each part fills its place in full.
            let inner = dims.get(1..).unwrap_or(&[]);
            let nested = !inner.is_empty() || (vector > 1 && dims.len() == 1);
            let mut part = element as u64;
            for dim in inner {
                part = part.saturating_mul(dim.unwrap_or(1));
            }
            if nested && inner.is_empty() {
                part = part.saturating_mul(u64::from(vector));
            }
            for item in list {
                let start = out.len();
                flatten(item, element, inner, vector, names, out)?;
                let full = matches!(item, Init::List(_) | Init::Integers(_)) && nested;
                if full && part < MOST_GLOBAL && (out.len() - start) < part as usize {
                    out.resize(start + part as usize, 0);
                }
            }
        }
        Init::Fields(_) => {}
    }
    Ok(())
}

/// Shared memory of each kernel.
struct SharedPlan<'t, 'a> {
    variables: BTreeMap<&'a str, &'t ptx::Variable<'a>>,
    /// Variables that functions use: they stand first, at the same place for every kernel.
    common: BTreeMap<&'a str, u32>,
    common_end: u32,
    /// Which variables of the module each function names.
    named: Vec<BTreeSet<&'a str>>,
}

/// What one function sees of shared memory.
struct FunctionShared {
    end: u32,
    dynamic_at: u32,
}

fn is_dynamic(variable: &ptx::Variable<'_>) -> bool {
    variable.dims.contains(&None)
        || (variable.linkage == Linkage::Extern && bytes_of(variable) == Some(0))
}

fn too_much(name: &str) -> Box<Diagnostic> {
    let what = format!("shared variable `{name}` does not fit shared memory");
    Diagnostic::error(codes::PTX_LIMIT, what)
}

/// Places a variable after `end`.
fn put_shared(end: &mut u32, variable: &ptx::Variable<'_>) -> Result<u32> {
    let at = end.next_multiple_of(align_of(variable));
    let bytes = bytes_of(variable).filter(|b| *b < 1 << 24);
    let next = bytes.and_then(|bytes| at.checked_add(bytes as u32));
    *end = next
        .filter(|n| *n < 1 << 24)
        .ok_or_else(|| too_much(variable.name))?;
    Ok(at)
}

impl<'t, 'a> SharedPlan<'t, 'a> {
    fn new(tree: &'t ptx::Module<'a>, signatures: &[&'t ptx::Function<'a>]) -> Result<Self> {
        let mut plan = Self {
            variables: BTreeMap::new(),
            common: BTreeMap::new(),
            common_end: 0,
            named: Vec::new(),
        };
        for variable in &tree.variables {
            if variable.space == ptx::Space::Shared {
                plan.variables.insert(variable.name, variable);
            }
        }
        for function in signatures {
            let mut named = BTreeSet::new();
            names_in(function.body.as_deref().unwrap_or(&[]), &mut |name| {
                if plan.variables.contains_key(name) {
                    named.insert(name);
                }
            });
            plan.named.push(named);
        }
        for (function, named) in signatures.iter().zip(&plan.named) {
            if function.is_entry {
                continue;
            }
            let mut own = Vec::new();
            nested_variables(function.body.as_deref().unwrap_or(&[]), &mut own);
            let own = own.into_iter().filter(|v| v.space == ptx::Space::Shared);
            let outer = named
                .iter()
                .filter_map(|name| plan.variables.get(name).copied());
            for variable in outer.chain(own) {
                if !is_dynamic(variable) && !plan.common.contains_key(variable.name) {
                    let at = put_shared(&mut plan.common_end, variable)?;
                    plan.common.insert(variable.name, at);
                }
            }
        }
        Ok(plan)
    }

    /// Adds what function `number` sees to `names`.
    fn of(
        &self,
        number: usize,
        function: &'t ptx::Function<'a>,
        names: &mut BTreeMap<&'a str, Meaning>,
    ) -> Result<FunctionShared> {
        let mut end = self.common_end;
        let mut dynamic_align = 16;
        for (name, variable) in &self.variables {
            if is_dynamic(variable) {
                dynamic_align = dynamic_align.max(align_of(variable));
                names.insert(name, Meaning::DynamicShared);
            }
        }
        for (name, at) in &self.common {
            names.insert(name, Meaning::Shared(*at));
        }
        let mut own = Vec::new();
        nested_variables(function.body.as_deref().unwrap_or(&[]), &mut own);
        let own = own.into_iter().filter(|v| v.space == ptx::Space::Shared);
        let named = self.named.get(number).into_iter().flatten();
        let outer = named.filter_map(|name| self.variables.get(name).copied());
        // Wide alignment first, so that no hole opens.
        let mut all: Vec<&ptx::Variable<'a>> = outer.chain(own).collect();
        all.sort_by_key(|v| std::cmp::Reverse(align_of(v)));
        for variable in all {
            if is_dynamic(variable) {
                dynamic_align = dynamic_align.max(align_of(variable));
                names.insert(variable.name, Meaning::DynamicShared);
            } else if !self.common.contains_key(variable.name) && function.is_entry {
                let at = put_shared(&mut end, variable)?;
                names.insert(variable.name, Meaning::Shared(at));
            }
        }
        Ok(FunctionShared {
            end,
            dynamic_at: end.next_multiple_of(dynamic_align),
        })
    }
}

/// Calls `f` with every name that instructions use.
fn names_in<'a>(statements: &[Statement<'a>], f: &mut impl FnMut(&'a str)) {
    fn operand<'a>(operand_: &Operand<'a>, f: &mut impl FnMut(&'a str)) {
        match operand_ {
            Operand::Name(s) | Operand::Sum(s, _) => f(s.name),
            Operand::Address(address) => {
                if let ptx::Base::Name(s) = address.base {
                    f(s.name);
                }
            }
            Operand::Element(element) => f(element.array),
            Operand::Vector(list) | Operand::List(list) => {
                list.iter().for_each(|item| operand(item, f));
            }
            _ => {}
        }
    }
    for statement in statements {
        match statement {
            Statement::Instr(instr) => instr.operands.iter().for_each(|o| operand(o, f)),
            Statement::Block(inner) => names_in(inner, f),
            _ => {}
        }
    }
}

/// What a function's directives say.
fn describe(function: &ptx::Function<'_>, shared: &FunctionShared) -> Function {
    let mut params = Vec::new();
    if function.is_entry {
        let both = function.params.iter().zip(entry_params(function));
        params.extend(both.map(|(param, (offset, size))| Parameter {
            name: param.name.to_owned(),
            offset,
            size,
            align: align_of(param),
        }));
    }
    let end = params.last().map_or(0, |p| p.offset + p.size);
    let directives = &function.directives;
    Function {
        name: function.name.to_owned(),
        line: function.line,
        is_entry: function.is_entry,
        params,
        param_bytes: end,
        frame: frame_of(function).end,
        static_shared: shared.end,
        dynamic_shared_at: shared.dynamic_at,
        max_threads: directives.max_threads,
        required_threads: directives.required_threads,
        cluster: directives.cluster,
        explicit_cluster: directives.explicit_cluster,
        max_cluster_rank: directives.max_cluster_rank,
        min_blocks_per_core: directives.min_blocks_per_core,
        max_registers: directives.max_registers,
        ..Function::default()
    }
}
