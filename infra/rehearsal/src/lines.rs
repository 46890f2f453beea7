//! The array of an order in a world whose workflows have steps with lines (rule 50).

use crate::rng::Rng;

/// The most elements of a drawn array.
pub const ELEMENTS_MAX: u64 = 8;

/// The member of the document of an order with this number, in the world whose faults end then. The stream is its own: all
/// else of a world stays as it is.
#[must_use]
pub fn draw(calm_at_ms: i64, number: usize) -> String {
    let mut rng = Rng::new(calm_at_ms.unsigned_abs().rotate_left(20) ^ u64::try_from(number).unwrap_or(0));
    // Most have a few.
    let most = rng.pick(&[0, 1, 2, 3, 3, 4, ELEMENTS_MAX]);
    let elements = (0..rng.between(0, most)).map(|place| {
        let sku = rng.pick(&["mug", "B_", "7.", "a-0"]);
        format!("{{\"SKU\":\"{sku}{place}\",\"N\":{}}}", rng.below(4))
    });
    format!(",\"Lines\":[{}]", elements.collect::<Vec<_>>().join(","))
}
