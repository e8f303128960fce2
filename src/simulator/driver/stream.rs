//! Streams: work in order, run where it is submitted when it can, on a thread of the stream when
//! it must wait or may call back.
//!
//! A stream has a queue. Whoever submits to an idle stream runs the work itself; work that cannot
//! go on yet, or that runs a function of the program, is left to the stream's thread, and so is
//! everything after it. A program sees the order that the interface promises either way.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::time::Duration;
use std::time::Instant;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::STREAM_LEGACY;
use crate::simulator::driver::abi::STREAM_PER_THREAD;
use crate::simulator::driver::capture;
use crate::simulator::driver::capture::Capture;
use crate::simulator::driver::context;
use crate::simulator::driver::context::Context;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::in_callback;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::AttributeValue;
use crate::simulator::driver::work;
use crate::simulator::driver::work::Progress;
use crate::simulator::driver::work::Work;

/// The number of the highest priority.
pub(super) const GREATEST_PRIORITY: i32 = -5;

/// How long a stream's thread stays with nothing to do.
const IDLE: Duration = Duration::from_millis(500);

/// How long a stream's thread looks away from work that cannot go on.
const LOOK_AWAY: Duration = Duration::from_micros(50);

/// What a stream is to the others of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The default stream of all threads: waits for the others and they for it.
    Legacy,
    /// The default stream of one thread.
    PerThread,
    /// Made by the program, in step with the legacy one.
    Blocking,
    /// Made by the program, and on its own.
    NonBlocking,
}

/// A moment in a stream that others can wait for.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    reached: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Ticket {
    /// Says that the moment is now.
    pub(super) fn reach(&self) {
        lock(&self.reached).get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }
    /// When it was, if it is past.
    pub(super) fn time(&self) -> Option<Instant> {
        *lock(&self.reached)
    }
    /// Waits for it.
    pub(super) fn wait(&self) {
        let mut reached = lock(&self.reached);
        while reached.is_none() {
            reached = self
                .changed
                .wait(reached)
                .unwrap_or_else(|poison| poison.into_inner());
        }
    }
    /// Waits for it, but not for long.
    pub(super) fn wait_a_little(&self) -> bool {
        let reached = lock(&self.reached);
        if reached.is_some() {
            return true;
        }
        let waited = self.changed.wait_timeout(reached, Duration::from_millis(2));
        waited
            .map_or_else(|poison| poison.into_inner().0, |pair| pair.0)
            .is_some()
    }
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Work>,
    /// Whether somebody runs the jobs, or the stream's thread was asked to.
    running: bool,
    /// Whether the stream's thread is to take over.
    handed: bool,
    /// Whether the stream has a thread.
    thread: bool,
}

/// A stream.
pub(super) struct Stream {
    pub(super) handle: Handle,
    pub(super) id: u64,
    pub(super) context: Arc<Context>,
    pub(super) role: Role,
    pub(super) flags: u32,
    pub(super) priority: i32,
    pub(super) attributes: Mutex<BTreeMap<u32, AttributeValue>>,
    pub(super) capture: Mutex<Option<Capture>>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Stream {
    /// A stream of a context.
    pub(super) fn create(
        driver: &Driver,
        context: &Arc<Context>,
        role: Role,
        flags: u32,
        priority: i32,
    ) -> Arc<Self> {
        driver.streams.insert(|handle| Self {
            handle,
            id: driver.new_id(),
            context: Arc::clone(context),
            role,
            flags,
            priority: priority.clamp(GREATEST_PRIORITY, 0),
            attributes: Mutex::default(),
            capture: Mutex::new(None),
            queue: Mutex::default(),
            changed: Condvar::new(),
        })
    }
    /// Whether it is the default stream of all threads.
    pub(super) fn is_legacy(&self) -> bool {
        self.role == Role::Legacy
    }
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
    /// Whether it has work that is not done.
    pub(super) fn is_busy(&self) -> bool {
        let queue = self.queue();
        queue.running || !queue.jobs.is_empty()
    }
    /// Waits until all work so far is done.
    pub(super) fn wait(&self) {
        let mut queue = self.queue();
        while queue.running || !queue.jobs.is_empty() {
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(|poison| poison.into_inner());
        }
    }
    /// A ticket for the end of the work so far.
    pub(super) fn mark(self: &Arc<Self>, driver: &'static Driver) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::default());
        self.push(driver, Work::Signal(Arc::clone(&ticket)));
        ticket
    }
    /// Submits work, after what the default stream and the others owe each other.
    pub(super) fn submit(self: &Arc<Self>, driver: &'static Driver, work: Work) {
        match self.role {
            Role::NonBlocking => {}
            Role::Legacy => {
                for other in self.context.streams(driver) {
                    let in_step = matches!(other.role, Role::Blocking | Role::PerThread);
                    if in_step && other.is_busy() {
                        let ticket = other.mark(driver);
                        self.push(driver, Work::Await(ticket));
                    }
                }
            }
            Role::Blocking | Role::PerThread => {
                if let Ok(legacy) = self.context.legacy()
                    && legacy.is_busy()
                {
                    let ticket = legacy.mark(driver);
                    self.push(driver, Work::Await(ticket));
                }
            }
        }
        self.push(driver, work);
    }
    fn push(self: &Arc<Self>, driver: &'static Driver, work: Work) {
        let mut queue = self.queue();
        queue.jobs.push_back(work);
        if queue.running {
            return;
        }
        queue.running = true;
        if driver.settings.eager {
            drop(queue);
            self.run_here(driver);
        } else {
            self.hand_over(queue, driver);
        }
    }
    /// Runs what is in the queue, up to the first work that is not for this thread.
    fn run_here(self: &Arc<Self>, driver: &'static Driver) {
        loop {
            let mut queue = self.queue();
            let Some(job) = queue.jobs.pop_front() else {
                self.rest(queue);
                return;
            };
            if !job.may_run_here() {
                queue.jobs.push_front(job);
                self.hand_over(queue, driver);
                return;
            }
            drop(queue);
            if work::step(driver, self, &job) == Progress::Blocked {
                let mut queue = self.queue();
                queue.jobs.push_front(job);
                self.hand_over(queue, driver);
                return;
            }
        }
    }
    fn rest(&self, mut queue: MutexGuard<'_, Queue>) {
        queue.running = false;
        drop(queue);
        self.changed.notify_all();
    }
    fn hand_over(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>, driver: &'static Driver) {
        queue.handed = true;
        let start = !std::mem::replace(&mut queue.thread, true);
        drop(queue);
        self.changed.notify_all();
        if start {
            let stream = Arc::clone(self);
            std::thread::spawn(move || stream.serve(driver));
        }
    }
    /// What the stream's thread does.
    fn serve(self: &Arc<Self>, driver: &'static Driver) {
        loop {
            let mut queue = self.queue();
            let since = Instant::now();
            while !queue.handed {
                if since.elapsed() >= IDLE {
                    queue.thread = false;
                    return;
                }
                queue = match self.changed.wait_timeout(queue, IDLE) {
                    Ok((queue, _)) => queue,
                    Err(poison) => poison.into_inner().0,
                };
            }
            queue.handed = false;
            drop(queue);
            self.run_there(driver);
        }
    }
    fn run_there(&self, driver: &'static Driver) {
        loop {
            let mut queue = self.queue();
            let Some(job) = queue.jobs.pop_front() else {
                self.rest(queue);
                return;
            };
            drop(queue);
            while work::step(driver, self, &job) == Progress::Blocked {
                if let Work::Await(ticket) = &job {
                    ticket.wait_a_little();
                } else {
                    std::thread::sleep(LOOK_AWAY);
                }
            }
        }
    }
}

/// The stream of a handle.
pub(super) fn resolve(handle: Handle) -> Answer<Arc<Stream>> {
    let driver = driver()?;
    match handle {
        0 | STREAM_LEGACY => context::current()?.legacy(),
        STREAM_PER_THREAD => Ok(context::current()?.own(driver)),
        _ => {
            if in_callback() {
                return Err(Status::NOT_PERMITTED);
            }
            let stream = driver.streams.get(handle)?;
            if !stream.context.is_alive() {
                return Err(Status::CONTEXT_IS_DESTROYED);
            }
            stream.context.health()?;
            Ok(stream)
        }
    }
}

/// Gives work to a stream, or to the graph that it captures into.
pub(super) fn issue(stream: &Arc<Stream>, work: Work) -> Answer {
    let driver = driver()?;
    if capture::is_capturing(stream) {
        return capture::add(driver, stream, work).map(|_| ());
    }
    if stream.is_legacy() {
        capture::refuse_implicit(driver, &stream.context)?;
    }
    stream.submit(driver, work);
    Ok(())
}

/// Gives work to a stream and waits for it, as the calls without `Async` do.
pub(super) fn issue_and_wait(stream: &Arc<Stream>, work: Work) -> Answer {
    let driver = driver()?;
    if capture::is_capturing(stream) {
        capture::invalidate(stream);
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    capture::refuse_unsafe()?;
    if stream.is_legacy() {
        capture::refuse_implicit(driver, &stream.context)?;
    }
    stream.submit(driver, work);
    stream.wait();
    stream.context.health()
}

/// Waiting for a whole context is not possible while one of its streams captures.
pub(super) fn refuse_while_capturing(context: &Context) -> Answer {
    let driver = driver()?;
    for stream in context.streams(driver) {
        if capture::is_capturing(&stream) {
            capture::invalidate(&stream);
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    Ok(())
}
