//! The limit of open files and connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows. The usual 1,024 is too low: under load, the agents and the stand-ins
/// alone have more connections, with both ends in this process.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!("limit of open files not raised: {error}");
    }
}
