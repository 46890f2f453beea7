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

/// Whether an item has its document compressed.
#[cfg(test)]
pub(super) fn is_compressed(item: &Item) -> bool {
    item.get(COMPRESSED).is_some_and(aws_sdk_dynamodb::types::AttributeValue::is_b) && !item.contains_key(PLAIN)
}
