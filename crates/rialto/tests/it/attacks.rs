//! Every way in that an attacker is known to try, against the real program: each fails, and says so without telling more.
//!
//! What is asked for here reaches no agent, reads nobody's tasks and changes nothing; the tests look afterwards.

mod agents;
mod connections;
mod door;
mod inside;
mod orgs;
mod outward;
mod revoked;
mod shares;
mod signed;
mod wire;
