//! A thin layer over LLVM's builder: untyped values that may be scalars or vectors.
//!
//! inkwell's builder keeps scalars and vectors in separate types, which doubles every generic
//! lowering; here both are a [`Val`]. Type errors are found by LLVM's verifier, which always runs.
//! Owns no rule of lowering. Nothing here outlives the `Context` and `Module` it was made from.
#![allow(unsafe_code, reason = "this file is the boundary to LLVM's C API")]

use std::ffi::CString;
use std::ptr::null_mut;

use inkwell::context::AsContextRef;
use inkwell::context::Context;
use inkwell::module::Module;
use llvm_sys::LLVMAtomicOrdering;
use llvm_sys::LLVMAtomicRMWBinOp;
use llvm_sys::LLVMInlineAsmDialect;
use llvm_sys::LLVMIntPredicate;
use llvm_sys::LLVMOpcode;
use llvm_sys::LLVMRealPredicate;
use llvm_sys::core::*;
use llvm_sys::debuginfo::LLVMMetadataReplaceAllUsesWith;
use llvm_sys::debuginfo::LLVMTemporaryMDNode;
use llvm_sys::prelude::LLVMAttributeRef;
use llvm_sys::prelude::LLVMBasicBlockRef;
use llvm_sys::prelude::LLVMBuilderRef;
use llvm_sys::prelude::LLVMContextRef;
use llvm_sys::prelude::LLVMMetadataRef;
use llvm_sys::prelude::LLVMModuleRef;
use llvm_sys::prelude::LLVMTypeRef;
use llvm_sys::prelude::LLVMValueRef;

use crate::kernel::Scalar;
use crate::kernel::Ty;

/// A value, scalar or vector.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Val(pub(super) LLVMValueRef);

/// A type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Type(pub(super) LLVMTypeRef);

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Blk(LLVMBasicBlockRef);

/// A metadata node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Md(LLVMMetadataRef);

/// What a global variable holds before anything is written to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The variable is not the module's own.
    Outside,
    /// Anything.
    Undefined,
    /// Zeros.
    Zero,
}

/// Calls LLVM's C API.
macro_rules! llvm {
    ($call:expr) => {
        // SAFETY: every handle passed comes from the one context and module that this `Ir` borrows
        // and is therefore alive; arrays are passed with their own lengths; strings end in NUL.
        unsafe { $call }
    };
}

const NO_NAME: *const libc::c_char = c"".as_ptr();

/// Builds instructions at the end of a current block.
pub(super) struct Ir<'m> {
    ctx: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
    function: LLVMValueRef,
    lifetime: std::marker::PhantomData<&'m Module<'m>>,
}

impl Drop for Ir<'_> {
    fn drop(&mut self) {
        llvm!(LLVMDisposeBuilder(self.builder));
    }
}

impl<'m> Ir<'m> {
    /// A builder for a new function `name(params) -> ret` of the module, at its entry block.
    pub(super) fn function<'ctx: 'm>(
        context: &'ctx Context,
        module: &'m Module<'ctx>,
        name: &str,
        ret: impl FnOnce(&Self) -> Type,
        params: impl FnOnce(&Self) -> Vec<Type>,
    ) -> Self {
        let ctx = context.as_ctx_ref();
        let mut ir = Self {
            ctx,
            module: module.as_mut_ptr(),
            builder: llvm!(LLVMCreateBuilderInContext(ctx)),
            function: null_mut(),
            lifetime: std::marker::PhantomData,
        };
        let ret = ret(&ir).0;
        let mut params: Vec<LLVMTypeRef> = params(&ir).into_iter().map(|t| t.0).collect();
        let ty = llvm!(LLVMFunctionType(
            ret,
            params.as_mut_ptr(),
            params.len() as u32,
            0
        ));
        let name = cstring(name);
        ir.function = llvm!(LLVMAddFunction(ir.module, name.as_ptr(), ty));
        let entry = ir.block();
        ir.at(entry);
        ir
    }

    // Types

    /// The LLVM type of one lane. The 16-bit floats are kept as their bits.
    pub(super) fn scalar(&self, scalar: Scalar) -> Type {
        Type(match scalar {
            Scalar::I1 => llvm!(LLVMInt1TypeInContext(self.ctx)),
            Scalar::I8 => llvm!(LLVMInt8TypeInContext(self.ctx)),
            Scalar::I16 | Scalar::F16 | Scalar::BF16 => llvm!(LLVMInt16TypeInContext(self.ctx)),
            Scalar::I32 => llvm!(LLVMInt32TypeInContext(self.ctx)),
            Scalar::I64 => llvm!(LLVMInt64TypeInContext(self.ctx)),
            Scalar::F32 => llvm!(LLVMFloatTypeInContext(self.ctx)),
            Scalar::F64 => llvm!(LLVMDoubleTypeInContext(self.ctx)),
        })
    }
    /// The LLVM type of a kernel value.
    pub(super) fn ty(&self, ty: Ty) -> Type {
        self.vector(self.scalar(ty.scalar), ty.lanes)
    }
    /// A vector type, or the element itself for one lane.
    pub(super) fn vector(&self, elem: Type, lanes: u16) -> Type {
        if lanes == 1 {
            return elem;
        }
        Type(llvm!(LLVMVectorType(elem.0, u32::from(lanes))))
    }
    /// `half`.
    pub(super) fn half(&self, lanes: u16) -> Type {
        self.vector(Type(llvm!(LLVMHalfTypeInContext(self.ctx))), lanes)
    }
    /// `bfloat`.
    pub(super) fn bfloat(&self, lanes: u16) -> Type {
        self.vector(Type(llvm!(LLVMBFloatTypeInContext(self.ctx))), lanes)
    }
    /// An integer type of any width.
    pub(super) fn int(&self, bits: u32, lanes: u16) -> Type {
        self.vector(Type(llvm!(LLVMIntTypeInContext(self.ctx, bits))), lanes)
    }
    /// `void`.
    pub(super) fn void(&self) -> Type {
        Type(llvm!(LLVMVoidTypeInContext(self.ctx)))
    }
    /// A pointer type.
    pub(super) fn ptr(&self, address_space: u32) -> Type {
        Type(llvm!(LLVMPointerTypeInContext(self.ctx, address_space)))
    }
    /// An array type.
    pub(super) fn array(&self, elem: Type, count: u64) -> Type {
        Type(llvm!(LLVMArrayType2(elem.0, count)))
    }
    /// The type of a value.
    pub(super) fn type_of(&self, value: Val) -> Type {
        Type(llvm!(LLVMTypeOf(value.0)))
    }

    // Constants

    /// The same bits in every lane.
    pub(super) fn const_bits(&self, ty: Ty, bits: u64) -> Val {
        let elem = self.scalar(ty.scalar);
        let one = match ty.scalar {
            Scalar::F32 | Scalar::F64 => {
                let int = self.scalar(ty.scalar.as_int());
                llvm!(LLVMConstBitCast(LLVMConstInt(int.0, bits, 0), elem.0))
            }
            _ => llvm!(LLVMConstInt(elem.0, bits, 0)),
        };
        if ty.lanes == 1 {
            return Val(one);
        }
        self.const_vector(&vec![Val(one); usize::from(ty.lanes)])
    }
    /// An integer in every lane of a type built here.
    pub(super) fn const_int(&self, elem: Type, lanes: u16, bits: u64) -> Val {
        let one = Val(llvm!(LLVMConstInt(elem.0, bits, 0)));
        if lanes == 1 {
            return one;
        }
        self.const_vector(&vec![one; usize::from(lanes)])
    }
    /// A vector of constants.
    pub(super) fn const_vector(&self, lanes: &[Val]) -> Val {
        let mut lanes: Vec<LLVMValueRef> = lanes.iter().map(|v| v.0).collect();
        Val(llvm!(LLVMConstVector(
            lanes.as_mut_ptr(),
            lanes.len() as u32
        )))
    }
    /// An `i32`.
    pub(super) fn i32(&self, value: u32) -> Val {
        self.const_bits(Ty::scalar(Scalar::I32), u64::from(value))
    }
    /// An `i64`.
    pub(super) fn i64(&self, value: u64) -> Val {
        self.const_bits(Ty::scalar(Scalar::I64), value)
    }
    /// All bits zero.
    pub(super) fn zero(&self, ty: Type) -> Val {
        Val(llvm!(LLVMConstNull(ty.0)))
    }
    /// No particular value.
    pub(super) fn poison(&self, ty: Type) -> Val {
        Val(llvm!(LLVMGetPoison(ty.0)))
    }

    /// Whether a value is a constant.
    pub(super) fn is_constant(&self, value: Val) -> bool {
        llvm!(LLVMIsConstant(value.0)) != 0
    }

    // Arithmetic

    /// An instruction of two operands.
    pub(super) fn bin(&self, op: LLVMOpcode, a: Val, b: Val) -> Val {
        Val(llvm!(LLVMBuildBinOp(self.builder, op, a.0, b.0, NO_NAME)))
    }
    /// Float negation.
    pub(super) fn neg(&self, a: Val) -> Val {
        Val(llvm!(LLVMBuildFNeg(self.builder, a.0, NO_NAME)))
    }
    /// A conversion instruction.
    pub(super) fn cast(&self, op: LLVMOpcode, a: Val, to: Type) -> Val {
        Val(llvm!(LLVMBuildCast(self.builder, op, a.0, to.0, NO_NAME)))
    }
    /// The same bits under another type; nothing when it has that type.
    pub(super) fn bitcast(&self, a: Val, to: Type) -> Val {
        if self.type_of(a) == to {
            return a;
        }
        self.cast(LLVMOpcode::LLVMBitCast, a, to)
    }
    /// An integer relation.
    pub(super) fn icmp(&self, op: LLVMIntPredicate, a: Val, b: Val) -> Val {
        Val(llvm!(LLVMBuildICmp(self.builder, op, a.0, b.0, NO_NAME)))
    }
    /// A float relation.
    pub(super) fn fcmp(&self, op: LLVMRealPredicate, a: Val, b: Val) -> Val {
        Val(llvm!(LLVMBuildFCmp(self.builder, op, a.0, b.0, NO_NAME)))
    }
    /// A choice.
    pub(super) fn select(&self, cond: Val, a: Val, b: Val) -> Val {
        Val(llvm!(LLVMBuildSelect(
            self.builder,
            cond.0,
            a.0,
            b.0,
            NO_NAME
        )))
    }
    /// Bits both have.
    pub(super) fn and(&self, a: Val, b: Val) -> Val {
        self.bin(LLVMOpcode::LLVMAnd, a, b)
    }
    /// Bits either has.
    pub(super) fn or(&self, a: Val, b: Val) -> Val {
        self.bin(LLVMOpcode::LLVMOr, a, b)
    }
    /// Integer sum.
    pub(super) fn add(&self, a: Val, b: Val) -> Val {
        self.bin(LLVMOpcode::LLVMAdd, a, b)
    }

    // Vectors

    /// One lane of a vector.
    pub(super) fn extract(&self, a: Val, lane: u16) -> Val {
        let lane = self.i32(u32::from(lane));
        Val(llvm!(LLVMBuildExtractElement(
            self.builder,
            a.0,
            lane.0,
            NO_NAME
        )))
    }
    /// A vector with one lane replaced.
    pub(super) fn insert(&self, a: Val, value: Val, lane: u16) -> Val {
        let lane = self.i32(u32::from(lane));
        Val(llvm!(LLVMBuildInsertElement(
            self.builder,
            a.0,
            value.0,
            lane.0,
            NO_NAME
        )))
    }
    /// Lanes picked from two vectors.
    pub(super) fn shuffle(&self, a: Val, b: Val, lanes: &[u16]) -> Val {
        let picks: Vec<Val> = lanes.iter().map(|&l| self.i32(u32::from(l))).collect();
        let picks = self.const_vector(&picks);
        Val(llvm!(LLVMBuildShuffleVector(
            self.builder,
            a.0,
            b.0,
            picks.0,
            NO_NAME
        )))
    }
    /// A scalar in every lane.
    pub(super) fn splat(&self, a: Val, lanes: u16) -> Val {
        if lanes == 1 {
            return a;
        }
        let poison = self.poison(self.vector(self.type_of(a), lanes));
        let first = self.insert(poison, a, 0);
        self.shuffle(first, poison, &vec![0; usize::from(lanes)])
    }
    /// A vector of scalars; one scalar stays itself.
    pub(super) fn gather_lanes(&self, lanes: &[Val]) -> Val {
        if let [one] = lanes {
            return *one;
        }
        let ty = self.vector(self.type_of(lanes[0]), lanes.len() as u16);
        let mut out = self.poison(ty);
        for (i, &lane) in lanes.iter().enumerate() {
            out = self.insert(out, lane, i as u16);
        }
        out
    }
    /// The lanes of a value as scalars.
    pub(super) fn lanes(&self, a: Val, lanes: u16) -> Vec<Val> {
        if lanes == 1 {
            return vec![a];
        }
        (0..lanes).map(|i| self.extract(a, i)).collect()
    }

    // Calls

    /// Calls an intrinsic by name; `None` when this LLVM has none of that name.
    pub(super) fn try_intrinsic(&self, name: &str, types: &[Type], args: &[Val]) -> Option<Val> {
        let id = llvm!(LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len()));
        if id == 0 {
            return None;
        }
        let mut types: Vec<LLVMTypeRef> = types.iter().map(|t| t.0).collect();
        let mut args: Vec<LLVMValueRef> = args.iter().map(|v| v.0).collect();
        let function = llvm!(LLVMGetIntrinsicDeclaration(
            self.module,
            id,
            types.as_mut_ptr(),
            types.len()
        ));
        let ty = llvm!(LLVMGlobalGetValueType(function));
        Some(Val(llvm!(LLVMBuildCall2(
            self.builder,
            ty,
            function,
            args.as_mut_ptr(),
            args.len() as u32,
            NO_NAME
        ))))
    }
    /// Calls an intrinsic of the fixed list that `llvm::tests` looks up.
    pub(super) fn intrinsic(&self, name: &str, types: &[Type], args: &[Val]) -> Val {
        self.try_intrinsic(name, types, args)
            .expect("the intrinsics used are those of the one LLVM version that is linked")
    }
    /// Calls Linux on x86-64: the number of the call and two arguments. Gives what the system gives.
    pub(super) fn system_call(&self, call: [Val; 3]) -> Val {
        const CODE: &str = "syscall";
        const REGISTERS: &str = "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory},~{flags}";
        let word = self.int(64, 1);
        let mut types = [word.0; 3];
        let ty = llvm!(LLVMFunctionType(word.0, types.as_mut_ptr(), 3, 0));
        let code = llvm!(LLVMGetInlineAsm(
            ty,
            CODE.as_ptr().cast(),
            CODE.len(),
            REGISTERS.as_ptr().cast(),
            REGISTERS.len(),
            1,
            0,
            LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
            0
        ));
        let mut args = call.map(|value| value.0);
        Val(llvm!(LLVMBuildCall2(
            self.builder,
            ty,
            code,
            args.as_mut_ptr(),
            3,
            NO_NAME
        )))
    }
    /// Marks the result of a call as lying in `[low, high)`.
    pub(super) fn range_result(&self, call: Val, bits: u32, low: u64, high: u64) {
        let kind = self.attribute_kind("range");
        let attribute = llvm!(LLVMCreateConstantRangeAttribute(
            self.ctx, kind, bits, &low, &high
        ));
        llvm!(LLVMAddCallSiteAttribute(call.0, 0, attribute));
    }

    /// Promises the alignment of a pointer argument of a call.
    pub(super) fn call_argument_align(&self, call: Val, argument: u32, align: u64) {
        let kind = self.attribute_kind("align");
        let attribute = llvm!(LLVMCreateEnumAttribute(self.ctx, kind, align));
        llvm!(LLVMAddCallSiteAttribute(call.0, argument + 1, attribute));
    }
    /// Marks an integer instruction as not wrapping; constants stay as they are.
    pub(super) fn no_signed_wrap(&self, value: Val) {
        let instruction = llvm!(LLVMIsABinaryOperator(value.0));
        if !instruction.is_null() {
            llvm!(LLVMSetNSW(instruction, 1));
        }
    }

    // Memory

    /// A load.
    pub(super) fn load(&self, ty: Type, ptr: Val, align: u64) -> Val {
        let value = llvm!(LLVMBuildLoad2(self.builder, ty.0, ptr.0, NO_NAME));
        llvm!(LLVMSetAlignment(value, align as u32));
        Val(value)
    }
    /// A store.
    pub(super) fn store(&self, value: Val, ptr: Val, align: u64) -> Val {
        let store = llvm!(LLVMBuildStore(self.builder, value.0, ptr.0));
        llvm!(LLVMSetAlignment(store, align as u32));
        Val(store)
    }
    /// The address of an element; the index (or each lane of it) stays within the object.
    pub(super) fn element(&self, elem: Type, ptr: Val, index: Val) -> Val {
        let mut indices = [index.0];
        Val(llvm!(LLVMBuildInBoundsGEP2(
            self.builder,
            elem.0,
            ptr.0,
            indices.as_mut_ptr(),
            1,
            NO_NAME
        )))
    }
    /// Stack memory. To be called while the entry block is the current one.
    pub(super) fn alloca(&self, ty: Type, align: u64) -> Val {
        let value = llvm!(LLVMBuildAlloca(self.builder, ty.0, NO_NAME));
        llvm!(LLVMSetAlignment(value, align as u32));
        Val(value)
    }
    /// A global variable of the module.
    pub(super) fn global(
        &self,
        ty: Type,
        name: &str,
        address_space: u32,
        align: u64,
        start: Start,
    ) -> Val {
        let name = cstring(name);
        let global = llvm!(LLVMAddGlobalInAddressSpace(
            self.module,
            ty.0,
            name.as_ptr(),
            address_space
        ));
        llvm!(LLVMSetAlignment(global, align as u32));
        let value = match start {
            Start::Outside => return Val(global),
            Start::Undefined => llvm!(LLVMGetUndef(ty.0)),
            Start::Zero => llvm!(LLVMConstNull(ty.0)),
        };
        llvm!(LLVMSetLinkage(
            global,
            llvm_sys::LLVMLinkage::LLVMInternalLinkage
        ));
        llvm!(LLVMSetInitializer(global, value));
        Val(global)
    }
    /// A relaxed read-modify-write; gives the old value.
    pub(super) fn atomic_rmw(
        &self,
        op: LLVMAtomicRMWBinOp,
        ptr: Val,
        value: Val,
        scope: &str,
    ) -> Val {
        let ordering = LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic;
        Val(llvm!(LLVMBuildAtomicRMWSyncScope(
            self.builder,
            op,
            ptr.0,
            value.0,
            ordering,
            self.sync_scope(scope)
        )))
    }
    /// A relaxed compare-exchange; gives the old value and whether it was replaced.
    pub(super) fn cmpxchg(&self, ptr: Val, expected: Val, desired: Val, scope: &str) -> (Val, Val) {
        let ordering = LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic;
        let pair = llvm!(LLVMBuildAtomicCmpXchgSyncScope(
            self.builder,
            ptr.0,
            expected.0,
            desired.0,
            ordering,
            ordering,
            self.sync_scope(scope)
        ));
        (self.field(Val(pair), 0), self.field(Val(pair), 1))
    }
    /// A field of a struct value.
    pub(super) fn field(&self, value: Val, index: u32) -> Val {
        Val(llvm!(LLVMBuildExtractValue(
            self.builder,
            value.0,
            index,
            NO_NAME
        )))
    }
    fn sync_scope(&self, name: &str) -> u32 {
        llvm!(LLVMGetSyncScopeID(
            self.ctx,
            name.as_ptr().cast(),
            name.len()
        ))
    }

    // Control

    /// A new block of the function.
    pub(super) fn block(&self) -> Blk {
        Blk(llvm!(LLVMAppendBasicBlockInContext(
            self.ctx,
            self.function,
            NO_NAME
        )))
    }
    /// Continues at the end of a block.
    pub(super) fn at(&self, block: Blk) {
        llvm!(LLVMPositionBuilderAtEnd(self.builder, block.0));
    }
    /// The current block.
    pub(super) fn here(&self) -> Blk {
        Blk(llvm!(LLVMGetInsertBlock(self.builder)))
    }
    /// A jump.
    pub(super) fn br(&self, to: Blk) -> Val {
        Val(llvm!(LLVMBuildBr(self.builder, to.0)))
    }
    /// A choice of two blocks.
    pub(super) fn cond_br(&self, cond: Val, then: Blk, otherwise: Blk) -> Val {
        Val(llvm!(LLVMBuildCondBr(
            self.builder,
            cond.0,
            then.0,
            otherwise.0
        )))
    }
    /// A value that depends on where control came from; see [`Ir::incoming`].
    pub(super) fn phi(&self, ty: Type) -> Val {
        Val(llvm!(LLVMBuildPhi(self.builder, ty.0, NO_NAME)))
    }
    /// Adds a source to a phi.
    pub(super) fn incoming(&self, phi: Val, value: Val, from: Blk) {
        let (mut values, mut blocks) = ([value.0], [from.0]);
        llvm!(LLVMAddIncoming(
            phi.0,
            values.as_mut_ptr(),
            blocks.as_mut_ptr(),
            1
        ));
    }
    /// Returns.
    pub(super) fn ret(&self, value: Option<Val>) {
        match value {
            Some(value) => llvm!(LLVMBuildRet(self.builder, value.0)),
            None => llvm!(LLVMBuildRetVoid(self.builder)),
        };
    }

    // The function

    /// A parameter.
    pub(super) fn param(&self, index: usize) -> Val {
        Val(llvm!(LLVMGetParam(self.function, index as u32)))
    }
    /// Gives the function a further name.
    pub(super) fn alias(&self, name: &str) {
        let name = cstring(name);
        let ty = llvm!(LLVMGlobalGetValueType(self.function));
        llvm!(LLVMAddAlias2(
            self.module,
            ty,
            0,
            self.function,
            name.as_ptr()
        ));
    }
    /// Sets the calling convention by its number.
    pub(super) fn set_call_convention(&self, number: u32) {
        llvm!(LLVMSetFunctionCallConv(self.function, number));
    }
    fn attribute_kind(&self, name: &str) -> u32 {
        llvm!(LLVMGetEnumAttributeKindForName(
            name.as_ptr().cast(),
            name.len()
        ))
    }
    fn add_attribute(&self, index: u32, attribute: LLVMAttributeRef) {
        llvm!(LLVMAddAttributeAtIndex(self.function, index, attribute));
    }
    /// An attribute of the function without or with an integer.
    pub(super) fn function_attribute(&self, name: &str, value: u64) {
        let kind = self.attribute_kind(name);
        let attribute = llvm!(LLVMCreateEnumAttribute(self.ctx, kind, value));
        self.add_attribute(u32::MAX, attribute);
    }
    /// An attribute of the function made of two strings.
    pub(super) fn function_string(&self, key: &str, value: &str) {
        let attribute = llvm!(LLVMCreateStringAttribute(
            self.ctx,
            key.as_ptr().cast(),
            key.len() as u32,
            value.as_ptr().cast(),
            value.len() as u32
        ));
        self.add_attribute(u32::MAX, attribute);
    }
    /// An attribute of a parameter.
    pub(super) fn param_attribute(&self, index: usize, name: &str, value: u64) {
        let kind = self.attribute_kind(name);
        let attribute = llvm!(LLVMCreateEnumAttribute(self.ctx, kind, value));
        self.add_attribute(index as u32 + 1, attribute);
    }

    // Metadata

    /// Attaches a node to an instruction.
    pub(super) fn annotate(&self, instruction: Val, kind: &str, node: Md) {
        let kind = llvm!(LLVMGetMDKindIDInContext(
            self.ctx,
            kind.as_ptr().cast(),
            kind.len() as u32
        ));
        let node = llvm!(LLVMMetadataAsValue(self.ctx, node.0));
        llvm!(LLVMSetMetadata(instruction.0, kind, node));
    }
    /// A node of nodes.
    pub(super) fn node(&self, parts: &[Md]) -> Md {
        let mut parts: Vec<LLVMMetadataRef> = parts.iter().map(|m| m.0).collect();
        Md(llvm!(LLVMMDNodeInContext2(
            self.ctx,
            parts.as_mut_ptr(),
            parts.len()
        )))
    }
    /// A node that is equal to no other: its first part is itself.
    pub(super) fn distinct(&self, parts: &[Md]) -> Md {
        let placeholder = llvm!(LLVMTemporaryMDNode(self.ctx, null_mut(), 0));
        let mut all = vec![placeholder];
        all.extend(parts.iter().map(|m| m.0));
        let node = llvm!(LLVMMDNodeInContext2(self.ctx, all.as_mut_ptr(), all.len()));
        llvm!(LLVMMetadataReplaceAllUsesWith(placeholder, node));
        Md(node)
    }
    /// A string.
    pub(super) fn md_string(&self, text: &str) -> Md {
        Md(llvm!(LLVMMDStringInContext2(
            self.ctx,
            text.as_ptr().cast(),
            text.len()
        )))
    }
    /// A constant.
    pub(super) fn md_value(&self, value: Val) -> Md {
        Md(llvm!(LLVMValueAsMetadata(value.0)))
    }
}

/// The text with a final NUL; names never hold one.
fn cstring(text: &str) -> CString {
    CString::new(text.replace('\0', "_")).unwrap_or_default()
}
