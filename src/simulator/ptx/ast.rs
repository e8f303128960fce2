//! The syntax tree of PTX: what the text says, with no meaning attached.
//!
//! Names are slices of the text, so a tree borrows the text it was read from. Numbers are folded:
//! wherever the language takes a constant expression, the tree holds its value.

use smallvec::SmallVec;

use crate::base::Location;

/// One PTX text.
#[derive(Clone, Debug, PartialEq)]
pub struct Module<'a> {
    /// The text that every name in the tree is a slice of.
    pub text: &'a str,
    /// `.version`: major, minor.
    pub version: (u32, u32),
    /// `.target`.
    pub target: TargetName<'a>,
    /// `.address_size`; 32 when the text does not say, as the language has it.
    pub address_size: u32,
    /// Variables outside of functions, in order.
    pub variables: Vec<Variable<'a>>,
    /// Functions and entries, declarations too, in order. One that is declared and then defined
    /// stands here twice.
    pub functions: Vec<Function<'a>>,
    /// `.alias name, of;` in order.
    pub aliases: Vec<Alias<'a>>,
    /// `.file` entries in order.
    pub files: Vec<File<'a>>,
    /// The strings of `.pragma` outside of functions.
    pub pragmas: Vec<&'a str>,
}

impl Module<'_> {
    /// The place of a name of this tree in its text. `part` must be a slice of the text: the
    /// opcode of an instruction, the name of an operand; anything else gives the first line.
    pub fn location(&self, part: &str) -> Location {
        super::lexer::location_of_part(self.text, part)
    }
    /// The place of a whole line of the text, counted from one, without the space around it.
    pub fn line(&self, line: u32) -> Location {
        super::lexer::location_of_line(self.text, line)
    }
}

/// What `.target` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetName<'a> {
    /// The number after `sm_`.
    pub sm: u32,
    /// The letter after the number.
    pub suffix: Suffix,
    /// The words after the name: `debug`, `texmode_independent`, `map_f64_to_f32` and so on.
    pub options: Vec<&'a str>,
}

/// Which instructions beyond the common ones a target has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suffix {
    /// No letter: the common instructions.
    #[default]
    None,
    /// `a`: those of this very capability.
    Accelerated,
    /// `f`: those of this family.
    Family,
}

/// `.alias name, of;`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias<'a> {
    /// Line, from one.
    pub line: u32,
    /// The new name.
    pub name: &'a str,
    /// The function it stands for.
    pub of: &'a str,
}

/// `.file index "name", time, size`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// The number that `.loc` uses.
    pub index: u32,
    /// What stands between the quotes.
    pub name: &'a str,
}

/// Who sees a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// No word: this module alone.
    #[default]
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// `.reg`
    Reg,
    /// `.sreg`
    Sreg,
    /// `.const`, with the bank of the old form `.const[2]` in [`Variable::bank`].
    Const,
    /// `.global`
    Global,
    /// `.local`
    Local,
    /// `.param`
    Param,
    /// `.shared`
    Shared,
    /// `.tex`
    Tex,
}

/// A type that a variable or register may be declared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(
    missing_docs,
    reason = "each is the language's own word with a capital"
)]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F64,
    Texref,
    Samplerref,
    Surfref,
}

impl Type {
    /// The type of a word without its dot, such as `s32`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "pred" => Self::Pred,
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "tf32" => Self::Tf32,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "texref" => Self::Texref,
            "samplerref" => Self::Samplerref,
            "surfref" => Self::Surfref,
            _ => return None,
        })
    }
    /// Bytes in memory. A predicate has none; the opaque kinds are handles of eight.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Pred => 0,
            Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F32 => 4,
            Self::F16x2 | Self::Bf16x2 | Self::Tf32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::Texref | Self::Samplerref | Self::Surfref => 8,
            Self::B128 => 16,
        }
    }
}

/// A variable or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable<'a> {
    /// Line, from one.
    pub line: u32,
    /// Who sees it.
    pub linkage: Linkage,
    /// Where it lives.
    pub space: Space,
    /// The bank of the old form `.const[2]`.
    pub bank: Option<u32>,
    /// `.align`, a power of two.
    pub align: Option<u32>,
    /// Type of one element.
    pub ty: Type,
    /// Elements of a vector: 1, 2, 4 or 8.
    pub vector: u32,
    /// Its name; `_` in prototypes.
    pub name: &'a str,
    /// Array dimensions, outermost first; `None` is an empty `[]`. No array: no dimension.
    pub dims: Vec<Option<u64>>,
    /// What it holds at first.
    pub init: Option<Init<'a>>,
    /// `.ptr` of an entry's parameter.
    pub pointer: Option<Pointer>,
    /// `.attribute(.managed)`
    pub managed: bool,
    /// `.attribute(.unified(high, low))`
    pub unified: Option<(u64, u64)>,
    /// A register range `%r<100>`: how many. Only in `.reg` parameters of functions; in bodies see
    /// [`Statement::Registers`].
    pub count: Option<u32>,
}

/// What `.ptr` says about a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// What it points into; `None` is the generic space.
    pub space: Option<Space>,
    /// Alignment of what it points at; 4 when the text does not say.
    pub align: u32,
}

/// The first value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Init<'a> {
    /// An integer's 64 bits.
    Int(i64),
    /// The bits of `0f...`.
    F32(u32),
    /// The bits of `0d...`, or of a decimal number.
    F64(u64),
    /// An address.
    Symbol(Box<SymbolInit<'a>>),
    /// `{...}` of nothing but integers, at least one: kept tight, for constants can be large.
    Integers(Vec<i64>),
    /// `{...}` of anything else.
    List(Vec<Init<'a>>),
    /// `{name = value, ...}` of a texture or sampler; a value that is a word is a symbol.
    Fields(Vec<(&'a str, Init<'a>)>),
}

/// An address as a first value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolInit<'a> {
    /// The variable or function.
    pub name: &'a str,
    /// Bytes added.
    pub offset: i64,
    /// `generic(name)`: the generic address.
    pub generic: bool,
    /// `0xff00(name)`: the byte of the address that the mask shows.
    pub mask: Option<u64>,
}

/// A function or an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Function<'a> {
    /// Line of its name, from one.
    pub line: u32,
    /// Who sees it.
    pub linkage: Linkage,
    /// `.entry`, not `.func`.
    pub is_entry: bool,
    /// Its name.
    pub name: &'a str,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// Results; an entry has none.
    pub returns: Vec<Variable<'a>>,
    /// What stands between the parameters and the body.
    pub directives: Directives<'a>,
    /// The body; `None` is a declaration.
    pub body: Option<Vec<Statement<'a>>>,
}

/// The directives of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives<'a> {
    /// `.maxntid x, y, z`; what is left out is 1.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid x, y, z`
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub min_blocks_per_core: Option<u32>,
    /// `.maxnctapersm`
    pub max_blocks_per_core: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster x, y, z`
    pub cluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub explicit_cluster: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.blocksareclusters`
    pub blocks_are_clusters: bool,
    /// `.abi_preserve`
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control`
    pub abi_preserve_control: Option<u32>,
    /// `.noreturn`
    pub no_return: bool,
    /// `.attribute(.unified(high, low))`
    pub unified: Option<(u64, u64)>,
    /// The strings of `.pragma`.
    pub pragmas: Vec<&'a str>,
    /// Directives that are not known here, with their integer arguments.
    pub others: Vec<(&'a str, Vec<i64>)>,
}

/// One statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement<'a> {
    /// `name:`
    Label {
        /// Line, from one.
        line: u32,
        /// The label.
        name: &'a str,
    },
    /// An instruction.
    Instr(Instr<'a>),
    /// `{ ... }`: names declared inside end with it.
    Block(Vec<Statement<'a>>),
    /// A variable that is not a register.
    Variable(Box<Variable<'a>>),
    /// One register or one range of them; a declaration of several names gives one statement each.
    Registers {
        /// Line, from one.
        line: u32,
        /// Type of each.
        ty: Type,
        /// Elements of a vector: 1, 2, 4 or 8.
        vector: u32,
        /// The name, or what comes before the numbers.
        name: &'a str,
        /// `name<count>`: `name0` to `name(count-1)`. `None`: the one register `name`.
        count: Option<u32>,
    },
    /// `label: .branchtargets names;` or `label: .calltargets names;`
    Targets {
        /// Line, from one.
        line: u32,
        /// What the instruction calls the list.
        label: &'a str,
        /// `.calltargets`, not `.branchtargets`.
        calls: bool,
        /// The labels or functions.
        names: Vec<&'a str>,
    },
    /// `label: .callprototype ...;`
    Prototype {
        /// What the call calls it.
        label: &'a str,
        /// The signature; its name is `_`.
        signature: Box<Function<'a>>,
    },
    /// `.loc`
    Loc(Loc<'a>),
    /// The string of `.pragma`.
    Pragma {
        /// Line, from one.
        line: u32,
        /// What stands between the quotes.
        text: &'a str,
    },
}

/// Where the next instructions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc<'a> {
    /// Number of a `.file`.
    pub file: u32,
    /// Line in it.
    pub line: u32,
    /// Column in it.
    pub column: u32,
    /// `function_name label`
    pub function: Option<&'a str>,
    /// `inlined_at file line column`
    pub inlined_at: Option<(u32, u32, u32)>,
}

/// The modifiers of an instruction, without dots.
pub type Modifiers<'a> = SmallVec<[&'a str; 4]>;

/// One instruction: `@!p mad.lo.s32 d, a, b, c;` is the opcode `mad` with the modifiers `lo` and
/// `s32`; `L2::128B` and its like are one modifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Instr<'a> {
    /// Line of the opcode, from one.
    pub line: u32,
    /// The predicate in front.
    pub guard: Option<Guard<'a>>,
    /// The word before the first dot.
    pub opcode: &'a str,
    /// The words after it.
    pub modifiers: Modifiers<'a>,
    /// The operands in order.
    pub operands: Vec<Operand<'a>>,
}

/// `@p` or `@!p`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard<'a> {
    /// Whether the instruction runs where the predicate is false.
    pub negated: bool,
    /// The predicate register.
    pub register: &'a str,
}

/// A name, with the part of it that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The register, variable, function or label.
    pub name: &'a str,
    /// `.x` and so on.
    pub member: Option<Member>,
}

/// The part of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// `.x` or `.r`
    X,
    /// `.y` or `.g`
    Y,
    /// `.z` or `.b`
    Z,
    /// `.w` or `.a`
    W,
    /// `.b0`, `.b3210`: bytes, as the video instructions pick them.
    Bytes(Lanes),
    /// `.h1`, `.h10`: half words.
    Halves(Lanes),
}

impl Member {
    /// The number of a vector element.
    pub fn element(self) -> Option<usize> {
        match self {
            Self::X => Some(0),
            Self::Y => Some(1),
            Self::Z => Some(2),
            Self::W => Some(3),
            Self::Bytes(_) | Self::Halves(_) => None,
        }
    }
}

/// The digits of a selector such as `.b3210`, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// How many digits: 1 to 4.
    pub count: u8,
    /// The digits, each 0 to 7; zero past the count.
    pub digits: [u8; 4],
}

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register, variable, function or label.
    Name(Symbol<'a>),
    /// `!p`
    Not(Symbol<'a>),
    /// `-a`, as the video instructions have it; a negative constant is folded.
    Negated(Symbol<'a>),
    /// The 64 bits of an integer. An unsigned constant above `i64::MAX` has the same bits, and so
    /// is negative here. `WARP_SZ` is 32.
    Int(i64),
    /// The bits of `0f...`.
    F32(u32),
    /// The bits of `0d...`, or of a decimal number.
    F64(u64),
    /// `variable+offset`
    Sum(Symbol<'a>, i64),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `[...]`
    Address(Address<'a>),
    /// `a[i]`: an element of an array, not an address in bytes.
    Element(Box<Element<'a>>),
    /// `p|q`; either may be [`Operand::Sink`].
    Pair(Box<(Operand<'a>, Operand<'a>)>),
    /// `_`
    Sink,
    /// `(a, b)`: arguments or results of a call.
    List(Vec<Operand<'a>>),
}

/// What stands between square brackets: `[base+offset, extra, ...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Address<'a> {
    /// What the offset is added to.
    pub base: Base<'a>,
    /// Bytes added; 0 with an integer base.
    pub offset: i64,
    /// What follows after commas: coordinates of a tensor, a sampler.
    pub extra: Vec<Operand<'a>>,
    /// `[...].unified`
    pub unified: bool,
}

/// The first part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a> {
    /// A register or a variable.
    Name(Symbol<'a>),
    /// A fixed address.
    Int(i64),
}

/// `array[register+index]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The array.
    pub array: &'a str,
    /// The register part of the index.
    pub register: Option<Symbol<'a>>,
    /// The constant part of the index, in elements.
    pub index: i64,
}
