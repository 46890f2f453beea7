//! The handlers that ship in a world full of faults, deterministic for each seed.
//!
//! A world is one thread, one random stream and one virtual clock. The five handlers run on simulated ports ([`ports`]).
//! Each port call waits before its effect and again before its answer. At each wait an instance may be killed, paused or
//! overtaken ([`executor`]). Queues behave like the platform's ([`queues`](state::queues)), and the index lags
//! ([`store`](state::store)). The agents are those that ship for HTTP, over the network of the world ([`wire`]), and each
//! service has its [`manner`]. Calls of the remote services ([`services`](state::services)) have their begin, their effect
//! and their answer apart, and the services keep the true effects ([`books`](state::books)), what was done
//! [`by_hand`](state::by_hand) too. The plan sets the faults and their rates ([`faults`]). After a while the faults stop,
//! operators act, and every order must end ([`calm`](world::calm)).
//!
//! Who judges a world is a [`Watcher`](watcher::Watcher). It sees only what can be seen from outside ([`seen`]).
//!
//! Never here: a workflow, a service or a rule of somebody's own, and a judgement.

pub mod actors;
pub mod described;
pub mod description;
pub mod event;
pub mod executor;
pub mod faults;
pub mod lines;
pub mod manner;
pub mod observe;
pub mod ports;
pub mod rng;
pub mod seen;
pub mod setup;
pub mod shape;
pub mod sleep;
pub mod state;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod watcher;
pub mod who;
pub mod wire;
pub mod world;
