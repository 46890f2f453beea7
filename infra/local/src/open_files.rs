//! The limit of open files and connections.

use std::fs::File;
use std::hint::black_box;
use std::io::{Error, ErrorKind};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::BadSetting;

/// Open files that are neither for clients nor for services: data, listeners, timers.
const OWN: u64 = 40;
/// With fewer open files, clients would be let in and get no answer.
const MIN: u64 = OWN + 8;

/// The share of the open files for connections of the API's clients.
#[must_use]
pub fn for_clients() -> usize {
    share(limit(), 2)
}

/// The share of the open files for calls of services. Beside it there is room for unused connections, and for the other
/// ends where stand-ins run in this process.
#[must_use]
pub fn for_calls() -> usize {
    share(limit(), 4)
}

/// Checks that this process may open as many files as a server needs.
///
/// # Errors
/// How many it allows, and how to raise that.
pub fn are_enough() -> Result<(), BadSetting> {
    let limit = limit();
    let remedy = "raise the limit: ulimit -n, or LimitNOFILE= of the service";
    let fault = format!("the system allows this process {limit} open files, and it needs {MIN} or more; {remedy}");
    if limit < MIN { Err(BadSetting(fault)) } else { Ok(()) }
}

/// Whether the system still has what work needs: a few descriptors, memory, and a thread, without which no name of a
/// service is looked up.
///
/// # Errors
/// What the system refuses.
pub fn spare() -> Result<(), Error> {
    const FILES: usize = 4;
    // More than the heap of a thread has in reserve. It is not touched.
    const BYTES: usize = 65 * 1024 * 1024;
    let mut unused = Vec::<u8>::new();
    unused.try_reserve_exact(BYTES).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    // A release build leaves out memory that no code reads or writes.
    drop(black_box(unused));
    let mut files = Vec::with_capacity(FILES);
    for _ in 0..FILES {
        files.push(File::open("/dev/null")?);
    }
    thread::Builder::new().name("spare".to_owned()).spawn(|| {})?;
    Ok(())
}

/// Whether the system, or this process, has no more of them.
#[must_use]
pub fn is_want(error: &Error) -> bool {
    let errors = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    errors.contains(&error.raw_os_error())
}

fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn share(limit: u64, of: u64) -> usize {
    usize::try_from(limit.saturating_sub(OWN) / of).unwrap_or(usize::MAX).max(1)
}

/// Raises the limit as far as the system allows. The usual 1,024 is too low: under load, the agents and the stand-ins
/// alone have more connections, with both ends in this process.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!("limit of open files not raised: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_24_a_system_that_refuses_nothing_has_what_work_needs() {
        spare().unwrap();
    }

    #[test]
    fn f70_clients_and_calls_have_a_share_of_the_open_files_and_the_data_too() {
        for (limit, clients, calls) in [(0, 1, 1), (64, 12, 6), (1_024, 492, 246)] {
            assert_eq!((share(limit, 2), share(limit, 4)), (clients, calls), "{limit}");
        }
    }
}
