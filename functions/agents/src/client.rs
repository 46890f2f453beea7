//! The HTTP clients that all calls share.
//!
//! They use sockets. With the feature `simulated` they may use what a simulation puts in the place of the network. No
//! function has this feature: there the names below are those of `sockets`.

#[cfg(feature = "simulated")]
mod network;
#[cfg_attr(feature = "simulated", expect(unreachable_pub, reason = "a name of `network` stands before each"))]
mod sockets;

use std::error::Error;
use std::io;

#[cfg(feature = "simulated")]
pub use network::{CallOf, HttpClients, Network, NetworkBody, NetworkError};
#[cfg(feature = "simulated")]
pub(crate) use network::{HttpClient, NoResponse, Responded, Timer, of_call};
#[cfg(not(feature = "simulated"))]
pub use sockets::HttpClients;
pub use sockets::TlsError;
#[cfg(not(feature = "simulated"))]
pub(crate) use sockets::{HttpClient, NoResponse, Responded, Timer};

/// An error with all its sources, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Whether a connection failed for want of something on this machine: file descriptors, memory, ports.
pub(crate) fn is_of_this_machine(error: &(dyn Error + 'static)) -> bool {
    // The system's numbers for too many open files, of the system and of this process, which have no kind.
    const OPEN_FILES: [Option<i32>; 2] = [Some(23), Some(24)];
    let is_of_this_machine = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::AddrNotAvailable)
            || OPEN_FILES.contains(&error.raw_os_error())
    };
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(is_of_this_machine) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("connect")]
    struct Connect(#[source] io::Error);

    #[test]
    fn f70_want_of_this_machine_is_told_from_a_service_that_is_away() {
        // The numbers of EMFILE, ENFILE and ENOMEM are the same on all systems.
        for (error, is_ours) in [
            (io::Error::from_raw_os_error(24), true),
            (io::Error::from_raw_os_error(23), true),
            (io::Error::from_raw_os_error(12), true),
            (io::ErrorKind::AddrNotAvailable.into(), true),
            (io::ErrorKind::ConnectionRefused.into(), false),
            (io::ErrorKind::TimedOut.into(), false),
        ] {
            assert_eq!(is_of_this_machine(&Connect(error)), is_ours);
        }
    }
}
