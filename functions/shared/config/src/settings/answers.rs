//! The settings of answers whose meaning depends on the body.

use domain::search::Pointer;

use super::{STATUSES, meaning};
use crate::status::Condition;
use domain::located::{Entry, Reader};

/// Conditions of one operation.
const CONDITIONS_MAX: usize = 32;
/// Texts of one condition.
const TEXTS_MAX: usize = 32;

/// Reads `answers`.
pub(super) fn conditions(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Vec<Condition> {
    let elements = reader.array(entry, CONDITIONS_MAX).unwrap_or_default();
    elements.into_iter().filter_map(|element| condition(reader, element)).collect()
}

fn condition(reader: &mut Reader<'_>, element: Entry<'_>) -> Option<Condition> {
    let mut table = reader.table(Some(element))?;
    let status = reader.required(&mut table, "status");
    let status = reader.number(status, u32::from(*STATUSES.start())..=u32::from(*STATUSES.end()));
    let at = reader.required(&mut table, "at");
    let at = reader.text(at).and_then(|(text, entry)| {
        let pointer = Pointer::parse(&text);
        pointer.map_err(|problem| reader.blame_value(&entry, problem)).ok()
    });
    let is = reader.required(&mut table, "is");
    let texts = is.and_then(|entry| texts(reader, entry));
    let means = reader.required(&mut table, "means");
    let means = meaning(reader, means);
    reader.end(table);
    Some(Condition { status: u16::try_from(status?).ok()?, at: at?, texts: texts?, means: means? })
}

/// One text, or an array of texts.
fn texts(reader: &mut Reader<'_>, entry: Entry<'_>) -> Option<Vec<String>> {
    if !entry.value.is_array() {
        return reader.text(Some(entry)).map(|(text, _)| vec![text]);
    }
    let elements = reader.array(Some(entry), TEXTS_MAX)?;
    elements.into_iter().map(|element| reader.text(Some(element)).map(|(text, _)| text)).collect()
}
