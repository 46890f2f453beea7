//! [`Events`]: the reply channels.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::ports::{Events, HasEvents, PortErrorKind};

use super::World;
use super::samples::event;

pub async fn an_event_goes_to_the_channel_that_is_registered(world: &impl World) {
    for n in 1..=2 {
        world.ports().events().notify("shop", event(n)).await.unwrap();
    }
    assert_eq!(world.taken_by_shop(), [event(1), event(2)]);
}

pub async fn a_channel_that_nobody_registered_is_refused(world: &impl World) {
    for unknown in ["cellar", "Shop", ""] {
        let refused = world.ports().events().notify(unknown, event(1)).await.unwrap_err();
        assert_eq!((refused.operation, refused.kind), ("events.notify", PortErrorKind::Refused));
    }
    assert_eq!(world.taken_by_shop(), []);
}
