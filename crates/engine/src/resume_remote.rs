//! Going on with a task that went on without us: its agent waited for something that happened elsewhere, a login most often, and
//! did not wait for a message.

use rialto_model::{
    call::Caller,
    credential::Secret,
    failure::{Failure, FailureKind},
    ids::TaskId,
};

use tokio::time::Instant;

use crate::{
    budget::TaskBudget,
    call_handle::Running,
    call_run::{CallRun, RunParams},
    engine::{Engine, store_failure, verb_of},
    takeover::call_of,
    tasks::{gone, target_of},
};

// === impl Engine ===

impl Engine {
    /// Follows a caller's task at its agent, to its end or its next question, as if it had just been called.
    pub async fn rejoin(&self, caller: &Caller, id: &str) -> Result<Running, Failure> {
        self.sync().await?;
        let inner = self.inner();
        let mut task = self.own_task(caller, id).await?;
        let is_ours = inner.running.lock().contains_key(&task.head.id);
        if is_ours || task.head.state.is_terminal() || task.head.remote.task_id.is_none() {
            let message = format!("task {id} cannot be followed at its agent; get_task tells how it stands");
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let seat = inner.limits.admit(caller, inner.journal.now())?;
        let agent = self.agent_of(&task).ok_or_else(|| gone(id, &task))?;
        let wall_clock = inner.config.wall_clock(&caller.scope.org, &agent);
        let target = target_of(agent, &task);
        let events = self.ask_again(&task, caller, &target);
        let events = events.map_err(|denied| Failure::new(FailureKind::Denied, denied))?;
        let verb = verb_of(&call_of(&task, caller, &target), task.head.args.clone());
        let announcement = inner.journal.take_up(verb, target.cost());
        let caller = caller.clone();
        self.claim(&mut task).await?;
        let budget = TaskBudget::fresh(&inner.config);
        let leg = RunParams {
            caller,
            target,
            events,
            task,
            announcement,
            begun_at: Instant::now(),
            wall_clock,
            seat,
            budget,
        };
        Ok(Running::of(CallRun::begin(inner, leg), None))
    }

    /// Whether a task goes on in this process.
    pub fn works_on(&self, task: &TaskId) -> bool {
        self.inner().running.lock().contains_key(task)
    }

    /// Random bytes that every process of the same store is given alike, for ever, under the same name.
    pub async fn seed(&self, name: &str) -> Result<[u8; 32], Failure> {
        let fresh: [u8; 32] = rand::random();
        let text: String = fresh.iter().map(|byte| format!("{byte:02x}")).collect();
        let kept = self.inner().store.seed(name, &Secret::from(text)).await.map_err(store_failure)?;
        let broken =
            || Failure::new(FailureKind::Internal, format!("the seed \"{name}\" in the store is not one"));
        bytes(kept.expose()).ok_or_else(broken)
    }
}

fn bytes(digits: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != 32 || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0_u8; 32];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |letter: u8| char::from(letter).to_digit(16);
        *byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sixty_four_digits_are_a_seed() {
        assert_eq!(bytes(&"0f".repeat(32)), Some([15; 32]));
        for wrong in ["", "0f", &"0".repeat(63), &"zz".repeat(32), &"0f".repeat(33)] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
