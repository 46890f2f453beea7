//! The document in the item of an order: as text, or compressed where that saves write units.

use domain::limits::DOCUMENT_BYTES_MAX;
use lz4_flex::block::{compress_prepend_size, decompress_into};

use super::{Item, Reader, Unreadable, bytes, put, text};

/// The document as it was posted.
const PLAIN: &str = "Document";
/// The same compressed: its length in four bytes, the lowest first, and a block of LZ4.
const COMPRESSED: &str = "Compressed";
/// A document up to this length stays as it is: its item has one or two write units.
const PLAIN_BYTES_MAX: usize = 1_024;

/// Puts a document into the item of its order.
pub(super) fn put_document(item: &mut Item, document: &str) {
    // One with escapes for SQS may be longer than a caller may post, and is read only as text.
    if (PLAIN_BYTES_MAX + 1..=DOCUMENT_BYTES_MAX).contains(&document.len()) {
        let compressed = compress_prepend_size(document.as_bytes());
        if compressed.len() < document.len() {
            return put(item, COMPRESSED, bytes(&compressed));
        }
    }
    put(item, PLAIN, text(document));
}

/// The document in the item of its order. One that says that it is longer than any document is not decompressed.
pub(super) fn document(reader: &mut Reader) -> Result<String, Unreadable> {
    let Some(compressed) = reader.bytes_if(COMPRESSED)? else { return reader.text(PLAIN) };
    decompressed(&compressed).ok_or_else(|| reader.wrong(COMPRESSED, "it is no compressed document"))
}

fn decompressed(compressed: &[u8]) -> Option<String> {
    let (length, block) = compressed.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= DOCUMENT_BYTES_MAX)?;
    let mut document = vec![0; length];
    let written = decompress_into(block, &mut document).ok()?;
    document.truncate(written);
    String::from_utf8(document).ok()
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;
    use domain::json::Json;
    use domain::order::Order;

    use super::super::size::item_bytes;
    use super::super::tests::sample_order;
    use super::super::{order, order_item};
    use super::*;

    fn is_compressed(item: &Item) -> bool {
        item.get(COMPRESSED).is_some_and(AttributeValue::is_b) && !item.contains_key(PLAIN)
    }

    /// An order of about this size, as shops write them: a list of lines.
    fn order_of_lines(bytes: usize) -> Order {
        let mut lines = String::new();
        for n in 0_u32.. {
            let (sku, price) = (n.wrapping_mul(2_654_435_761), n.wrapping_mul(40_503) % 10_000);
            lines += &format!(
                r#"{{"Sku":"{sku:08x}","Name":"Item no. {n}","Quantity":{},"UnitPrice":{price}}},"#,
                n % 9 + 1
            );
            if lines.len() >= bytes {
                break;
            }
        }
        let document = Json::document(format!("{{\"Lines\":[{}]}}", lines.trim_end_matches(',')).as_bytes()).unwrap();
        Order { fingerprint: document.fingerprint().into(), document, ..sample_order("shop") }
    }

    #[test]
    fn a_large_document_is_compressed_and_read_back() {
        for (bytes, compressed_max) in [(500, 0), (4_096, 2_048), (16_384, 6_144), (65_536, 22_528), (120_000, 41_984)]
        {
            let of_lines = order_of_lines(bytes);
            let item = order_item(&of_lines);
            assert_eq!(is_compressed(&item), compressed_max > 0, "{bytes}");
            assert!(!is_compressed(&item) || item_bytes(&item) <= compressed_max, "{bytes}: {}", item_bytes(&item));
            assert_eq!(order(item).unwrap(), of_lines);
        }
    }

    #[test]
    fn a_compressed_document_that_is_none_is_refused_and_one_that_is_too_long_is_not_decompressed() {
        let item = order_item(&order_of_lines(4_096));
        let AttributeValue::B(whole) = item["Compressed"].clone() else { panic!("bytes") };
        let with = |compressed: &[u8]| {
            let mut item = item.clone();
            item.insert("Compressed".to_owned(), bytes(compressed));
            order(item).unwrap_err().to_string()
        };
        let too_long = u32::try_from(DOCUMENT_BYTES_MAX + 1).unwrap().to_le_bytes();
        let bomb: Vec<u8> = too_long.iter().chain(&whole.as_ref()[4..]).copied().collect();
        for broken in [&bomb[..], b"", &whole.as_ref()[..3], &whole.as_ref()[..100], &[200, 0, 0, 0, 255, 255, 255]] {
            assert!(with(broken).starts_with("Compressed is stored in a form that cannot be read"));
        }
        // A text that does not shrink stays as it is.
        let mut state = 7_u64;
        let random = (0..2_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from_u32(0x4e00 + (state >> 52) as u32).unwrap()
        });
        let document = Json::document(format!("{{\"T\":\"{}\"}}", random.collect::<String>()).as_bytes()).unwrap();
        let random = Order { document, ..sample_order("shop") };
        assert!(!is_compressed(&order_item(&random)));
    }
}
