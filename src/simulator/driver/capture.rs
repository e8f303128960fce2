//! Capturing what a stream is given into a graph instead of running it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::context::Context;
use crate::simulator::driver::context::thread_number;
use crate::simulator::driver::graph::Graph;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream::Role;
use crate::simulator::driver::stream::Stream;
use crate::simulator::driver::types::EdgeData;
use crate::simulator::driver::work::Work;

/// `CU_STREAM_CAPTURE_MODE_GLOBAL`
const GLOBAL: u32 = 0;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`
const RELAXED: u32 = 2;

/// One capture, in one stream or several.
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) graph: Arc<Graph>,
    mode: u32,
    /// The stream that it began in.
    origin: Handle,
    thread: u64,
    broken: AtomicBool,
    /// Whether the graph is the program's.
    into: bool,
}

impl Session {
    /// Says that it cannot give a graph any more.
    pub(super) fn invalidate(&self) {
        self.broken.store(true, Ordering::Release);
    }
    /// Whether it still can.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

/// A stream's part in a capture: what its next node comes after.
#[derive(Clone)]
pub(super) struct Capture {
    pub(super) session: Arc<Session>,
    pub(super) frontier: Vec<(Handle, EdgeData)>,
}

/// A place in a capture that an event recorded.
#[derive(Clone)]
pub(super) struct Moment {
    pub(super) session: Arc<Session>,
    frontier: Vec<(Handle, EdgeData)>,
}

/// The captures under way.
static SESSIONS: Mutex<BTreeMap<u64, Arc<Session>>> = Mutex::new(BTreeMap::new());
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

/// Sets what this thread may do while somebody captures; gives what it was.
pub(super) fn exchange_mode(mode: u32) -> Answer<u32> {
    if mode > RELAXED {
        return Err(Status::INVALID_VALUE);
    }
    Ok(MODE.replace(mode))
}

/// Whether the stream captures.
pub(super) fn is_capturing(stream: &Stream) -> bool {
    COUNT.load(Ordering::Acquire) > 0 && lock(&stream.capture).is_some()
}

/// Spoils the capture that a stream takes part in.
pub(super) fn invalidate(stream: &Stream) {
    if let Some(capture) = &*lock(&stream.capture) {
        capture.session.invalidate();
    }
}

/// Refuses calls that may reach into streams which capture.
pub(super) fn refuse_unsafe() -> Answer {
    if COUNT.load(Ordering::Acquire) == 0 || MODE.get() == RELAXED {
        return Ok(());
    }
    let me = thread_number();
    let sessions = lock(&SESSIONS);
    let hit = sessions.values().find(|session| {
        let mine = session.thread == me && session.mode != RELAXED;
        mine || (MODE.get() == GLOBAL && session.mode == GLOBAL)
    });
    match hit {
        None => Ok(()),
        Some(session) => {
            session.invalidate();
            Err(Status::STREAM_CAPTURE_UNSUPPORTED)
        }
    }
}

/// Refuses work in the default stream while a stream that keeps step with it captures.
pub(super) fn refuse_implicit(driver: &Driver, context: &Context) -> Answer {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    for stream in context.streams(driver) {
        if stream.role == Role::NonBlocking {
            continue;
        }
        let capture = lock(&stream.capture);
        if let Some(capture) = &*capture
            && capture.session.mode != RELAXED
        {
            capture.session.invalidate();
            return Err(Status::STREAM_CAPTURE_IMPLICIT);
        }
    }
    Ok(())
}

/// Begins a capture; into the program's graph after some of its nodes, or into a new one.
pub(super) fn begin(
    stream: &Arc<Stream>,
    mode: u32,
    into: Option<(Arc<Graph>, Vec<(Handle, EdgeData)>)>,
) -> Answer {
    let driver = driver()?;
    if mode > RELAXED {
        return Err(Status::INVALID_VALUE);
    }
    if stream.is_legacy() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut capture = lock(&stream.capture);
    if capture.is_some() {
        return Err(Status::ILLEGAL_STATE);
    }
    let existing = into.is_some();
    let (graph, frontier) = into.unwrap_or_else(|| (Graph::create(driver), Vec::new()));
    let session = Arc::new(Session {
        id: driver.new_id(),
        graph,
        mode,
        origin: stream.handle,
        thread: thread_number(),
        broken: AtomicBool::new(false),
        into: existing,
    });
    lock(&SESSIONS).insert(session.id, Arc::clone(&session));
    COUNT.fetch_add(1, Ordering::AcqRel);
    *capture = Some(Capture { session, frontier });
    Ok(())
}

/// Ends a capture and gives its graph.
pub(super) fn end(stream: &Arc<Stream>) -> Answer<Handle> {
    let driver = driver()?;
    let capture = lock(&stream.capture).clone();
    let capture = capture.ok_or(Status::ILLEGAL_STATE)?;
    let session = &capture.session;
    if session.mode != RELAXED && session.thread != thread_number() {
        session.invalidate();
        return Err(Status::STREAM_CAPTURE_WRONG_THREAD);
    }
    if session.origin != stream.handle {
        session.invalidate();
        return Err(Status::STREAM_CAPTURE_UNMATCHED);
    }
    let unjoined = is_unjoined(driver, stream, &capture);
    close(driver, session);
    let failure = if session.is_broken() {
        Status::STREAM_CAPTURE_INVALIDATED
    } else if unjoined {
        Status::STREAM_CAPTURE_UNJOINED
    } else {
        return Ok(session.graph.handle);
    };
    if !session.into {
        session.graph.destroy(driver);
    }
    Err(failure)
}

/// Ends the capture that began in a stream which goes away; nobody can have its graph any more.
pub(super) fn abandon(driver: &Driver, stream: &Stream) {
    let capture = lock(&stream.capture).take();
    let Some(capture) = capture else {
        return;
    };
    if capture.session.origin != stream.handle {
        // What it captured may be joined or not; nobody can tell any more.
        capture.session.invalidate();
        return;
    }
    close(driver, &capture.session);
    if !capture.session.into {
        capture.session.graph.destroy(driver);
    }
}

/// Takes every stream out of a capture, which is over.
fn close(driver: &Driver, session: &Session) {
    for other in driver.streams.all() {
        let mut theirs = lock(&other.capture);
        if theirs
            .as_ref()
            .is_some_and(|theirs| theirs.session.id == session.id)
        {
            *theirs = None;
        }
    }
    if lock(&SESSIONS).remove(&session.id).is_some() {
        COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether another stream's captured work does not lead to the origin's end.
fn is_unjoined(driver: &Driver, stream: &Stream, capture: &Capture) -> bool {
    let mut reached: BTreeSet<Handle> = BTreeSet::new();
    let mut open: Vec<Handle> = capture.frontier.iter().map(|edge| edge.0).collect();
    while let Some(node) = open.pop() {
        if reached.insert(node) {
            open.extend(capture.session.graph.dependencies(node));
        }
    }
    driver.streams.all().iter().any(|other| {
        if other.handle == stream.handle {
            return false;
        }
        let theirs = lock(&other.capture);
        theirs.as_ref().is_some_and(|theirs| {
            theirs.session.id == capture.session.id
                && theirs
                    .frontier
                    .iter()
                    .any(|edge| !reached.contains(&edge.0))
        })
    })
}

/// Adds a node for work that a capturing stream was given.
pub(super) fn add(driver: &Driver, stream: &Stream, work: Work) -> Answer<Handle> {
    let mut capture = lock(&stream.capture);
    let capture = capture.as_mut().ok_or(Status::ILLEGAL_STATE)?;
    if capture.session.is_broken() {
        return Err(Status::STREAM_CAPTURE_INVALIDATED);
    }
    let graph = &capture.session.graph;
    let node = graph.add(driver, work, &capture.frontier)?;
    capture.frontier = vec![(node, EdgeData::default())];
    Ok(node)
}

/// The place that a capturing stream is at.
pub(super) fn moment(stream: &Stream) -> Answer<Moment> {
    let capture = lock(&stream.capture);
    let capture = capture.as_ref().ok_or(Status::ILLEGAL_STATE)?;
    if capture.session.is_broken() {
        return Err(Status::STREAM_CAPTURE_INVALIDATED);
    }
    Ok(Moment {
        session: Arc::clone(&capture.session),
        frontier: capture.frontier.clone(),
    })
}

/// Makes a stream come after a place of a capture, which draws it in.
pub(super) fn join(stream: &Stream, moment: &Moment) -> Answer {
    if !lock(&SESSIONS).contains_key(&moment.session.id) {
        // What the event recorded is no longer captured by anybody.
        return Err(Status::CAPTURED_EVENT);
    }
    if stream.is_legacy() {
        moment.session.invalidate();
        return Err(Status::STREAM_CAPTURE_IMPLICIT);
    }
    let mut capture = lock(&stream.capture);
    match capture.as_mut() {
        None => {
            *capture = Some(Capture {
                session: Arc::clone(&moment.session),
                frontier: moment.frontier.clone(),
            });
        }
        Some(capture) if capture.session.id == moment.session.id => {
            if capture.session.is_broken() {
                return Err(Status::STREAM_CAPTURE_INVALIDATED);
            }
            for edge in &moment.frontier {
                if !capture.frontier.iter().any(|mine| mine.0 == edge.0) {
                    capture.frontier.push(*edge);
                }
            }
        }
        Some(capture) => {
            capture.session.invalidate();
            moment.session.invalidate();
            return Err(Status::STREAM_CAPTURE_MERGE);
        }
    }
    Ok(())
}
