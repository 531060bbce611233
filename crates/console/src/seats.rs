//! Seats for those who keep a stream open: so many in all, and so many for each caller, so that nobody keeps the others out.

use std::sync::Arc;

use parking_lot::Mutex;
use rialto_model::{
    call::{Caller, CallerId},
    failure::{Failure, Kind},
    ids::OrgId,
    maps::FastMap,
};

/// So many streams may be open at once.
const ALL: usize = 256;

/// So many of them may be one caller's.
const EACH: usize = 32;

/// Whose seat it is.
type Who = (OrgId, CallerId);

/// The seats. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    all: usize,
    each: FastMap<Who, usize>,
}

/// One that is taken, for as long as this is held.
pub(crate) struct Seat {
    seats: Seats,
    who: Who,
}

// === impl Seats ===

impl Seats {
    /// Takes one, if one is free for this caller.
    pub(crate) fn take(&self, caller: &Caller) -> Result<Seat, Failure> {
        let busy = |message: String| Err(Failure::new(Kind::Busy, message));
        let who = (caller.scope.org.clone(), caller.id.clone());
        let mut taken = self.0.lock();
        if taken.all >= ALL {
            return busy(format!("{ALL} streams are open already; try again later"));
        }
        if taken.each.get(&who).is_some_and(|own| *own >= EACH) {
            return busy(format!("{} has {EACH} streams open already; close one of them", caller.id));
        }
        taken.all += 1;
        *taken.each.entry(who.clone()).or_default() += 1;
        Ok(Seat { seats: self.clone(), who })
    }
}

// === impl Seat ===

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.0.lock();
        taken.all -= 1;
        if let Some(own) = taken.each.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                taken.each.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_keeps_the_others_out_and_a_seat_that_is_left_is_free() {
        let (seats, ann) = (Seats::default(), Caller::user("ann"));
        let mut own: Vec<Seat> = (0..EACH).map(|_| seats.take(&ann).unwrap()).collect();
        assert_eq!(seats.take(&ann).err().unwrap().kind, Kind::Busy);
        let bob = seats.take(&Caller::user("bob")).unwrap();
        own.pop();
        own.push(seats.take(&ann).unwrap());
        let others: Vec<Seat> =
            (0..ALL - EACH - 1).map(|n| seats.take(&Caller::user(format!("{n}"))).unwrap()).collect();
        assert_eq!(seats.take(&Caller::user("carl")).err().unwrap().kind, Kind::Busy);
        drop((own, bob, others));
        let taken = seats.0.lock();
        assert_eq!((taken.all, taken.each.len()), (0, 0));
    }
}
