//! Panics as lines of the log.

use std::panic::{self, PanicHookInfo};

/// Reports panics here instead of on stderr.
pub(super) fn tell() {
    panic::set_hook(Box::new(|info| {
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(target: "panic", location, "panicked: {}", words(info));
    }));
}

/// The text as written in the source. A text formatted at run time may contain part of an order.
fn words<'a>(info: &'a PanicHookInfo<'_>) -> &'a str {
    info.payload().downcast_ref::<&'static str>().copied().unwrap_or("the text is not shown")
}
