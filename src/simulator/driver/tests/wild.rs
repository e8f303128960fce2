//! Entry points called with anything: null, numbers that are no handles, handles of what is gone.

use std::collections::BTreeSet;

use super::*;
use crate::simulator::driver::abi::Signature;
use crate::simulator::driver::context;
use crate::simulator::driver::copy;
use crate::simulator::driver::device;
use crate::simulator::driver::event;
use crate::simulator::driver::event::*;
use crate::simulator::driver::fill;
use crate::simulator::driver::graph_exec;
use crate::simulator::driver::graph_exec::*;
use crate::simulator::driver::graph_nodes;
use crate::simulator::driver::graph_query;
use crate::simulator::driver::graph_query::*;
use crate::simulator::driver::launch;
use crate::simulator::driver::library;
use crate::simulator::driver::link;
use crate::simulator::driver::memory;
use crate::simulator::driver::module;
use crate::simulator::driver::occupancy;
use crate::simulator::driver::pointer;
use crate::simulator::driver::pool;
use crate::simulator::driver::proc_address;
use crate::simulator::driver::stream_api;
use crate::simulator::driver::stream_api::*;
use crate::simulator::driver::tensor_map;
use crate::simulator::driver::virtual_memory;

/// Arguments at most.
const MOST: usize = 16;

type Any = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> Status;

fn call(address: usize, a: [usize; MOST]) -> Status {
    // All arguments are whole numbers and pointers; what a function does not take is passed over.
    let function = unsafe { std::mem::transmute::<usize, Any>(address) };
    unsafe {
        function(
            a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
            a[14], a[15],
        )
    }
}

fn everything() -> Vec<Signature> {
    let lists = [
        context::signatures(),
        copy::signatures(),
        device::signatures(),
        event::signatures(),
        fill::signatures(),
        graph_exec::signatures(),
        graph_nodes::signatures(),
        graph_query::signatures(),
        launch::signatures(),
        library::signatures(),
        link::signatures(),
        memory::signatures(),
        module::signatures(),
        occupancy::signatures(),
        pointer::signatures(),
        pool::signatures(),
        proc_address::signatures(),
        stream_api::signatures(),
        tensor_map::signatures(),
        virtual_memory::signatures(),
    ];
    lists.into_iter().flatten().collect()
}

/// A context to call in, however the last call left things.
fn ready() {
    let mut context = 0;
    ok!(cuDevicePrimaryCtxRetain(out(&mut context), 0));
    ok!(cuCtxSetCurrent(context));
}

fn let_go() {
    while unsafe { cuDevicePrimaryCtxRelease_v2(0) } == Status::SUCCESS {}
    let mut context = 0;
    ok!(cuDevicePrimaryCtxRetain(out(&mut context), 0));
}

#[test]
fn null_is_an_error_or_means_something() {
    let _turn = turn();
    let mut refused = 0;
    let all = everything();
    for (name, address, arguments) in &all {
        ready();
        let status = call(*address, [0; MOST]);
        assert_ne!(status, Status::UNKNOWN, "{name}");
        let mut types = arguments.iter().map(|argument| argument.1);
        if types.any(|ty| ty.starts_with("Out <") || ty.starts_with("Out<")) {
            refused += usize::from(status != Status::SUCCESS);
        }
        let_go();
    }
    assert!(all.len() > 300, "{}", all.len());
    // The others have places that may be left out.
    assert!(refused > 150, "{refused}");
}

/// Functions that follow an address because the interface says what lies there: host memory of
/// copies, functions of the program.
fn follows(name: &str, argument: &str) -> bool {
    let is_code = matches!(argument, "function" | "callback" | "destroy");
    let of_program = ["LaunchHostFunc", "AddCallback", "Occupancy", "UserObject"];
    let is_host = name.starts_with("cuMemcpy") && matches!(argument, "source" | "target");
    is_host || (is_code && of_program.iter().any(|part| name.contains(part)))
}

/// Numbers that are no handles, handles of several kinds, and one of what is gone.
fn handles(place: usize) -> Vec<usize> {
    let (mut stream, mut event, mut graph, mut exec, mut gone) = (0, 0, 0, 0, 0);
    ok!(cuStreamCreate(out(&mut stream), 0));
    ok!(cuEventCreate(out(&mut event), 0));
    ok!(cuGraphCreate(out(&mut graph), 0));
    ok!(cuGraphInstantiateWithFlags(out(&mut exec), graph, 0));
    ok!(cuStreamCreate(out(&mut gone), 1));
    ok!(cuStreamDestroy_v2(gone));
    let made = [stream, event, graph, exec, gone];
    let numbers = [
        0,
        1,
        2,
        3,
        7,
        place,
        0xdead_beef_0000_0010,
        usize::MAX,
        1 << 63,
        1 << 40,
    ];
    made.into_iter().chain(numbers).collect()
}

#[test]
fn wild_arguments_are_survived() {
    let _turn = turn();
    // Places for whatever is read or written.
    let mut room = vec![0_u64; 8192];
    let place = room.as_mut_ptr() as usize;
    let mut state = 11_u64;
    let mut pick = |count: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % count
    };
    let mut seen = BTreeSet::new();
    for (name, address, arguments) in everything() {
        ready();
        let handles = handles(place);
        for _ in 0..24 {
            ready();
            room.fill(0);
            let mut values = [0; MOST];
            for (value, (argument, ty)) in values.iter_mut().zip(&arguments) {
                let ty = ty.replace(' ', "");
                let is_count = ["count", "size", "length", "number", "height"]
                    .iter()
                    .any(|part| argument.contains(part));
                *value = if ty.starts_with("Out<") || ty.starts_with("In<") {
                    [0, place][pick(2)]
                } else if follows(name, argument) {
                    0
                } else if is_count {
                    pick(4)
                } else {
                    handles[pick(handles.len())]
                };
            }
            let status = call(address, values);
            assert_ne!(status, Status::UNKNOWN, "{name}{values:x?}");
            seen.insert(status.0);
        }
        let_go();
    }
    // Refusals of many kinds, and calls that happened to make sense.
    assert!(seen.len() > 8 && seen.contains(&0), "{seen:?}");
}
