//! Callback addresses: how a service tells the result of a call later (rule 38).
//!
//! The address of a call ends in a token. It names the order, the step and the direction, and is signed. So nothing is
//! stored for a call, and a token cannot be made without the key.
//!
//! A provider's webhook (rule 41) tells a result in the same way. The token for it also names the agent of the webhook.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Sha256;

use crate::id::OrderId;
use crate::limits::{ELEMENT_CHARS_MAX, NAME_CHARS_MAX, SETTLES_WITHIN_MS_MAX, STEP_CHARS_MAX};
use crate::machine::Dropped;
use crate::message::{Outcome, Reply};
use crate::task::{Direction, Task};
use crate::time::Timestamp;

/// What every signature begins with, so that a key never signs the same bytes for another purpose.
const PURPOSE: &[u8] = b"stepwarden callback";
const ID_BYTES: usize = 16;
const MAC_BYTES: usize = 32;
/// The time after which a new key signs, in milliseconds: each instance has read it by then.
const SIGNS_AFTER_MS: u64 = 60_000;
/// Key, order and direction.
const HEAD_BYTES: usize = 1 + ID_BYTES + 1;
/// The direction, with this added, says that the name of an agent stands before that of the step.
const OF_WEBHOOK: u8 = 2;
/// The longest token, in characters: with an agent, whose length is one byte. A character of a name has at most four.
const TOKEN_CHARS_MAX: usize =
    (HEAD_BYTES + 1 + 2 * 4 * NAME_CHARS_MAX + 1 + ELEMENT_CHARS_MAX + MAC_BYTES).div_ceil(3) * 4;

/// The call whose result is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// The order of the step.
    pub order_id: OrderId,
    /// The step's name.
    pub step: Arc<str>,
    /// Carry out, or undo.
    pub direction: Direction,
    /// The agent whose webhook tells it, for a step of this agent alone (rule 41). `None`: the holder of the address.
    pub agent: Option<Arc<str>>,
}

/// Why a result changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The scheduler would drop it.
    #[error(transparent)]
    Dropped(#[from] Dropped),
    /// It comes from the webhook of an agent, and another agent carries out the step.
    #[error("the step belongs to another agent")]
    OtherAgent,
}

/// A key that signs tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CallbackKey {
    /// Its number, which is part of each of its tokens.
    pub id: u8,
    /// Whoever knows it can make tokens.
    pub secret: Secret,
    /// It signs from then on: until then, an instance may not have read it. The first one always does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Its tokens count until then. `None`: no newer key was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// 256 secret bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl CallbackKey {
    /// The first key of a system, made of unpredictable bits.
    #[must_use]
    pub fn first(random: [u64; 4]) -> Self {
        let mut secret = [0; 32];
        for (bytes, bits) in secret.chunks_exact_mut(8).zip(random) {
            bytes.copy_from_slice(&bits.to_be_bytes());
        }
        Self { id: 1, secret: Secret(secret), from: None, until: None }
    }

    /// These keys and a new one, made of unpredictable bits. The tokens of the earlier ones count for `ms` more.
    #[must_use]
    pub fn renewed(keys: &[Self], random: [u64; 4], now: Timestamp, ms: u64) -> Vec<Self> {
        let Some(last) = keys.last() else { return vec![Self::first(random)] };
        let id = last.id.checked_add(1).unwrap_or(1);
        // With a whole minute none, the new one signs at once.
        let from = Some(now.plus_ms(SIGNS_AFTER_MS.min(ms)));
        let until = Some(now.plus_ms(ms));
        let kept = keys.iter().filter(|key| key.id != id && key.counts(now)).cloned();
        let kept = kept.map(|key| Self { until: key.until.or(until).min(until), ..key });
        kept.chain([Self { id, from, ..Self::first(random) }]).collect()
    }

    /// The key that signs now.
    #[must_use]
    pub fn signing(keys: &[Self], now: Timestamp) -> Option<&Self> {
        keys.iter().rfind(|key| key.from.is_none_or(|from| from <= now)).or(keys.last())
    }

    /// Whether its tokens count.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// The token of a call: the last segment of its address.
    #[must_use]
    pub fn token(&self, awaited: &Awaited) -> String {
        let mut bytes = Vec::with_capacity(TOKEN_CHARS_MAX);
        bytes.push(self.id);
        bytes.extend(awaited.order_id.as_bytes());
        let direction = match awaited.direction {
            Direction::Forward => 0,
            Direction::Undo => 1,
        };
        match &awaited.agent {
            None => bytes.push(direction),
            Some(agent) => {
                // A name of an agent has at most 64 characters, each of one byte.
                bytes.extend([direction + OF_WEBHOOK, u8::try_from(agent.len()).unwrap_or(u8::MAX)]);
                bytes.extend(agent.as_bytes());
            }
        }
        bytes.extend(awaited.step.as_bytes());
        let signature = self.signer(&bytes).finalize().into_bytes();
        bytes.extend(signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn signer(&self, signed: &[u8]) -> Hmac<Sha256> {
        let signer = Hmac::<Sha256>::new_from_slice(&self.secret.0).expect("a key may have any length");
        signer.chain_update(PURPOSE).chain_update(signed)
    }
}

/// The call of a token that one of these keys signed. Any other text is none.
#[must_use]
pub fn read<'a>(keys: impl IntoIterator<Item = &'a CallbackKey>, token: &str) -> Option<Awaited> {
    if token.len() > TOKEN_CHARS_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (signed, signature) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
    let (&id, rest) = signed.split_first()?;
    let key = keys.into_iter().find(|key| key.id == id)?;
    key.signer(signed).verify_slice(signature).ok()?;
    let (order_id, rest) = rest.split_first_chunk::<ID_BYTES>()?;
    let (&direction, step) = rest.split_first()?;
    if direction >= 2 * OF_WEBHOOK {
        return None;
    }
    let (agent, step) = match direction.checked_sub(OF_WEBHOOK) {
        None => (None, step),
        Some(_) => {
            let (&len, names) = step.split_first()?;
            let (agent, step) = names.split_at_checked(len.into())?;
            (Some(std::str::from_utf8(agent).ok()?.into()), step)
        }
    };
    let direction = match direction % OF_WEBHOOK {
        0 => Direction::Forward,
        _ => Direction::Undo,
    };
    let step = std::str::from_utf8(step).ok()?.into();
    Some(Awaited { order_id: OrderId::from_bytes(*order_id), step, direction, agent })
}

impl Awaited {
    /// The call with this idempotency key, for the webhook of an agent. Any other text is no key of ours.
    #[must_use]
    pub fn of_key(key: &str, agent: &Arc<str>) -> Option<Self> {
        let (order_id, rest) = key.split_once('/')?;
        let (step, direction) = match rest.strip_suffix("/undo") {
            Some(step) => (step, Direction::Undo),
            None => (rest, Direction::Forward),
        };
        let is_step = !step.is_empty() && step.chars().nth(STEP_CHARS_MAX).is_none();
        let order_id = order_id.parse().ok().filter(|_| is_step)?;
        Some(Self { order_id, step: step.into(), direction, agent: Some(agent.clone()) })
    }

    /// The reply to the present attempt of the step, and why it does not count if it contradicts what is known: the
    /// scheduler then tells a person (rule 5).
    ///
    /// # Errors
    /// [`NotTaken`] if it would change nothing, for example as the scheduler would drop it.
    pub fn reply(self, task: &Task, outcome: Outcome) -> Result<(Reply, Option<Dropped>), NotTaken> {
        let Self { order_id, step: name, direction, agent } = self;
        let (_, step) = task.step(&name).ok_or(Dropped::UnknownStep)?;
        if agent.is_some_and(|agent| agent != step.agent) {
            return Err(NotTaken::OtherAgent);
        }
        // The result may come before the answer to the call, which is then still under way (rule 16).
        let in_flight = step.complete_by.filter(|_| !step.is_awaited());
        let may_run_until = in_flight.map(|at| at.plus_ms(SETTLES_WITHIN_MS_MAX));
        let (attempt, hops, call_ms) = (step.attempt, 0, None);
        let is_done = matches!(outcome, Outcome::Done(_));
        let reply = Reply { order_id, step: name, direction, attempt, outcome, hops, may_run_until, call_ms };
        match reply.counts_for(task) {
            Ok(_) => Ok((reply, None)),
            // The undo, which waits for calls of this step, gets the output. How long it waits stays as it is.
            Err(Dropped::OtherDirection) if step.waits_for_calls() && step.output.is_none() && is_done => {
                Ok((Reply { may_run_until: step.may_run_until, ..reply }, None))
            }
            Err(dropped) if reply.contradiction(task).is_some() => Ok((reply, Some(dropped))),
            Err(dropped) => Err(dropped.into()),
        }
    }
}

/// Never shown.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = URL_SAFE_NO_PAD.decode(&*text).map_err(de::Error::custom)?;
        bytes.try_into().map(Self).map_err(|_| de::Error::custom("a key has 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> CallbackKey {
        CallbackKey::first([1, 2, 3, 4])
    }

    fn awaited(step: &str, direction: Direction) -> Awaited {
        Awaited { order_id: OrderId::from_idempotency_key("shop", "k1"), step: step.into(), direction, agent: None }
    }

    fn of_webhook(agent: &str, step: &str, direction: Direction) -> Awaited {
        Awaited { agent: Some(agent.into()), ..awaited(step, direction) }
    }

    #[test]
    fn rule_38_a_token_names_its_call_and_is_safe_in_a_path() {
        let longest = format!("{}/{}", "é".repeat(NAME_CHARS_MAX), "x".repeat(ELEMENT_CHARS_MAX));
        for step in ["charge-payment", "", &longest] {
            for direction in [Direction::Forward, Direction::Undo] {
                let token = key().token(&awaited(step, direction));
                assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{token}");
                assert_eq!(read(&[key()], &token), Some(awaited(step, direction)));
            }
        }
    }

    #[test]
    fn rule_38_a_token_of_an_earlier_version_is_good_still() {
        let token = "AQGT4KAAAHAAgAAAAAAAAAEAY2hhcmdlLXBheW1lbnTaibi68BlchAdWKmDiQhH4BCAiKxqvO849wt70vFXPiQ";
        let order_id = "0193e0a0-0000-7000-8000-000000000001".parse().unwrap();
        let stored = Awaited { order_id, ..awaited("charge-payment", Direction::Forward) };
        assert_eq!(key().token(&stored), token);
        assert_eq!(read(&[key()], token), Some(stored));
    }

    #[test]
    fn rule_41_a_token_of_a_webhook_names_its_agent_as_well() {
        let longest = ("a".repeat(NAME_CHARS_MAX), "é".repeat(NAME_CHARS_MAX));
        for (agent, step) in [("bank", "pay"), ("b", ""), (&*longest.0, &*longest.1)] {
            for direction in [Direction::Forward, Direction::Undo] {
                let of_webhook = of_webhook(agent, step, direction);
                assert_eq!(read(&[key()], &key().token(&of_webhook)), Some(of_webhook));
            }
        }
        // Where one name ends and the next begins is signed too.
        let (one, other) =
            (of_webhook("bank", "pay", Direction::Forward), of_webhook("ban", "kpay", Direction::Forward));
        assert_ne!(key().token(&one), key().token(&other));
    }

    #[test]
    fn rule_41_a_key_of_a_call_names_it_and_any_other_text_does_not() {
        let id = OrderId::from_idempotency_key("shop", "k1");
        let bank: Arc<str> = "bank".into();
        for (step, direction) in [
            ("pay", Direction::Forward),
            ("pay", Direction::Undo),
            ("undo", Direction::Forward),
            ("undo", Direction::Undo),
        ] {
            let key = crate::message::idempotency_key(id, step, direction);
            let upper = key.replace(&id.to_string(), &id.to_string().to_uppercase());
            for key in [&*key, &*upper] {
                assert_eq!(Awaited::of_key(key, &bank), Some(of_webhook("bank", step, direction)), "{key}");
            }
        }
        let long = format!("{id}/{}", "x".repeat(STEP_CHARS_MAX + 1));
        for text in ["", "pay", "/pay", "1/pay", &*id.to_string(), &format!("{id}/"), &format!("{id}//undo"), &long] {
            assert_eq!(Awaited::of_key(text, &bank), None, "{text}");
        }
    }

    #[test]
    fn rule_38_an_altered_token_is_none_wherever_it_is_altered() {
        for agent in [None, Some("bank")] {
            altered(&Awaited { agent: agent.map(Arc::from), ..awaited("charge-payment", Direction::Forward) });
        }
    }

    fn altered(awaited: &Awaited) {
        let token = key().token(awaited);
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut forged = bytes.clone();
                forged[at] ^= 1 << bit;
                assert_eq!(read(&[key()], &URL_SAFE_NO_PAD.encode(forged)), None, "byte {at}, bit {bit}");
            }
            assert_eq!(read(&[key()], &URL_SAFE_NO_PAD.encode(&bytes[..at])), None, "cut off at {at}");
        }
        for other in ["", "%", &format!("{token}A"), &format!("{token}="), &"A".repeat(100_000)] {
            assert_eq!(read(&[key()], other), None);
        }
    }

    #[test]
    fn rule_38_a_key_reads_its_own_tokens_alone_and_an_older_one_is_good_still() {
        let newer = CallbackKey { id: 2, ..CallbackKey::first([5, 6, 7, 8]) };
        let forged = CallbackKey::first([1, 2, 3, 5]).token(&awaited("a", Direction::Forward));
        let keys = [key(), newer.clone()];
        assert_eq!(read(&keys, &forged), None, "the number of the key is not enough");
        for key in [key(), newer] {
            assert!(read(&keys, &key.token(&awaited("a", Direction::Forward))).is_some());
        }
        assert_eq!(read(&[], &key().token(&awaited("a", Direction::Forward))), None);
    }

    #[test]
    fn rule_38_a_new_key_signs_after_a_minute_and_those_before_it_count_for_a_while() {
        let at = |ms: u64| Timestamp::from_epoch_ms(1_000_000).plus_ms(ms);
        let (week, hour) = (7 * 86_400_000, 3_600_000);
        let signs = |keys: &[CallbackKey], ms| CallbackKey::signing(keys, at(ms)).map(|key| key.id);
        let count = |keys: &[CallbackKey], ms| keys.iter().filter(|key| key.counts(at(ms))).map(|key| key.id).collect();
        let ids = |ids: &[u8]| ids.to_vec();
        assert_eq!(CallbackKey::renewed(&[], [1, 2, 3, 4], at(0), week), [key()]);
        let two = CallbackKey::renewed(&[key()], [5, 6, 7, 8], at(0), week);
        assert_eq!((signs(&two, 59_999), signs(&two, 60_000)), (Some(1), Some(2)));
        assert_eq!((count(&two, week - 1), count(&two, week)), (ids(&[1, 2]), ids(&[2])));
        // A key that leaked ends at once: the next one signs at once.
        let none = CallbackKey::renewed(&two, [9; 4], at(hour), 0);
        assert_eq!((signs(&none, hour), count(&none, hour)), (Some(3), ids(&[3])));
        // No later renewal makes the time of an earlier key longer.
        let three = CallbackKey::renewed(&two, [9; 4], at(hour), week);
        assert_eq!((count(&three, week - 1), count(&three, week)), (ids(&[1, 2, 3]), ids(&[2, 3])));
        let text = serde_json::to_string(&three).unwrap();
        assert_eq!(serde_json::from_str::<Vec<CallbackKey>>(&text).unwrap(), three);
    }

    #[test]
    fn a_key_is_stored_as_it_is_and_never_shown() {
        let text = serde_json::to_string(&key()).unwrap();
        assert_eq!(text, r#"{"Id":1,"Secret":"AAAAAAAAAAEAAAAAAAAAAgAAAAAAAAADAAAAAAAAAAQ"}"#);
        assert_eq!(serde_json::from_str::<CallbackKey>(&text).unwrap(), key());
        assert!(serde_json::from_str::<CallbackKey>(r#"{"Id":1,"Secret":"AAAA"}"#).is_err());
        assert_eq!(format!("{:?}", key()), "CallbackKey { id: 1, secret: Secret, from: None, until: None }");
    }
}
