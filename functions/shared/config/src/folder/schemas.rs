//! The schemas of orders: files beside those of the workflows that name them. A version is stored with its schema in the
//! place of the file's name, so that another schema is another content.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use domain::located::{self, Document, known_names};
use domain::schema::Schema;
use domain::workflow::{WORKFLOW, is_schema};

use super::{Fault, WORKFLOWS_FOLDER, add};
use crate::FILE_BYTES_MAX;

/// Stands for a schema with faults.
const ANYTHING: &str = "{}";

/// The name of a schema's file in the folder of workflows.
pub(super) fn name_of(file: &str) -> Option<&str> {
    let name = file.strip_prefix(WORKFLOWS_FOLDER).and_then(|name| name.strip_prefix('/'));
    name.filter(|name| is_schema(name))
}

/// The workflows with their schemas in their texts. `has_unread`: some file is not known.
pub(super) fn put_in<'a>(
    files: &BTreeMap<&'a str, &'a str>,
    workflows: Vec<(&'a str, &'a str)>,
    has_unread: bool,
    faults: &mut Vec<Fault>,
) -> Vec<(&'a str, Cow<'a, str>)> {
    let schemas: BTreeMap<&str, &str> = files.iter().filter_map(|(file, text)| Some((name_of(file)?, *text))).collect();
    let (mut named, mut is_broken) = (BTreeSet::new(), has_unread);
    let whole = workflows.into_iter().map(|(file, text)| {
        let document = Document::new(text);
        let (reader, root) = document.read(WORKFLOW);
        is_broken |= reader.is_broken();
        let entry = root.get("schema").filter(|_| !reader.is_broken());
        let Some((entry, given)) = entry.as_ref().and_then(|entry| Some((entry, entry.exact_text()?))) else {
            // What is no text may be meant as the name of one.
            is_broken |= entry.is_some();
            return (file, Cow::Borrowed(text));
        };
        let of_entry = |problem: String| {
            let fault = located::Fault::at(text, entry.at, format!("schema {problem}"));
            Fault { file: file.into(), fault }
        };
        let schema = if given.starts_with('{') {
            let inner = Schema::parse(given).map_err(|located::Faults(inner)| inner);
            inner
                .map_err(|inner| faults.extend(inner.iter().map(|fault| of_entry(format!("has a fault at {fault}")))))
                .ok()
        } else if let Some(content) = schemas.get(given) {
            let is_first = named.insert(given.to_owned());
            let read = (content.len() <= FILE_BYTES_MAX).then(|| Schema::parse(content));
            match read {
                Some(Err(inner)) if is_first => add(faults, &format!("{WORKFLOWS_FOLDER}/{given}"), Err(inner)),
                Some(read) => read.ok(),
                None => None,
            }
        } else {
            // It may be meant by this one.
            is_broken = true;
            if !has_unread {
                let known: Vec<&str> = schemas.keys().copied().collect();
                let known = known_names(given, "Schemas", &known);
                faults.push(of_entry(format!("names {given:?}, which is not a file of {WORKFLOWS_FOLDER}{known}")));
            }
            None
        };
        let schema = schema.as_ref().map_or(ANYTHING, Schema::text);
        let (before, after) = (text.get(..entry.at).unwrap_or_default(), text.get(entry.end..).unwrap_or_default());
        (file, Cow::Owned(format!("{before}'{schema}'{after}")))
    });
    let whole = whole.collect();
    for name in schemas.keys().filter(|name| !is_broken && !named.contains(**name)) {
        let problem = "is the schema of no workflow in this folder: name it in one, or leave it out";
        faults.push(Fault::of_file(&format!("{WORKFLOWS_FOLDER}/{name}"), problem));
    }
    whole
}
