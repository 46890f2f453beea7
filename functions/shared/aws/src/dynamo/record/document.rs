//! The document in the item of an order: as text, or compressed where that saves write units.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::limits::DOCUMENT_BYTES_MAX;
use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};

use super::{Item, Reader, Unreadable, bytes, put, text};

/// The document as it was posted.
const PLAIN: &str = "Document";
/// The same compressed: its length in four bytes, the lowest first, and a block of LZ4.
const COMPRESSED: &str = "Compressed";
/// A document up to this length stays as it is: its item has one or two write units.
const PLAIN_BYTES_MAX: usize = 1_024;

/// Puts a document into the item of its order.
pub(super) fn put_document(item: &mut Item, document: &str, compresses: bool) {
    if compresses && document.len() > PLAIN_BYTES_MAX {
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
    let length = compressed.first_chunk::<4>().map(|length| u32::from_le_bytes(*length));
    if length.is_none_or(|length| usize::try_from(length).is_ok_and(|length| length > DOCUMENT_BYTES_MAX)) {
        return Err(reader.wrong(COMPRESSED, format!("{length:?} bytes")));
    }
    let document =
        decompress_size_prepended(&compressed).map_err(|error| reader.wrong(COMPRESSED, error.to_string()))?;
    String::from_utf8(document).map_err(|error| reader.wrong(COMPRESSED, error.to_string()))
}

/// Whether an item has its document compressed.
#[cfg(test)]
pub(super) fn is_compressed(item: &Item) -> bool {
    matches!(item.get(COMPRESSED), Some(AttributeValue::B(_))) && !item.contains_key(PLAIN)
}
