//! What a call carries of its order, and what is kept of its answer: rules 4 and 19.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::workflow::{Encoding, Method};

use super::dossier::Dossier;
use super::{Auditor, Finding, Flow, Invariant, must};
use rehearsal::observe::hash_of;
use rehearsal::seen::{Body, Ending, Record, Try, Way};

/// The mappings of a step, as its version of the workflow has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// What the call sends that carries the step out.
    pub forward: Sent,
    /// What its undo sends.
    pub undo: Sent,
    /// The name of the version and the step in what is kept of the answer. `None`: the whole answer is kept.
    pub keep: Option<Arc<str>>,
}

/// What a call sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// The path before the order's ID.
    pub path: Option<Arc<str>>,
    /// Whether both are in the query.
    pub is_in_query: bool,
    /// The members of the body. `None`: the whole order.
    pub members: Option<BTreeMap<Arc<str>, Source>>,
    /// The encoding of the body.
    pub encode: Encoding,
    /// The method.
    pub method: Method,
    /// Whether it has headers: the key of the call, and the order.
    pub has_headers: bool,
}

/// The value of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// This text.
    Text(Arc<str>),
    /// The ID of the order.
    OrderId,
    /// The posted document.
    Document,
    /// The output of a step of the workflow, if it has one.
    Output(usize),
    /// Its element of the array.
    Item,
    /// The name of it.
    ItemName,
    /// The number of it.
    ItemNumber,
}

/// The headers of a call whose step names some: its key, and the order.
fn headers_of(flow: &Flow, of: Try) -> BTreeMap<Arc<str>, Arc<str>> {
    let undo = if of.way == Way::Undo { "/undo" } else { "" };
    let key = format!("{}/{}{undo}", of.order, flow.name(of.step));
    BTreeMap::from([("x-key".into(), key.into()), ("x-order".into(), of.order.to_string().into())])
}

impl Mapped {
    const fn sent(&self, way: Way) -> &Sent {
        match way {
            Way::Forward => &self.forward,
            Way::Undo => &self.undo,
        }
    }
}

impl Auditor {
    /// A call carries what the pinned version of the workflow sends, and nothing else. Without a mapping these are the
    /// posted document and the outputs of all preceding steps. An undo also carries its own step's output, if known.
    pub(super) fn body_is_right(&self, of: Try, body: &Body) -> Finding {
        let Some(dossier) = self.dossiers.get(&of.order) else { return Ok(()) };
        must(
            dossier.document.is_none_or(|document| body.document.is_none_or(|sent| sent == document)),
            Invariant::Body,
            || format!("{of} is called with another document than was posted"),
        )?;
        let Some(last) = &dossier.last else { return Ok(()) };
        let Some(flow) = &dossier.flow else { return Ok(()) };
        let usual = Mapped::default();
        let dropped = flow.each.get(of.step).and_then(|each| each.as_ref()?.drop.as_ref());
        let dropped = dropped.filter(|_| of.way == Way::Undo && dossier.dropped.contains(&of.step));
        let sent = dropped.unwrap_or_else(|| flow.mapped.get(of.step).unwrap_or(&usual).sent(of.way));
        let below = |path: &Arc<str>| match sent.is_in_query {
            true => format!("?from={path}&of={}", of.order).into(),
            false => format!("{path}/{}", of.order).into(),
        };
        let path = sent.path.as_ref().map(below);
        let is_empty = sent.members.is_none() && !sent.method.has_usual_body();
        let encode = if is_empty { Encoding::Empty } else { sent.encode };
        must((&body.path, body.encode) == (&path, encode), Invariant::Mapping, || {
            format!("{of} is called below {:?} ({:?}), and ought to be below {path:?}", body.path, body.encode)
        })?;
        let headers = if sent.has_headers { headers_of(flow, of) } else { BTreeMap::new() };
        must((body.method, &body.headers) == (sent.method, &headers), Invariant::Mapping, || {
            format!("{of} is called by {:?} with {:?}, and ought to be by {:?}", body.method, body.headers, sent.method)
        })?;
        match &sent.members {
            None if encode == Encoding::Empty => {
                let is_empty = body.document.is_none() && body.outputs.is_empty() && body.members.is_none();
                must(is_empty, Invariant::Mapping, || {
                    format!("{of} is called with {body:?}, and ought to send nothing")
                })
            }
            Some(members) => {
                let wanted = wanted(flow, of, members, dossier, last);
                let has_more = body.document.is_some() || !body.outputs.is_empty();
                must(!has_more && body.members.as_ref() == Some(&wanted), Invariant::Mapping, || {
                    format!("{of} is called with {body:?}, and version {} sends {wanted:?}", last.workflow)
                })
            }
            None => {
                must(body.members.is_none() && body.document.is_some(), Invariant::Mapping, || {
                    format!("{of} is called with {:?}, and version {} sends the order", body.members, last.workflow)
                })?;
                self.outputs_are_right(of, body, flow, last)
            }
        }
    }

    fn outputs_are_right(&self, of: Try, body: &Body, flow: &Flow, last: &Record) -> Finding {
        let wanted: BTreeMap<usize, u64> = flow.outputs(of.step, of.way, last).into_iter().collect();
        must(body.outputs == wanted, Invariant::Body, || {
            format!("{of} is called with what came of steps {:?}, and ought to be with {wanted:?}", body.outputs)
        })
    }

    /// An agent keeps of an answer what the pinned version keeps.
    pub(super) fn kept_is_right(&self, of: Try, ending: Ending, kept: Option<&Arc<str>>) -> Finding {
        let flow = self.dossiers.get(&of.order).and_then(|dossier| dossier.flow.as_ref());
        let (Some(flow), Way::Forward, Ending::Done) = (flow, of.way, ending) else { return Ok(()) };
        let wanted = flow.mapped.get(of.step).and_then(|mapped| mapped.keep.as_ref());
        must(kept == wanted, Invariant::Mapping, || {
            format!("{kept:?} is kept of the answer to {of}, and ought to be {wanted:?}")
        })
    }
}

impl Flow {
    /// All predecessors of a step, direct and indirect.
    pub(super) fn all_before(&self, step: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![step];
        while let Some(step) = open.pop() {
            let before = self.after.get(step).into_iter().flatten();
            open.extend(before.filter(|earlier| found.insert(**earlier)));
        }
        found
    }
}

/// The members of a body, as hashes. A source that is not there leaves its member out.
fn wanted(
    flow: &Flow,
    of: Try,
    members: &BTreeMap<Arc<str>, Source>,
    dossier: &Dossier,
    last: &Record,
) -> BTreeMap<Arc<str>, u64> {
    let element = || dossier.elements.get(flow.line(of.step)?);
    let value = |source: &Source| match source {
        Source::Text(text) => Some(hash_of(&format!("\"{text}\""))),
        Source::OrderId => Some(hash_of(&format!("\"{}\"", of.order))),
        Source::Document => dossier.document,
        Source::Output(step) => flow.output(of.step, *step, last),
        Source::Item => Some(element()?.hash),
        Source::ItemName => Some(hash_of(&format!("\"{}\"", element()?.name))),
        Source::ItemNumber => Some(hash_of(&element()?.number.to_string())),
    };
    members.iter().filter_map(|(name, source)| Some((name.clone(), value(source)?))).collect()
}
