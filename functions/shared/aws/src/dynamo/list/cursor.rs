//! The cursor between two pages of a list, as an opaque text for callers.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::task::ProcessState;
use domain::time::Timestamp;

use super::partition::Position;

/// The cursor after an entry of the list of one state, or of all states.
pub(super) fn cursor(position: &Position, state: Option<ProcessState>) -> String {
    let Position { at, partition, order_id } = position;
    let list = state.map_or("Any", ProcessState::name);
    URL_SAFE_NO_PAD.encode(format!("{list} {} {partition} {order_id}", at.epoch_ms()))
}

/// The position that a cursor of this list encodes; `None` if this list did not create it.
pub(super) fn place_of(text: &str, state: Option<ProcessState>) -> Option<Position> {
    let content = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let parts: [&str; 4] = content.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let [_, at, partition, order_id] = parts;
    let position = Position {
        at: Timestamp::from_epoch_ms(at.parse().ok()?),
        partition: partition.parse().ok()?,
        order_id: order_id.parse().ok()?,
    };
    // Accepts only the spelling that `cursor` produces.
    (cursor(&position, state) == text).then_some(position)
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;

    use super::*;

    #[test]
    fn a_cursor_is_good_for_the_list_that_made_it_and_no_other() {
        let order_id = OrderId::from_idempotency_key("shop", "1");
        let position = Position { at: Timestamp::from_epoch_ms(1_795_195_603_007), partition: 17, order_id };
        for state in [None, Some(ProcessState::Error)] {
            assert_eq!(place_of(&cursor(&position, state), state), Some(position));
            assert_eq!(place_of(&cursor(&position, state), Some(ProcessState::Processed)), None);
        }
        let made_up = |text: &str| place_of(&URL_SAFE_NO_PAD.encode(text), None);
        assert_eq!(made_up(&format!("Any 7 0 {order_id}")).map(|position| position.partition), Some(0));
        for text in [
            format!("Any +7 0 {order_id}"),
            format!("Any 7 00 {order_id}"),
            format!("Any 7 0 {order_id} "),
            format!("Any 7 300 {order_id}"),
            "Any 7 0".to_owned(),
            "Any 7 0 x".to_owned(),
        ] {
            assert_eq!(made_up(&text), None, "{text}");
        }
        assert_eq!(place_of("", None), None);
        assert_eq!(place_of("¤", None), None);
    }
}
