//! How a launch hands its buffers to a kernel, where it is not one address each in order.

/// What a launch has beyond its buffers' addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passing {
    /// What each parameter of the kernel is given; empty when it is the address of each buffer,
    /// arguments before results.
    pub parameters: Vec<Parameter>,
    /// Buffers that are filled with zeros before each launch, counted over arguments and then
    /// results.
    pub zeroed: Vec<usize>,
    /// Whether the launch may begin while the kernel before it still runs; the kernel itself waits
    /// for that one's end.
    pub early: bool,
    /// Whether the kernel may read, and leave unused, what lies between the end of a buffer and the
    /// next multiple of 256 bytes, as kernels of XLA do.
    pub overreads: bool,
}

impl Passing {
    /// Whether parameters are the buffers' addresses in order, and nothing else is asked for.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What one parameter of a kernel is given. Buffers are counted over arguments and then results.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// The address of a buffer.
    Address(usize),
    /// A map of the tensor in a buffer.
    Map(usize, TensorMap),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// How a tensor is cut into boxes for bulk copies, in the driver's terms; the innermost dimension
/// comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element_size: u32,
    /// Elements along each dimension, one to five dimensions.
    pub dims: Vec<u64>,
    /// Bytes from one element to the next along each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Elements of a box along each dimension.
    pub boxes: Vec<u32>,
    /// Steps between the elements of a box along each dimension.
    pub steps: Vec<u32>,
    /// The driver's number of an interleaving.
    pub interleave: u32,
    /// The driver's number of a swizzle of shared memory.
    pub swizzle: u32,
    /// The driver's number of a promotion to the L2 cache.
    pub promotion: u32,
    /// The driver's number of what is read outside of the tensor.
    pub fill: u32,
}
