//! What is known of an address.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::Arc;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::context;
use crate::simulator::driver::heap::Block;
use crate::simulator::driver::heap::Use;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::status::Status;
use crate::simulator::memory::Kind;

/// What an address belongs to.
struct Place {
    base: Address,
    bytes: u64,
    id: u64,
    host: bool,
    managed: bool,
    device: u32,
    context: Handle,
    pool: Handle,
    block: Option<Arc<Block>>,
}

fn place(driver: &Driver, address: Address) -> Option<Place> {
    if let Some(block) = driver.heap.find(address) {
        return Some(Place {
            base: block.base,
            bytes: block.bytes,
            id: block.id,
            host: block.is_host(),
            managed: block.purpose == Use::Managed,
            device: block.device,
            context: block.context,
            pool: match block.purpose {
                Use::Pool(pool) => pool,
                _ => 0,
            },
            block: Some(block),
        });
    }
    let allocation = driver.space.find(address)?;
    let (Kind::Global(device) | Kind::Constant(device)) = allocation.kind() else {
        return None;
    };
    Some(Place {
        base: allocation.base(),
        bytes: allocation.length(),
        id: allocation.serial() | 1 << 40,
        host: false,
        managed: false,
        device,
        context: context::primary_of(driver, device).map_or(0, |context| context.handle),
        pool: 0,
        block: None,
    })
}

/// What an address belongs to, as the runtime counts: 1 host, 2 device, 3 managed; and the device.
pub(super) fn owner(address: Address) -> Answer<Option<(u32, u32)>> {
    let place = place(driver()?, address);
    Ok(place.map(|place| {
        let kind = match (place.managed, place.host) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 2,
        };
        (kind, place.device)
    }))
}

/// Writes one attribute; those of a host block that only devices have are an error.
fn write(place: &Place, attribute: u32, data: Out<u64>, address: Address) -> Answer {
    data.check()?;
    let number = data.cast::<c_int>();
    match attribute {
        1 => data.put(place.context as u64),
        2 => number.put(if place.host { 1 } else { 2 }),
        3 => data.put(address),
        4 if place.host || place.managed => data.put(address),
        4 => Err(Status::INVALID_VALUE),
        5 => Err(Status::NOT_SUPPORTED),
        6 => number.put(0),
        7 => data.put(place.id),
        8 => number.put(c_int::from(place.managed)),
        9 => number.put(place.device as c_int),
        10 => number.put(0),
        11 => data.put(place.base),
        12 => data.put(place.bytes),
        13 => number.put(1),
        14 => data.put(0),
        15 => number.put(0),
        16 => number.put(3),
        17 => data.put(place.pool as u64),
        18 => data.put(place.bytes),
        19 => data.put(place.base),
        20 => data.put(place.id),
        21 => number.put(0),
        _ => Err(Status::INVALID_VALUE),
    }
}

api! {
    fn cuPointerGetAttribute(data: Out<u64>, attribute: c_uint, address: Address) {
        context::current()?;
        data.check()?;
        let place = place(driver()?, address).ok_or(Status::INVALID_VALUE)?;
        write(&place, attribute, data, address)
    }
    fn cuPointerGetAttributes(
        count: c_uint, attributes: In<c_uint>, data: In<Out<u64>>, address: Address,
    ) {
        context::current()?;
        let place = place(driver()?, address);
        let places = data.array(count as usize)?;
        for (attribute, data) in attributes.array(count as usize)?.into_iter().zip(places) {
            if !(1..=21).contains(&attribute) {
                return Err(Status::INVALID_VALUE);
            }
            let written = place.as_ref().map(|place| write(place, attribute, data, address));
            if let Some(Ok(())) = written {
                continue;
            }
            // Without an answer there are defaults instead of errors.
            match attribute {
                2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => data.cast::<c_int>().put_if(0),
                9 => data.cast::<c_int>().put_if(-2),
                _ => data.put_if(0),
            }
        }
        Ok(())
    }
    fn cuPointerSetAttribute(value: In<c_uint>, attribute: c_uint, address: Address) {
        context::current()?;
        value.get()?;
        place(driver()?, address).ok_or(Status::INVALID_VALUE)?;
        if attribute != 6 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuMemGetAddressRange_v2(base: Out<Address>, bytes: Out<usize>, address: Address) {
        context::current()?;
        let place = place(driver()?, address).ok_or(Status::NOT_FOUND)?;
        if place.host && place.block.is_none() {
            return Err(Status::NOT_FOUND);
        }
        base.put_if(place.base);
        bytes.put_if(place.bytes as usize);
        Ok(())
    }
}
