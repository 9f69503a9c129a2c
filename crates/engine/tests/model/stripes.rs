//! Ordered lockers that also try more stripes out of order: nobody waits in a circle, and whoever
//! holds a stripe is alone there.

use shuttle::sync::Arc;
use shuttle::thread;
use structure::stripes::{Guard, StripeSet, Stripes};

use crate::lock::ModelLock;
use crate::{below, check};

const STRIPES: usize = 4;
const THREADS: usize = 3;
const ROUNDS: usize = 3;

/// Who is in a stripe, and how often somebody was.
#[derive(Default)]
struct Room {
    owner: Option<usize>,
    visits: usize,
}

fn some() -> StripeSet {
    let mut set = StripeSet::one(below(STRIPES));
    for index in 0..STRIPES {
        if below(2) == 0 {
            set.add(index);
        }
    }
    set
}

/// Enters all rooms of the guard, lets others run, and leaves.
fn visit(thread: usize, guard: &mut Guard<'_, Room, ModelLock>) -> usize {
    let rooms: Vec<_> = guard.set().iter().collect();
    let mut held = guard.held();
    for &room in &rooms {
        let before = held.get_mut(room).owner.replace(thread);
        assert_eq!(before, None, "room {room} is taken");
    }
    thread::yield_now();
    for &room in &rooms {
        let room = held.get_mut(room);
        assert_eq!(room.owner.take(), Some(thread), "somebody else came in");
        room.visits += 1;
    }
    rooms.len()
}

#[test]
fn ordered_lockers_that_back_off_never_wait_in_a_circle_and_exclude_each_other() {
    check(1000, || {
        let stripes: Arc<Stripes<Room, ModelLock>> =
            Arc::new(Stripes::new(STRIPES, |_| Room::default()));
        let lockers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let stripes = stripes.clone();
                thread::spawn(move || {
                    let mut visits = 0;
                    for _ in 0..ROUNDS {
                        let (set, more) = (some(), some());
                        let mut guard = stripes.acquire(set.clone());
                        if below(2) == 0 {
                            visits += visit(thread, &mut guard);
                        }
                        if !guard.try_add(&more) {
                            assert_eq!(*guard.set(), set, "all or none");
                            drop(guard);
                            let mut all = set;
                            all.add_all(&more);
                            guard = stripes.acquire(all);
                        }
                        assert!(guard.set().has_all(&more));
                        visits += visit(thread, &mut guard);
                        drop(guard);
                        stripes.peek(below(STRIPES), |room| assert_eq!(room.owner, None));
                    }
                    visits
                })
            })
            .collect();
        let visits: usize = lockers
            .into_iter()
            .map(|locker| locker.join().expect("it ends"))
            .sum();
        let mut guard = stripes.acquire(stripes.all());
        let held = guard.held();
        let counted: usize = (0..STRIPES).map(|index| held.get(index).visits).sum();
        assert_eq!(counted, visits, "a visit is lost");
    });
}
