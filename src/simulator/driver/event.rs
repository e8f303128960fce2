//! Events: moments in streams.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::Mutex;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::abi::per_thread;
use crate::simulator::driver::capture;
use crate::simulator::driver::capture::Moment;
use crate::simulator::driver::context;
use crate::simulator::driver::context::Context;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::in_callback;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::stream::Ticket;
use crate::simulator::driver::work::Work;

/// `CU_EVENT_DISABLE_TIMING`
const DISABLE_TIMING: u32 = 2;
/// `CU_EVENT_INTERPROCESS`
const INTERPROCESS: u32 = 4;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`
pub(super) const EXTERNAL: u32 = 1;

/// What was recorded last.
#[derive(Default)]
pub(super) struct Recorded {
    /// The moment in a stream.
    pub(super) ticket: Option<Arc<Ticket>>,
    /// The place in a graph, when the stream captured.
    pub(super) moment: Option<Moment>,
}

/// An event.
pub(super) struct Event {
    pub(super) handle: Handle,
    pub(super) context: Arc<Context>,
    pub(super) flags: u32,
    pub(super) recorded: Mutex<Recorded>,
}

impl Event {
    /// A new ticket for a record that is about to be made.
    pub(super) fn record(&self) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::default());
        let mut recorded = lock(&self.recorded);
        recorded.ticket = Some(Arc::clone(&ticket));
        recorded.moment = None;
        ticket
    }
    /// What to wait for; nothing when it was never recorded.
    pub(super) fn ticket(&self) -> Option<Arc<Ticket>> {
        lock(&self.recorded).ticket.clone()
    }
}

/// The event of a handle.
pub(super) fn resolve(handle: Handle) -> Answer<Arc<Event>> {
    let driver = driver()?;
    if in_callback() {
        return Err(Status::NOT_PERMITTED);
    }
    driver.events.get(handle)
}

fn record(event: Handle, stream: Handle, flags: u32) -> Answer {
    if flags & !EXTERNAL != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let event = resolve(event)?;
    let stream = stream::resolve(stream)?;
    if event.context.handle != stream.context.handle {
        return Err(Status::INVALID_HANDLE);
    }
    if capture::is_capturing(&stream) {
        if flags & EXTERNAL != 0 {
            return stream::issue(&stream, Work::Record(event));
        }
        let moment = capture::moment(&stream)?;
        let mut recorded = lock(&event.recorded);
        recorded.moment = Some(moment);
        return Ok(());
    }
    if flags & EXTERNAL != 0 {
        return Err(Status::ILLEGAL_STATE);
    }
    let ticket = event.record();
    stream::issue(&stream, Work::Signal(ticket))
}

/// Whether an event can be looked at from outside.
fn refuse_captured(event: &Event) -> Answer {
    let recorded = lock(&event.recorded);
    if let Some(moment) = &recorded.moment {
        moment.session.invalidate();
        return Err(Status::CAPTURED_EVENT);
    }
    Ok(())
}

api! {
    fn cuEventCreate(out: Out<Handle>, flags: c_uint) {
        let context = context::current()?;
        out.check()?;
        if flags & !7 != 0 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(Status::INVALID_VALUE);
        }
        let event = driver()?.events.insert(|handle| Event {
            handle,
            context,
            flags,
            recorded: Mutex::default(),
        });
        out.put(event.handle)
    }
    fn cuEventDestroy_v2(event: Handle) {
        driver()?.events.remove(event).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }
    fn cuEventRecord(event: Handle, stream: Handle) {
        record(event, stream, 0)
    }
    fn cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint) {
        record(event, stream, flags)
    }
    fn cuEventQuery(event: Handle) {
        let event = resolve(event)?;
        event.context.health()?;
        refuse_captured(&event)?;
        match event.ticket() {
            Some(ticket) if ticket.time().is_none() => Err(Status::NOT_READY),
            _ => Ok(()),
        }
    }
    fn cuEventSynchronize(event: Handle) {
        let event = resolve(event)?;
        event.context.health()?;
        refuse_captured(&event)?;
        if let Some(ticket) = event.ticket() {
            ticket.wait();
        }
        event.context.health()
    }
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        let (start, end) = (resolve(start)?, resolve(end)?);
        milliseconds.check()?;
        start.context.health()?;
        end.context.health()?;
        if (start.flags | end.flags) & DISABLE_TIMING != 0 {
            return Err(Status::INVALID_HANDLE);
        }
        if start.context.device != end.context.device {
            return Err(Status::INVALID_HANDLE);
        }
        refuse_captured(&start)?;
        refuse_captured(&end)?;
        let (Some(first), Some(last)) = (start.ticket(), end.ticket()) else {
            return Err(Status::INVALID_HANDLE);
        };
        let (Some(first), Some(last)) = (first.time(), last.time()) else {
            return Err(Status::NOT_READY);
        };
        let seconds = if last >= first {
            last.duration_since(first).as_secs_f64()
        } else {
            -first.duration_since(last).as_secs_f64()
        };
        milliseconds.put((seconds * 1e3) as f32)
    }
    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) {
        if flags & !EXTERNAL != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let stream = stream::resolve(stream)?;
        let event = resolve(event)?;
        if flags & EXTERNAL != 0 {
            if !capture::is_capturing(&stream) {
                return Err(Status::ILLEGAL_STATE);
            }
            return stream::issue(&stream, Work::WaitEvent(event));
        }
        let (ticket, moment) = {
            let recorded = lock(&event.recorded);
            (recorded.ticket.clone(), recorded.moment.clone())
        };
        if let Some(moment) = moment {
            return capture::join(&stream, &moment);
        }
        if capture::is_capturing(&stream) {
            if ticket.is_none() {
                return Ok(());
            }
            capture::invalidate(&stream);
            return Err(Status::STREAM_CAPTURE_ISOLATION);
        }
        match ticket {
            None => Ok(()),
            Some(ticket) => stream::issue(&stream, Work::Await(ticket)),
        }
    }
    fn cuCtxRecordEvent(context: Handle, event: Handle) {
        let context = context::by_handle(context)?;
        let stream = context.legacy()?;
        let event = resolve(event)?;
        stream::issue(&stream, Work::Signal(event.record()))
    }
    fn cuCtxWaitEvent(context: Handle, event: Handle) {
        let context = context::by_handle(context)?;
        let event = resolve(event)?;
        let Some(ticket) = event.ticket() else {
            return Ok(());
        };
        for stream in context.streams(driver()?) {
            stream::issue(&stream, Work::Await(Arc::clone(&ticket)))?;
        }
        Ok(())
    }
}

alias! {
    cuEventDestroy = cuEventDestroy_v2(event: Handle);
    cuEventElapsedTime_v2 = cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle);
}

per_thread! {
    cuEventRecord_ptsz = cuEventRecord(event: Handle; stream);
    cuEventRecordWithFlags_ptsz = cuEventRecordWithFlags(event: Handle; stream; flags: c_uint);
    cuStreamWaitEvent_ptsz = cuStreamWaitEvent(; stream; event: Handle; flags: c_uint);
}
