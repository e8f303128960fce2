//! A fork-join pool: one job at a time, its tasks numbered, the caller taking part.
//!
//! One word says whether a job is open, which one, and how many workers are in it. A worker joins an
//! open job by counting itself in; the caller closes the job when the tasks have run out and waits
//! for those inside. A worker that wakes late finds the job closed, so nobody ever waits for a
//! sleeper. Idle workers watch the word for a short time and then sleep. Workers run with denormals
//! off and 8 MiB of stack, as XLA's do.
#![allow(unsafe_code, reason = "hands a borrowed closure to other threads")]

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::runtime::cpu::float_env::DenormalsAreZero;

/// How often an idle worker looks for a job before it sleeps: some tens of microseconds.
const LOOKS_BEFORE_SLEEP: u32 = 4000;

const WORKER_STACK: usize = 8 << 20;

/// Low bits of the state word: workers inside. Then one bit: open. The rest: number of the job.
const INSIDE: u64 = (1 << 16) - 1;
const OPEN: u64 = 1 << 16;
const JOB: u64 = 1 << 17;

/// The most threads a pool may have.
pub const MAX_THREADS: usize = 4096;

/// A borrowed closure without its lifetime.
#[derive(Clone, Copy)]
struct Job {
    run: unsafe fn(*const (), u64),
    closure: *const (),
    tasks: u64,
    chunk: u64,
}

struct Shared {
    state: AtomicU64,
    job: AtomicPtr<Job>,
    next: AtomicU64,
    panicked: AtomicBool,
    stop: AtomicBool,
    sleepers: AtomicUsize,
    bell: Mutex<()>,
    wake: Condvar,
}

/// Worker threads, joined when dropped.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// The process that has the workers: a child of it has none, and does all work on its own thread.
    process: u32,
    /// Held while a job runs.
    busy: Mutex<()>,
}

impl Pool {
    /// A pool in which `threads` threads work, the caller's among them.
    ///
    /// # Errors
    /// `XA8004` when the system refuses a thread.
    pub fn new(threads: usize) -> Result<Self> {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            next: AtomicU64::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            bell: Mutex::new(()),
            wake: Condvar::new(),
        });
        let mut pool = Self {
            shared,
            workers: Vec::new(),
            process: std::process::id(),
            busy: Mutex::new(()),
        };
        for i in 1..threads.clamp(1, MAX_THREADS) {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new()
                .name(format!("xla-worker-{i}"))
                .stack_size(WORKER_STACK)
                .spawn(move || work(&shared));
            pool.workers.push(worker.map_err(|e| {
                Diagnostic::error(codes::RUN, format!("cannot start worker thread {i}: {e}"))
            })?);
        }
        Ok(pool)
    }

    /// Threads that work on a job, the caller's among them.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task` with each number below `tasks`, in any order, on any thread, and returns when
    /// all calls have returned. A job within a job runs on its own thread alone.
    ///
    /// # Errors
    /// `XA9001` when a task panicked.
    pub fn run(&self, tasks: u64, task: &(impl Fn(u64) + Sync)) -> Result<()> {
        let free = if tasks > 1 && !self.workers.is_empty() {
            self.busy.try_lock().ok()
        } else {
            None
        };
        if free.is_none() {
            (0..tasks).for_each(task);
            return Ok(());
        }
        let mut job = describe(tasks, task, self.threads());
        self.open(&mut job);
        let caller = catch_unwind(AssertUnwindSafe(|| take_tasks(&self.shared, &job)));
        self.close();
        let panicked = self.shared.panicked.swap(false, Ordering::Relaxed);
        if caller.is_err() || panicked {
            return Err(Diagnostic::internal(codes::INTERNAL, "a worker panicked"));
        }
        Ok(())
    }

    fn open(&self, job: &mut Job) {
        let shared = &self.shared;
        shared.next.store(0, Ordering::Relaxed);
        shared.job.store(job, Ordering::Relaxed);
        let before = shared.state.load(Ordering::Relaxed);
        let opened = (before & !INSIDE & !OPEN).wrapping_add(JOB) | OPEN;
        shared.state.store(opened, Ordering::SeqCst);
        let helpers = usize::try_from(job.tasks - 1).unwrap_or(usize::MAX);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            let _bell = shared.bell.lock().unwrap_or_else(|e| e.into_inner());
            if helpers >= self.workers.len() {
                shared.wake.notify_all();
            } else {
                (0..helpers).for_each(|_| shared.wake.notify_one());
            }
        }
    }

    /// Lets no worker in any more and waits for those inside.
    fn close(&self) {
        let state = &self.shared.state;
        state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut looks = 0u32;
        while state.load(Ordering::Acquire) & INSIDE != 0 {
            looks += 1;
            if looks < LOOKS_BEFORE_SLEEP {
                std::hint::spin_loop();
            } else {
                // The worker may have lost its processor to another program.
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Nobody is there to be waited for, nor a thread that could be let go.
            self.workers.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.stop.store(true, Ordering::SeqCst);
        {
            let _bell = self.shared.bell.lock().unwrap_or_else(|e| e.into_inner());
            self.shared.wake.notify_all();
        }
        for worker in self.workers.drain(..) {
            // Workers catch every panic, and there is nothing to tell of one at this point.
            let _ = worker.join();
        }
    }
}

fn describe<F: Fn(u64) + Sync>(tasks: u64, task: &F, threads: usize) -> Job {
    unsafe fn run<F: Fn(u64)>(closure: *const (), number: u64) {
        // SAFETY: `closure` is the `&F` that `describe` took; `Pool::run` keeps it borrowed until
        // no thread is inside the job.
        let task = unsafe { &*closure.cast::<F>() };
        task(number);
    }
    Job {
        run: run::<F>,
        closure: std::ptr::from_ref(task).cast(),
        tasks,
        chunk: (tasks / (threads as u64 * 16)).max(1),
    }
}

fn take_tasks(shared: &Shared, job: &Job) {
    loop {
        let first = shared.next.fetch_add(job.chunk, Ordering::Relaxed);
        if first >= job.tasks {
            return;
        }
        for number in first..(first + job.chunk).min(job.tasks) {
            // SAFETY: the job is open or closing with this thread inside, so the closure lives, and
            // it is `Sync`.
            unsafe { (job.run)(job.closure, number) };
        }
    }
}

/// Counts this thread into the open job it has not seen yet; gives the job's number.
fn join(shared: &Shared, seen: u64) -> Option<u64> {
    let mut state = shared.state.load(Ordering::Acquire);
    loop {
        let number = state / JOB;
        if state & OPEN == 0 || number == seen {
            return None;
        }
        let entered = shared.state.compare_exchange_weak(
            state,
            state + 1,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match entered {
            Ok(_) => return Some(number),
            Err(now) => state = now,
        }
    }
}

fn work(shared: &Shared) {
    let _environment = DenormalsAreZero::set();
    let mut seen = 0;
    let mut looks = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        if let Some(number) = join(shared, seen) {
            seen = number;
            looks = 0;
            // SAFETY: this thread is counted in, so the caller waits and the job lives; the store of
            // the pointer happened before the job was opened.
            let job = unsafe { *shared.job.load(Ordering::Relaxed) };
            if catch_unwind(AssertUnwindSafe(|| take_tasks(shared, &job))).is_err() {
                shared.panicked.store(true, Ordering::Relaxed);
            }
            shared.state.fetch_sub(1, Ordering::AcqRel);
        } else if looks < LOOKS_BEFORE_SLEEP {
            looks += 1;
            std::hint::spin_loop();
        } else {
            sleep(shared, seen);
            looks = 0;
        }
    }
}

/// Sleeps until the bell rings, unless there is a new job already.
fn sleep(shared: &Shared, seen: u64) {
    let bell = shared.bell.lock().unwrap_or_else(|e| e.into_inner());
    shared.sleepers.fetch_add(1, Ordering::SeqCst);
    let state = shared.state.load(Ordering::SeqCst);
    let is_new = state & OPEN != 0 && state / JOB != seen;
    if !is_new && !shared.stop.load(Ordering::SeqCst) {
        drop(shared.wake.wait(bell));
    }
    shared.sleepers.fetch_sub(1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads).unwrap();
            assert_eq!(pool.threads(), threads);
            for tasks in [0u64, 1, 2, 3, 7, 100, 5000] {
                let counts: Vec<AtomicU64> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
                pool.run(tasks, &|i| {
                    counts[i as usize].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn many_short_jobs_and_sleeping_workers() {
        let pool = Pool::new(4).unwrap();
        let sum = AtomicU64::new(0);
        for round in 0..20_000u64 {
            pool.run(4, &|i| {
                sum.fetch_add(i, Ordering::Relaxed);
            })
            .unwrap();
            if round % 5000 == 0 {
                // Long enough for the workers to have gone to sleep.
                (0..LOOKS_BEFORE_SLEEP * 50).for_each(|_| std::hint::spin_loop());
            }
        }
        assert_eq!(sum.into_inner(), 20_000 * 6);
    }

    #[test]
    fn a_panic_becomes_a_diagnostic_and_the_pool_lives_on() {
        let pool = Pool::new(3).unwrap();
        let broken = pool.run(64, &|i| assert!(i != 40));
        assert_eq!(broken.unwrap_err().code, codes::INTERNAL);
        assert!(pool.run(64, &|_| {}).is_ok());
    }

    #[test]
    fn a_job_within_a_job_runs() {
        let pool = Pool::new(2).unwrap();
        let count = AtomicU64::new(0);
        pool.run(8, &|_| {
            pool.run(8, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        })
        .unwrap();
        assert_eq!(count.into_inner(), 64);
    }
}
