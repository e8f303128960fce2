//! cuBLASLt, opened where the machine has it: the matrix products of other producers.
#![allow(unsafe_code, reason = "opens a library and calls it")]

use std::ffi::CStr;
use std::ffi::c_int;
use std::ffi::c_void;
use std::sync::OnceLock;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::GemmThunk;
use crate::executable::MatrixLayout;
use crate::executable::Slice;
use crate::literal::number;
use crate::runtime::cuda::device::Stream;
use crate::shape::PrimitiveType;

/// The names it has, newest first.
const NAMES: [&CStr; 4] = [
    c"libcublasLt.so.13",
    c"libcublasLt.so.12",
    c"libcublasLt.so.11",
    c"libcublasLt.so",
];

type Handle = *mut c_void;
type Status = u32;

macro_rules! functions {
    ($($name:ident = $symbol:ident($($argument:ty),*);)*) => {
        struct Api {
            $($name: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl Api {
            /// The functions of an open library; the error is the name of one that is missing.
            fn of(library: Handle) -> std::result::Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let symbol = concat!(stringify!($symbol), "\0").as_ptr().cast();
                        // SAFETY: the library is open, and the name ends with a zero.
                        let address = unsafe { libc::dlsym(library, symbol) };
                        if address.is_null() {
                            return Err(stringify!($symbol));
                        }
                        // SAFETY: the library's header declares the function so.
                        unsafe {
                            std::mem::transmute::<
                                Handle,
                                unsafe extern "C" fn($($argument),*) -> Status,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    create = cublasLtCreate(*mut Handle);
    destroy = cublasLtDestroy(Handle);
    product_create = cublasLtMatmulDescCreate(*mut Handle, u32, u32);
    product_destroy = cublasLtMatmulDescDestroy(Handle);
    product_set = cublasLtMatmulDescSetAttribute(Handle, u32, *const c_void, usize);
    layout_create = cublasLtMatrixLayoutCreate(*mut Handle, u32, u64, u64, i64);
    layout_destroy = cublasLtMatrixLayoutDestroy(Handle);
    layout_set = cublasLtMatrixLayoutSetAttribute(Handle, u32, *const c_void, usize);
    wish_create = cublasLtMatmulPreferenceCreate(*mut Handle);
    wish_destroy = cublasLtMatmulPreferenceDestroy(Handle);
    wish_set = cublasLtMatmulPreferenceSetAttribute(Handle, u32, *const c_void, usize);
    recommend = cublasLtMatmulAlgoGetHeuristic(
        Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Advice, *mut c_int
    );
    multiply = cublasLtMatmul(
        Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64,
        Handle, *const [u64; 8], u64, usize, *mut c_void
    );
}

/// What the library says of an algorithm (`cublasLtMatmulHeuristicResult_t`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Advice {
    algorithm: [u64; 8],
    workspace: usize,
    status: Status,
    waves: f32,
    reserved: [c_int; 4],
}

/// The library on one context.
pub(super) struct Library {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: the library's calls may be made from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; a handle holds nothing that calls change.
unsafe impl Sync for Library {}

fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    let opened = API.get_or_init(|| {
        // SAFETY: opens the library, whose initialisers are NVIDIA's.
        let open = |name: &CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let mut libraries = NAMES.iter().map(|name| open(name));
        let Some(library) = libraries.find(|library| !library.is_null()) else {
            let names = NAMES.map(|name| name.to_string_lossy().into_owned());
            let message = "cuBLASLt cannot be opened";
            return Err(Diagnostic::error(codes::LOAD, message)
                .note(format!("looked for {}", names.join(", ")))
                .help("put the folder of libcublasLt on LD_LIBRARY_PATH"));
        };
        Api::of(library)
            .map_err(|symbol| Diagnostic::error(codes::LOAD, format!("cuBLASLt lacks `{symbol}`")))
    });
    opened.as_ref().map_err(Clone::clone)
}

fn check(status: Status, what: &str) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let message = format!("{what}: cuBLASLt's error {status}");
    Err(Diagnostic::error(codes::RUN, message))
}

impl Library {
    /// Opens the library on the current context.
    ///
    /// # Errors
    /// `XA8003` when the machine has none, or one that does not start.
    pub(super) fn open() -> Result<Self> {
        let api = api()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library writes one handle.
        let status = unsafe { (api.create)(&raw mut handle) };
        check(status, "starting cuBLASLt")?;
        Ok(Self { api, handle })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: made in `open`.
        unsafe { (self.api.destroy)(self.handle) };
    }
}

/// A description that the library made, and how it is given back.
struct Owned(Handle, unsafe extern "C" fn(Handle) -> Status);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the library made it, and nothing uses it any more.
        unsafe { (self.1)(self.0) };
    }
}

// SAFETY: descriptions are plain memory of the library.
unsafe impl Send for Owned {}

/// A matrix product, ready to run.
pub(super) struct Product {
    api: &'static Api,
    handle: Handle,
    product: Owned,
    /// Layouts of a, b, c and d.
    layouts: [Owned; 4],
    /// Addresses of a, b, c and d.
    addresses: [u64; 4],
    /// Factors as the library reads them.
    alpha: [u8; 16],
    beta: [u8; 16],
    algorithm: [u64; 8],
    workspace: (u64, usize),
}

// SAFETY: as for `Owned` and `Library`.
unsafe impl Send for Product {}

/// How one operand goes to the library: column by column, perhaps transposed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Operand {
    layout: MatrixLayout,
    /// The library's number: 0 as it is, 1 transposed, 2 transposed and conjugated.
    operation: u32,
}

/// The library's number of an element type.
fn data_type(ty: PrimitiveType) -> Option<u32> {
    Some(match ty {
        PrimitiveType::F32 => 0,
        PrimitiveType::F64 => 1,
        PrimitiveType::F16 => 2,
        PrimitiveType::S8 => 3,
        PrimitiveType::C64 => 4,
        PrimitiveType::C128 => 5,
        PrimitiveType::S32 => 10,
        PrimitiveType::BF16 => 14,
        PrimitiveType::F8E4M3FN => 28,
        PrimitiveType::F8E5M2 => 29,
        _ => return None,
    })
}

/// The library's numbers of the computation and of the factors' type.
fn computation(thunk: &GemmThunk) -> Option<(u32, u32)> {
    let result = thunk.d.1.ty;
    let scale = match result {
        PrimitiveType::F64 | PrimitiveType::C64 | PrimitiveType::C128 | PrimitiveType::S32 => {
            data_type(result)?
        }
        _ => 0,
    };
    Some(match thunk.compute_type {
        0 => match result {
            PrimitiveType::F64 | PrimitiveType::C128 => (70, scale),
            PrimitiveType::S32 => (72, scale),
            _ => (68, scale),
        },
        1 => (64, 2),
        2 => (68, scale),
        3 => (70, scale),
        4 => (72, scale),
        5 => (74, scale),
        6 => (75, scale),
        7 => (77, scale),
        _ => return None,
    })
}

/// The library's number of an epilogue.
fn epilogue(number: i32) -> Option<u32> {
    Some(match number {
        0 => 1,
        1 => 2,
        2 => 4,
        3 => 6,
        4 => 32,
        7 => 160,
        8 => 36,
        10 => 164,
        _ => return None,
    })
}

/// A factor as the library reads it.
fn factor([real, imaginary]: [f64; 2], scale: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    match scale {
        1 => bytes[..8].copy_from_slice(&real.to_ne_bytes()),
        2 => {
            let bits = number::float_from_f64(PrimitiveType::F16, real) as u16;
            bytes[..2].copy_from_slice(&bits.to_ne_bytes());
        }
        4 => {
            bytes[..4].copy_from_slice(&(real as f32).to_ne_bytes());
            bytes[4..8].copy_from_slice(&(imaginary as f32).to_ne_bytes());
        }
        5 => {
            bytes[..8].copy_from_slice(&real.to_ne_bytes());
            bytes[8..].copy_from_slice(&imaginary.to_ne_bytes());
        }
        10 => bytes[..4].copy_from_slice(&(real as i32).to_ne_bytes()),
        _ => bytes[..4].copy_from_slice(&(real as f32).to_ne_bytes()),
    }
    bytes
}

/// An operand as columns; none when it would have to be conjugated and not transposed.
fn by_columns(layout: MatrixLayout) -> Option<Operand> {
    let operation = layout.transpose as u32;
    let (layout, operation) = match (layout.is_column_major, operation) {
        (true, 0..=2) => (layout, operation),
        (false, 0) => (layout.flipped(), 1),
        (false, 1) => (layout.flipped(), 0),
        _ => return None,
    };
    Some(Operand { layout, operation })
}

/// What the library multiplies, in its order: a, b, c and d, whose columns are neighbours. A result
/// whose rows are neighbours is the transposed product of the transposed operands, swapped.
fn operands(thunk: &GemmThunk) -> Option<[(Slice, Operand); 4]> {
    let result = thunk.d;
    let c = thunk.c.unwrap_or(result);
    let sides = match result.1.is_column_major {
        true => [thunk.a, thunk.b, c, result],
        false => {
            let flip = |(slice, layout): (Slice, MatrixLayout)| (slice, layout.flipped());
            [flip(thunk.b), flip(thunk.a), flip(c), flip(result)]
        }
    };
    let [a, b, c, d] = sides.map(|(slice, layout)| Some((slice, by_columns(layout)?)));
    let sides = [a?, b?, c?, d?];
    // What is added, and the result, cannot be transposed.
    (sides[2].1.operation == 0 && sides[3].1.operation == 0).then_some(sides)
}

/// Whether the library can be asked for a product.
pub(super) fn is_known(thunk: &GemmThunk) -> bool {
    let types = [thunk.a.1.ty, thunk.b.1.ty, thunk.d.1.ty];
    operands(thunk).is_some()
        && computation(thunk).is_some()
        && epilogue(thunk.epilogue).is_some()
        && types.into_iter().all(|ty| data_type(ty).is_some())
}

impl Product {
    /// Prepares a product of buffers whose addresses `at` gives.
    ///
    /// # Errors
    /// `XA8004` when the library has no way to compute it.
    pub(super) fn new(
        library: &Library,
        thunk: &GemmThunk,
        at: &dyn Fn(&Slice) -> u64,
    ) -> Result<Self> {
        let api = library.api;
        let unknown = || {
            let message = format!("a `{}` thunk that cuBLASLt does not know", thunk.name);
            Diagnostic::unsupported(codes::RUN, message)
        };
        let sides = operands(thunk).ok_or_else(unknown)?;
        let (compute, scale) = computation(thunk).ok_or_else(unknown)?;
        let product = made(api.product_destroy, "a product", |handle| {
            // SAFETY: the library writes one handle.
            unsafe { (api.product_create)(handle, compute, scale) }
        })?;
        let set = |attribute: u32, bytes: &[u8]| {
            // SAFETY: the library copies so many bytes.
            let status = unsafe {
                (api.product_set)(product.0, attribute, bytes.as_ptr().cast(), bytes.len())
            };
            check(status, "describing a product")
        };
        set(3, &sides[0].1.operation.to_ne_bytes())?;
        set(4, &sides[1].1.operation.to_ne_bytes())?;
        let epilogue = epilogue(thunk.epilogue).ok_or_else(unknown)?;
        set(7, &epilogue.to_ne_bytes())?;
        if let Some(bias) = &thunk.bias {
            set(8, &at(bias).to_ne_bytes())?;
        }
        if let Some(aux) = &thunk.aux {
            set(11, &at(aux).to_ne_bytes())?;
            set(12, &sides[3].1.layout.leading.to_ne_bytes())?;
        }
        let [a, b, c, d] = sides.map(|(_, operand)| layout(api, &operand.layout));
        let layouts = [a?, b?, c?, d?];
        let workspace = thunk
            .workspace
            .map_or((0, 0), |w| (at(&w), w.size as usize));
        let wish = made(api.wish_destroy, "a preference", |handle| {
            // SAFETY: the library writes one handle.
            unsafe { (api.wish_create)(handle) }
        })?;
        let limit = workspace.1.to_ne_bytes();
        // SAFETY: the library copies so many bytes.
        let status = unsafe { (api.wish_set)(wish.0, 1, limit.as_ptr().cast(), limit.len()) };
        check(status, "bounding a product's memory")?;
        let mut advice = vec![Advice::default(); thunk.algorithm.min(63) + 1];
        let mut found = 0;
        let [a, b, c, d] = layouts.each_ref().map(|layout| layout.0);
        // SAFETY: descriptions are alive, and the library writes at most as much advice as there is
        // room for.
        let status = unsafe {
            (api.recommend)(
                library.handle,
                product.0,
                a,
                b,
                c,
                d,
                wish.0,
                advice.len() as c_int,
                advice.as_mut_ptr(),
                &raw mut found,
            )
        };
        check(status, "choosing an algorithm")?;
        let found = usize::try_from(found).unwrap_or(0).min(advice.len());
        let chosen = advice[..found].iter().rfind(|a| a.status == 0);
        let algorithm = chosen.ok_or_else(|| {
            let message = format!("cuBLASLt has no algorithm for a `{}` thunk", thunk.name);
            Diagnostic::error(codes::RUN, message)
        })?;
        Ok(Self {
            api,
            handle: library.handle,
            product,
            layouts,
            addresses: sides.map(|(slice, _)| at(&slice)),
            alpha: factor(thunk.alpha, scale),
            beta: factor([thunk.beta, 0.0], scale),
            algorithm: algorithm.algorithm,
            workspace,
        })
    }

    /// Queues the product on a stream.
    ///
    /// # Errors
    /// `XA8004` when the library refuses it.
    pub(super) fn run(&self, stream: &Stream) -> Result<()> {
        let [a, b, c, d] = self.addresses;
        let [la, lb, lc, ld] = self.layouts.each_ref().map(|layout| layout.0);
        // SAFETY: descriptions and memory live as long as the bound program.
        let status = unsafe {
            (self.api.multiply)(
                self.handle,
                self.product.0,
                self.alpha.as_ptr().cast(),
                a,
                la,
                b,
                lb,
                self.beta.as_ptr().cast(),
                c,
                lc,
                d,
                ld,
                &raw const self.algorithm,
                self.workspace.0,
                self.workspace.1,
                stream.handle.cast(),
            )
        };
        check(status, "multiplying matrices")
    }
}

fn made(
    destroy: unsafe extern "C" fn(Handle) -> Status,
    what: &str,
    make: impl FnOnce(*mut Handle) -> Status,
) -> Result<Owned> {
    let mut handle = std::ptr::null_mut();
    check(make(&raw mut handle), &format!("describing {what}"))?;
    Ok(Owned(handle, destroy))
}

fn layout(api: &'static Api, layout: &MatrixLayout) -> Result<Owned> {
    let ty = data_type(layout.ty);
    let ty = ty.ok_or_else(|| {
        let message = format!("matrices of {}, which cuBLASLt does not know", layout.ty);
        Diagnostic::unsupported(codes::RUN, message)
    })?;
    let made = made(api.layout_destroy, "a matrix", |handle| {
        // SAFETY: the library writes one handle.
        unsafe { (api.layout_create)(handle, ty, layout.rows, layout.columns, layout.leading) }
    })?;
    let set = |attribute: u32, bytes: &[u8]| {
        // SAFETY: the library copies so many bytes.
        let status =
            unsafe { (api.layout_set)(made.0, attribute, bytes.as_ptr().cast(), bytes.len()) };
        check(status, "describing a matrix")
    };
    let batch = i32::try_from(layout.batch.max(1)).unwrap_or(i32::MAX);
    set(5, &batch.to_ne_bytes())?;
    set(6, &layout.batch_stride.to_ne_bytes())?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::executable::AllocId;

    fn matrix(
        alloc: usize,
        rows: u64,
        columns: u64,
        is_column_major: bool,
    ) -> (Slice, MatrixLayout) {
        let slice = Slice {
            alloc: AllocId::from_index(alloc),
            offset: 0,
            size: rows * columns * 4,
        };
        let leading = if is_column_major { rows } else { columns };
        let layout = MatrixLayout {
            is_column_major,
            rows,
            columns,
            leading: leading.cast_signed(),
            batch: 1,
            batch_stride: 0,
            transpose: 0,
            ty: PrimitiveType::F32,
        };
        (slice, layout)
    }

    /// A product computed as the library is asked for it, by its own definition: columns are
    /// neighbours, operations are applied to what is stored.
    fn product(thunk: &GemmThunk, memory: &[Vec<f32>]) -> Vec<f32> {
        let sides = operands(thunk).expect("a product the library knows");
        let get = |side: &(Slice, Operand), row: u64, column: u64| {
            let (row, column) = match side.1.operation {
                0 => (row, column),
                _ => (column, row),
            };
            let layout = side.1.layout;
            assert!(layout.is_column_major && row < layout.rows && column < layout.columns);
            memory[side.0.alloc.index()][(column * layout.leading as u64 + row) as usize]
        };
        let d = sides[3].1.layout;
        let inner = match sides[0].1.operation {
            0 => sides[0].1.layout.columns,
            _ => sides[0].1.layout.rows,
        };
        let mut out = vec![0.0; (d.rows * d.columns) as usize];
        for column in 0..d.columns {
            for row in 0..d.rows {
                out[(column * d.leading as u64 + row) as usize] = (0..inner)
                    .map(|k| get(&sides[0], row, k) * get(&sides[1], k, column))
                    .sum();
            }
        }
        out
    }

    #[test]
    fn every_order_gives_the_same_product() {
        // [1 2 3; 4 5 6] * [1 0; 2 1; 0 3] = [5 11; 14 23]
        let a = [
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0],
        ];
        let b = [
            vec![1.0, 0.0, 2.0, 1.0, 0.0, 3.0],
            vec![1.0, 2.0, 0.0, 0.0, 1.0, 3.0],
        ];
        let d = [vec![5.0, 11.0, 14.0, 23.0], vec![5.0, 14.0, 11.0, 23.0]];
        for case in 0..8 {
            let columns = [case & 1, case >> 1 & 1, case >> 2];
            let thunk = GemmThunk {
                name: "gemm",
                a: matrix(0, 2, 3, columns[0] == 1),
                b: matrix(1, 3, 2, columns[1] == 1),
                c: None,
                d: matrix(2, 2, 2, columns[2] == 1),
                bias: None,
                aux: None,
                workspace: None,
                alpha: [1.0, 0.0],
                beta: 0.0,
                compute_type: 0,
                epilogue: 0,
                algorithm: 0,
            };
            let memory = [a[columns[0]].clone(), b[columns[1]].clone()];
            assert_eq!(product(&thunk, &memory), d[columns[2]], "case {case}");
            assert!(is_known(&thunk));
        }
    }
}
