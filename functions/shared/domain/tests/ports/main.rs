//! The parts of this crate that use ports, on the ports in memory.

mod advance;
mod catalogue;
mod dry_run;

use domain::time::Timestamp;
use memory::Memory;
use memory::faulty::Faulty;

const START: Timestamp = Timestamp::from_epoch_ms(1_000_000_000_000);

fn ports() -> Faulty {
    let ports = Faulty::new(Memory::new(START, 7));
    ports.register_channel("shop");
    ports.skip_sleeps();
    ports
}
