//! How devices that run at the same time meet: each brings a value, all leave with all values.
//!
//! A meeting is of the devices of one group at one key; it is over when all have come. Somebody who
//! can never come is found without a clock: when every device that has not ended waits, nobody can
//! go on, and all are told who waits where. A device that fails wakes all that wait.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::collective::Topology;

/// The stack of a device's thread.
const STACK: usize = 32 << 20;

/// What pairs a collective across devices: a channel, or a place in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Whether the number is that of a channel.
    pub is_channel: bool,
    /// The number.
    pub number: i64,
}

/// One device's part in a meeting.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What the meeting is found by.
    pub key: Key,
    /// The instruction, for messages.
    pub place: &'a str,
    /// What is done with which sizes: all who meet must have the same.
    pub form: &'a str,
    /// Who meets, in the order of ranks.
    pub group: &'a [usize],
}

/// What a device does.
enum Doing {
    Running,
    /// Waits at this instruction for the rest of this group.
    Waiting(String, Vec<usize>),
    Ended,
}

/// A meeting that some have not come to.
struct Meeting<D> {
    form: String,
    place: String,
    given: BTreeMap<usize, D>,
}

struct State<D> {
    doing: Vec<Doing>,
    open: BTreeMap<(Key, Vec<usize>), Meeting<D>>,
    /// What meetings gave to those who have not picked it up yet.
    given: BTreeMap<usize, Arc<Vec<D>>>,
    /// Why nobody waits any more, and the device it is the fault of.
    stopped: Option<(Box<Diagnostic>, usize)>,
    /// Those who failed for that reason alone.
    woken: BTreeSet<usize>,
}

impl<D> State<D> {
    /// What a device is told when nobody waits any more.
    fn wake(&mut self, device: usize) -> Option<Box<Diagnostic>> {
        let (why, _) = self.stopped.as_ref()?;
        self.woken.insert(device);
        Some(why.clone())
    }
}

/// Where the devices of one run meet. `D` is what each brings.
pub struct Communicator<D> {
    topology: Topology,
    state: Mutex<State<D>>,
    changed: Condvar,
}

impl<D: Send + Sync> Communicator<D> {
    /// For these devices, all of which run.
    pub fn new(topology: Topology) -> Self {
        let running = (0..topology.devices()).map(|_| Doing::Running);
        Self {
            topology,
            state: Mutex::new(State {
                doing: running.collect(),
                open: BTreeMap::new(),
                given: BTreeMap::new(),
                stopped: None,
                woken: BTreeSet::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// The devices.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// Waits for the rest of the group. All leave with what `join` makes of what each brought, in the
    /// order of ranks; the last to come calls it.
    ///
    /// # Errors
    /// `XA8004` when somebody failed, cannot come any more, or comes to do something else; what `join`
    /// gives.
    pub fn meet(
        &self,
        device: usize,
        call: &Call<'_>,
        value: D,
        join: impl FnOnce(Vec<D>) -> Result<Vec<D>>,
    ) -> Result<Arc<Vec<D>>> {
        if call.group == [device] {
            return join(vec![value]).map(Arc::new);
        }
        let mut state = self.lock();
        if let Some(why) = state.wake(device) {
            return Err(why);
        }
        let key = (call.key, call.group.to_vec());
        let meeting = state.open.entry(key.clone()).or_insert_with(|| Meeting {
            form: call.form.to_owned(),
            place: call.place.to_owned(),
            given: BTreeMap::new(),
        });
        if meeting.form != call.form {
            let other = meeting.given.keys().next().copied().unwrap_or_default();
            let message = format!(
                "`{}` ({}) of {} meets `{}` ({}) of {}",
                call.place,
                call.form,
                self.topology.name_of(device),
                meeting.place,
                meeting.form,
                self.topology.name_of(other),
            );
            return Err(Diagnostic::error(codes::RUN, message));
        }
        meeting.given.insert(device, value);
        if meeting.given.len() == call.group.len() {
            let meeting = state.open.remove(&key);
            for &member in call.group {
                state.doing[member] = Doing::Running;
            }
            drop(state);
            let mut given = meeting.map(|m| m.given).unwrap_or_default();
            let ranked = call.group.iter().filter_map(|member| given.remove(member));
            let joined = Arc::new(join(ranked.collect())?);
            let mut state = self.lock();
            for &member in call.group.iter().filter(|&&member| member != device) {
                state.given.insert(member, Arc::clone(&joined));
            }
            self.changed.notify_all();
            return Ok(joined);
        }
        state.doing[device] = Doing::Waiting(call.place.to_owned(), call.group.to_vec());
        self.look_for_standstill(&mut state);
        loop {
            if let Some(given) = state.given.remove(&device) {
                return Ok(given);
            }
            if let Some(why) = state.wake(device) {
                return Err(why);
            }
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Runs all devices, each on a thread of its own, to their ends; gives what each made.
    ///
    /// # Errors
    /// The failure of the first device that failed by itself, with its number; `XA8004` when there can
    /// be no thread for one.
    pub fn run<T: Send>(&self, task: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        if self.topology == Topology::ONE {
            return task(0).map(|value| vec![value]);
        }
        let task = &task;
        let results: Vec<Result<T>> = std::thread::scope(|scope| {
            let threads = (0..self.topology.devices()).map(|device| {
                let builder = std::thread::Builder::new().name(format!("device-{device}"));
                let thread = builder.stack_size(STACK).spawn_scoped(scope, move || {
                    let mut end = End(self, device, None);
                    let result = task(device);
                    end.2 = Some(result.as_ref().err().cloned());
                    result
                });
                thread.map_err(|e| {
                    let message = format!("cannot start a thread for device {device}: {e}");
                    let error = Diagnostic::error(codes::RUN, message);
                    self.end(device, Some(error.clone()));
                    error
                })
            });
            let threads: Vec<_> = threads.collect();
            let results = threads.into_iter().map(|thread| {
                thread?.join().unwrap_or_else(|_| {
                    let message = "the thread of a device panicked";
                    Err(Diagnostic::internal(codes::INTERNAL, message))
                })
            });
            results.collect()
        });
        let mut state = self.lock();
        let mut made = Vec::with_capacity(results.len());
        for (device, result) in results.into_iter().enumerate() {
            match result {
                Ok(value) => made.push(value),
                Err(_) if state.woken.contains(&device) => {}
                Err(why) => return Err(why.note(format!("on {}", self.topology.name_of(device)))),
            }
        }
        match state.stopped.take() {
            Some((why, _)) => Err(why),
            None => Ok(made),
        }
    }

    /// A device has come to its end, or to this failure.
    fn end(&self, device: usize, failure: Option<Box<Diagnostic>>) {
        let mut state = self.lock();
        state.doing[device] = Doing::Ended;
        match failure {
            Some(failure) => self.stop(&mut state, failure, device),
            None => self.look_for_standstill(&mut state),
        }
    }

    /// When every device that has not ended waits, they wait for ever.
    fn look_for_standstill(&self, state: &mut State<D>) {
        let doing = state.doing.iter().enumerate();
        let mut waiting = doing.filter_map(|(device, doing)| match doing {
            Doing::Waiting(place, group) => Some((device, place, group)),
            Doing::Running | Doing::Ended => None,
        });
        let Some((first, place, group)) = waiting.next() else {
            return;
        };
        if state.doing.iter().any(|d| matches!(d, Doing::Running)) {
            return;
        }
        let absent = group.iter().find(|&&member| match &state.doing[member] {
            Doing::Waiting(at, with) => at != place || with != group,
            Doing::Running | Doing::Ended => true,
        });
        let mut message = format!(
            "nobody can go on: {} waits at `{place}`",
            self.topology.name_of(first)
        );
        if let Some(&absent) = absent {
            let name = self.topology.name_of(absent);
            message.push_str(&match &state.doing[absent] {
                Doing::Waiting(at, _) => format!(" for {name}, which waits at `{at}`"),
                Doing::Running | Doing::Ended => format!(" for {name}, which has ended"),
            });
        }
        let mut error = Diagnostic::error(codes::RUN, message)
            .help("all devices of a group must come to the same collectives in the same order");
        for (device, place, _) in waiting.take(7) {
            error = error.note(format!(
                "{} waits at `{place}`",
                self.topology.name_of(device)
            ));
        }
        self.stop(state, error, first);
    }

    fn stop(&self, state: &mut State<D>, why: Box<Diagnostic>, device: usize) {
        state.stopped.get_or_insert((why, device));
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Ends a device when its thread does, however that comes: with its failure or none, or by a panic.
struct End<'a, D: Send + Sync>(&'a Communicator<D>, usize, Option<Option<Box<Diagnostic>>>);

impl<D: Send + Sync> Drop for End<'_, D> {
    fn drop(&mut self) {
        let failure = self.2.take().unwrap_or_else(|| {
            let message = "the thread of a device panicked";
            Some(Diagnostic::internal(codes::INTERNAL, message))
        });
        self.0.end(self.1, failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(number: i64, place: &'a str, group: &'a [usize]) -> Call<'a> {
        Call {
            key: Key {
                is_channel: false,
                number,
            },
            place,
            form: "sum",
            group,
        }
    }

    fn topology(replicas: u32) -> Topology {
        Topology {
            replicas,
            partitions: 1,
        }
    }

    #[test]
    fn groups_meet_again_and_again_in_rank_order() {
        let devices = Communicator::new(topology(6));
        let out = devices.run(|device| {
            let group: &[usize] = if device % 2 == 0 {
                &[4, 0, 2]
            } else {
                &[1, 3, 5]
            };
            let mut seen = Vec::new();
            for round in 0..500 {
                let got = devices.meet(device, &call(0, "a", group), device * 1000 + round, Ok)?;
                seen.push(got.to_vec());
            }
            Ok(seen)
        });
        let out = out.unwrap();
        let wanted = |ranks: [usize; 3]| -> Vec<Vec<usize>> {
            let rounds = 0..500;
            rounds
                .map(|round| ranks.map(|d| d * 1000 + round).to_vec())
                .collect()
        };
        assert_eq!(out[0], wanted([4, 0, 2]));
        assert_eq!(out[2], wanted([4, 0, 2]));
        assert_eq!(out[3], wanted([1, 3, 5]));
    }

    #[test]
    fn the_last_to_come_joins_for_all() {
        let devices = Communicator::new(topology(4));
        let group = [0, 1, 2, 3];
        let sum = |values: Vec<usize>| Ok(vec![values.iter().sum()]);
        let out = devices.run(|d| devices.meet(d, &call(0, "a", &group), d, sum));
        assert!(out.unwrap().iter().all(|got| **got == [6]));
    }

    #[test]
    fn who_waits_for_whom_is_told() {
        let devices = Communicator::new(topology(3));
        let out = devices.run(|device| {
            if device != 1 {
                devices.meet(device, &call(7, "sum.1", &[0, 1, 2]), 0, Ok)?;
            }
            Ok(())
        });
        let message = out.unwrap_err().message;
        assert_eq!(
            message,
            "nobody can go on: device 0 (replica 0, partition 0) waits at `sum.1` for device 1 \
             (replica 1, partition 0), which has ended"
        );
        let devices = Communicator::new(topology(2));
        let out = devices.run(|device| {
            let place = if device == 0 { "a" } else { "b" };
            devices.meet(device, &call(device as i64, place, &[0, 1]), 0, Ok)
        });
        let error = out.unwrap_err();
        assert!(
            error.message.ends_with("which waits at `b`"),
            "{}",
            error.message
        );
        assert_eq!(
            error.notes[0],
            "device 1 (replica 1, partition 0) waits at `b`"
        );
    }

    #[test]
    fn failures_and_panics_wake_all() {
        let devices = Communicator::new(topology(3));
        let out = devices.run(|device| {
            if device == 2 {
                return Err(Diagnostic::error(codes::RUN, "no"));
            }
            devices
                .meet(device, &call(0, "a", &[0, 1, 2]), 0, Ok)
                .map(drop)
        });
        let error = out.unwrap_err();
        assert_eq!(error.message, "no");
        assert_eq!(error.notes, ["on device 2 (replica 2, partition 0)"]);
        let devices = Communicator::new(topology(2));
        let out = devices.run(|device| {
            assert!(device != 1);
            devices
                .meet(device, &call(0, "a", &[0, 1]), 0, Ok)
                .map(drop)
        });
        assert_eq!(out.unwrap_err().code, codes::INTERNAL);
    }

    #[test]
    fn different_calls_do_not_meet() {
        let devices = Communicator::new(topology(2));
        let out = devices.run(|device| {
            let mut call = call(0, "a", &[0, 1]);
            call.form = ["all-reduce", "all-gather"][device];
            devices.meet(device, &call, 0, Ok)
        });
        let message = out.unwrap_err().message;
        assert!(
            message.contains("all-gather") && message.contains(" meets "),
            "{message}"
        );
    }
}
