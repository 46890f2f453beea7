//! How stand-ins are told to behave.

use standins::{Behaviour, Operation, Service};

/// Whatever a call's body says, a stand-in understands it or refuses it, and never waits for longer than it may.
pub(super) fn run(input: &[u8]) {
    const WAIT_MS_MAX: u64 = 60_000;
    let mut understood = Vec::new();
    for service in Service::ALL {
        for operation in [Operation::Forward, Operation::Undo] {
            let told = Behaviour::told(input, service, operation);
            if let Ok(behaviour) = &told {
                let waits_ms = [behaviour.slow_ms, behaviour.busy_ms, behaviour.pending_ms];
                assert!(waits_ms.iter().all(|&ms| ms <= WAIT_MS_MAX));
            }
            understood.push(told.is_ok());
        }
    }
    assert!(understood.iter().all(|is| *is == understood[0]), "all of it is understood, or nothing");
    if let Ok(text) = std::str::from_utf8(input) {
        assert!(Service::named(text).is_none_or(|service| service.name() == text));
    }
}
