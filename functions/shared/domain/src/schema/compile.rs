//! From the text of a schema to rules. A keyword that no rule stands for is a fault.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use super::pattern::Pattern;
use super::value::{Node, Text, Value};
use crate::decimal::Decimal;
use crate::limits::SUBSCHEMAS_MAX;
use crate::located::known_names;
use crate::search::Pointer;

/// The only dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const KEYWORDS: &str = "$ref additionalProperties allOf anyOf const contains else enum exclusiveMaximum exclusiveMinimum \
                        if items maxItems maxLength maxProperties maximum minItems minLength minProperties minimum \
                        multipleOf not oneOf pattern patternProperties prefixItems properties propertyNames required \
                        then type uniqueItems";
/// Keywords that say nothing of a value. A format is a remark in this dialect, too.
const REMARKS: &str = "$comment $defs $id $schema contentEncoding contentMediaType default deprecated description \
                       examples format readOnly title writeOnly";
const HOME: &str = "put the schema into $defs of this file, and name it as #/$defs/NAME";
/// Known words that are refused, and the advice.
const REFUSED: &[(&str, &str)] = &[
    ("$anchor", HOME),
    ("$dynamicAnchor", HOME),
    ("$dynamicRef", HOME),
    ("additionalItems", "write prefixItems and items, as of 2020-12"),
    ("contentSchema", "leave it out"),
    ("definitions", "write $defs, as of 2020-12"),
    ("dependencies", "write if and then"),
    ("dependentRequired", "write if and then"),
    ("dependentSchemas", "write if and then"),
    ("id", "write $id, as of 2020-12"),
    ("maxContains", "leave it out"),
    ("minContains", "leave it out"),
    ("nullable", "write null beside the other type, as in [\"string\", \"null\"]"),
    ("unevaluatedItems", "write items"),
    ("unevaluatedProperties", "write additionalProperties"),
];
/// Characters of the values of an `enum` that a reason shows.
const SHOWN_CHARS_MAX: usize = 120;

/// Where a fault is in the text, in bytes, and what it is.
type Fault = (usize, String);
/// A subschema: its place among all.
pub(super) type Index = usize;

/// A schema that can be used.
pub(super) struct Compiled {
    /// The rules of each subschema; the whole schema is the first.
    pub(super) subschemas: Vec<Vec<Rule>>,
}

/// What a subschema says of a value.
pub(super) enum Rule {
    /// Nothing fits.
    Never,
    Type(Vec<&'static str>),
    /// One of these, as they are spelled; and for people.
    Values(BTreeSet<String>, Box<str>),
    /// How a number compares with the limit; in words; the limit, and as it is written.
    Bound(fn(Ordering) -> bool, &'static str, Decimal, Box<str>),
    MultipleOf(Decimal, Box<str>),
    /// What is counted; whether at most, or at least; how many.
    Size(&'static str, bool, usize),
    Pattern(Pattern),
    Unique,
    /// Those of the first elements, and of the others.
    Items(Vec<Index>, Option<Index>),
    Contains(Index),
    /// Those of the members of a name, sorted, of a pattern, and of the others.
    Members(Vec<(Box<str>, Index)>, Vec<(Pattern, Index)>, Option<Index>),
    Names(Index),
    /// Sorted.
    Required(BTreeSet<Box<str>>),
    /// `allOf`, and `$ref`.
    All(Vec<Index>),
    Any(Vec<Index>),
    One(Vec<Index>),
    Not(Index),
    If(Index, Option<Index>, Option<Index>),
}

impl Compiled {
    /// Compiles a text that is known to be JSON.
    ///
    /// # Errors
    /// All its faults.
    pub(super) fn of(text: &str) -> Result<Self, Vec<Fault>> {
        let mut compiler = Compiler::default();
        compiler.subschema(&Node::of(text), &mut Vec::new());
        compiler.resolve();
        if compiler.faults.is_empty() { Ok(Self { subschemas: compiler.subschemas }) } else { Err(compiler.faults) }
    }
}

#[derive(Default)]
struct Compiler {
    subschemas: Vec<Vec<Rule>>,
    /// Where each begins in the text, in bytes.
    begins: Vec<usize>,
    /// The names on the way to each.
    places: BTreeMap<Vec<String>, Index>,
    /// The subschema with a `$ref`, what this names, and where it stands.
    refs: Vec<(Index, Pointer, usize)>,
    /// A subschema, and one that it lays on the same value.
    same: BTreeSet<(Index, Index)>,
    faults: Vec<Fault>,
}

impl Compiler {
    fn blame(&mut self, at: usize, problem: impl Into<String>) {
        self.faults.push((at, problem.into()));
    }

    /// What was found, or a fault of the value.
    fn found<T>(&mut self, found: Option<T>, value: &Node<'_>, problem: &str) -> Option<T> {
        if found.is_none() {
            self.blame(value.at, problem);
        }
        found
    }

    /// Compiles a subschema. `way` are the names on the way to it.
    fn subschema(&mut self, node: &Node<'_>, way: &mut Vec<String>) -> Index {
        let index = self.subschemas.len();
        if index == SUBSCHEMAS_MAX {
            self.blame(node.at, format!("has more than {SUBSCHEMAS_MAX} schemas in it: shorten it"));
        }
        self.subschemas.push(Vec::new());
        self.begins.push(node.at);
        self.places.insert(way.clone(), index);
        // One too many is a fault, and the end.
        if index >= SUBSCHEMAS_MAX {
            return index;
        }
        let mut rules = Vec::new();
        if let Value::Object(members) = &node.value {
            rules.extend(members.iter().filter_map(|(name, value)| self.keyword(name, value, way, index)));
            self.several_keywords(node, way, index, &mut rules);
        } else if let Value::Bool(fits) = node.value {
            rules.extend((!fits).then_some(Rule::Never));
        } else {
            self.blame(node.at, "must be a schema: an object, true or false");
        }
        self.subschemas[index].extend(rules);
        index
    }

    /// The rule of a keyword that stands by itself.
    fn keyword(&mut self, name: &Text<'_>, value: &Node<'_>, way: &mut Vec<String>, index: Index) -> Option<Rule> {
        let (at, keyword) = (name.at, &*name.text);
        Some(match keyword {
            "$ref" => return self.reference(value, index),
            "$defs" => {
                self.named(value, keyword, way);
                return None;
            }
            "$schema" if value.text().is_none_or(|text| text.trim_end_matches('#') != DIALECT) => {
                self.blame(value.at, format!("$schema must be {DIALECT:?}"));
                return None;
            }
            "$id" | "$schema" if !way.is_empty() => {
                self.blame(at, format!("{keyword} stands at the top of the file alone"));
                return None;
            }
            "type" => self.types(value)?,
            "const" => values(slice::from_ref(value)),
            "enum" => {
                let elements = value.elements().filter(|elements| !elements.is_empty());
                values(self.found(elements, value, "enum must be an array of at least one value")?)
            }
            "minimum" => self.bound(keyword, value, "at least", Ordering::is_ge)?,
            "maximum" => self.bound(keyword, value, "at most", Ordering::is_le)?,
            "exclusiveMinimum" => self.bound(keyword, value, "more than", Ordering::is_gt)?,
            "exclusiveMaximum" => self.bound(keyword, value, "less than", Ordering::is_lt)?,
            "multipleOf" => {
                let divisor = value.number().filter(|(number, _)| number.is_divisor());
                let problem = "multipleOf must be above 0, and have at most 15 digits";
                let (divisor, shown) = self.found(divisor, value, problem)?;
                Rule::MultipleOf(divisor, shown.into())
            }
            "minLength" | "maxLength" => self.size(keyword, value, "characters")?,
            "minItems" | "maxItems" => self.size(keyword, value, "elements")?,
            "minProperties" | "maxProperties" => self.size(keyword, value, "members")?,
            "pattern" => {
                let text = self.found(value.text(), value, "pattern must be a text")?;
                Rule::Pattern(self.pattern(text, value.at)?)
            }
            "uniqueItems" => {
                let flag = if let Value::Bool(flag) = value.value { Some(flag) } else { None };
                return self.found(flag, value, "uniqueItems must be true or false")?.then_some(Rule::Unique);
            }
            "required" => {
                let names = |elements: &[Node<'_>]| elements.iter().map(|name| Some(name.text()?.into())).collect();
                let names = value.elements().and_then(names);
                Rule::Required(self.found(names, value, "required must be an array of names")?)
            }
            "contains" => Rule::Contains(self.inner(value, keyword, way)),
            "propertyNames" => Rule::Names(self.inner(value, keyword, way)),
            "not" => Rule::Not(self.laid(index, value, keyword, way)),
            "allOf" => Rule::All(self.list(value, keyword, way, Some(index))),
            "anyOf" => Rule::Any(self.list(value, keyword, way, Some(index))),
            "oneOf" => Rule::One(self.list(value, keyword, way, Some(index))),
            _ => {
                self.check_name(keyword, at);
                return None;
            }
        })
    }

    /// Blames a word that is no keyword, or none that is known here.
    fn check_name(&mut self, word: &str, at: usize) {
        let known: Vec<&str> = KEYWORDS.split(' ').chain(REMARKS.split(' ')).collect();
        if let Some((_, advice)) = REFUSED.iter().find(|(refused, _)| *refused == word) {
            self.blame(at, format!("{word} is not supported: {advice}"));
        } else if !known.contains(&word) {
            let keywords = known_names(word, "Keywords", &known);
            self.blame(at, format!("{word:?} is not a keyword of JSON Schema 2020-12{keywords}"));
        }
    }

    /// The rules of keywords that mean something together.
    fn several_keywords(&mut self, node: &Node<'_>, way: &mut Vec<String>, index: Index, rules: &mut Vec<Rule>) {
        let others = node.member("additionalProperties").map(|value| self.inner(value, "additionalProperties", way));
        let [known, patterns] = ["properties", "patternProperties"]
            .map(|keyword| node.member(keyword).map(|value| self.named(value, keyword, way)).unwrap_or_default());
        let pattern = |(name, (index, at)): (Box<str>, (Index, usize))| Some((self.pattern(&name, at)?, index));
        let patterns: Vec<(Pattern, Index)> = patterns.into_iter().filter_map(pattern).collect();
        if !known.is_empty() || !patterns.is_empty() || others.is_some() {
            let known = known.into_iter().map(|(name, (index, _))| (name, index)).collect();
            rules.push(Rule::Members(known, patterns, others));
        }
        let first = node.member("prefixItems").map(|value| self.list(value, "prefixItems", way, None));
        let others = node.member("items").map(|value| self.inner(value, "items", way));
        if first.is_some() || others.is_some() {
            rules.push(Rule::Items(first.unwrap_or_default(), others));
        }
        let [condition, then, otherwise] =
            ["if", "then", "else"].map(|keyword| Some(self.laid(index, node.member(keyword)?, keyword, way)));
        rules.extend(condition.map(|condition| Rule::If(condition, then, otherwise)));
    }

    /// The schema at a keyword.
    fn inner(&mut self, value: &Node<'_>, name: &str, way: &mut Vec<String>) -> Index {
        way.push(name.to_owned());
        let index = self.subschema(value, way);
        way.pop();
        index
    }

    /// The same for one that is laid on the same value as its owner.
    fn laid(&mut self, owner: Index, value: &Node<'_>, name: &str, way: &mut Vec<String>) -> Index {
        let index = self.inner(value, name, way);
        self.same.insert((owner, index));
        index
    }

    /// The schemas of an array, laid on the same value as their owner if there is one.
    fn list(&mut self, value: &Node<'_>, name: &str, way: &mut Vec<String>, owner: Option<Index>) -> Vec<Index> {
        let elements = value.elements().filter(|elements| !elements.is_empty());
        let elements = self.found(elements, value, &format!("{name} must be an array of at least one schema"));
        way.push(name.to_owned());
        let mut indexes = Vec::new();
        for (place, element) in elements.into_iter().flatten().enumerate() {
            let index = self.inner(element, &place.to_string(), way);
            self.same.extend(owner.map(|owner| (owner, index)));
            indexes.push(index);
        }
        way.pop();
        indexes
    }

    /// The schemas of an object, each with the place of its value.
    fn named(&mut self, value: &Node<'_>, name: &str, way: &mut Vec<String>) -> BTreeMap<Box<str>, (Index, usize)> {
        let members = if let Value::Object(members) = &value.value { Some(members) } else { None };
        let members = self.found(members, value, &format!("{name} must be an object of schemas"));
        way.push(name.to_owned());
        let mut named = BTreeMap::new();
        for (name, value) in members.into_iter().flatten() {
            named.insert((*name.text).into(), (self.inner(value, &name.text, way), value.at));
        }
        way.pop();
        named
    }

    fn types(&mut self, value: &Node<'_>) -> Option<Rule> {
        const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];
        let known = |node: &Node<'_>| TYPES.into_iter().find(|known| Some(*known) == node.text());
        let types: Option<Vec<&str>> = value.elements().unwrap_or(slice::from_ref(value)).iter().map(known).collect();
        let types = types.filter(|types| !types.is_empty()).map(|mut types| {
            types.sort_unstable();
            types.dedup();
            types
        });
        self.found(types, value, &format!("type must be one or several of {}", TYPES.join(", "))).map(Rule::Type)
    }

    fn bound(&mut self, name: &str, value: &Node<'_>, words: &'static str, fits: fn(Ordering) -> bool) -> Option<Rule> {
        let limit = value.number().filter(|(number, _)| number.is_near());
        let (limit, shown) = self.found(limit, value, &format!("{name} must be a number"))?;
        Some(Rule::Bound(fits, words, limit, shown.into()))
    }

    fn size(&mut self, name: &str, value: &Node<'_>, what: &'static str) -> Option<Rule> {
        let count = value.number().and_then(|(number, _)| number.count());
        let count = self.found(count, value, &format!("{name} must be a whole number from 0 on"))?;
        Some(Rule::Size(what, name.starts_with("max"), count))
    }

    fn pattern(&mut self, text: &str, at: usize) -> Option<Pattern> {
        Pattern::of(text).map_err(|fault| self.blame(at, format!("the pattern {text:?} {fault}"))).ok()
    }

    /// Notes what a `$ref` names. It is looked up once all subschemas are known.
    fn reference(&mut self, value: &Node<'_>, index: Index) -> Option<Rule> {
        let text = self.found(value.text(), value, "$ref must be a text")?;
        let pointer = text.strip_prefix('#').and_then(unescaped);
        let pointer = pointer.and_then(|pointer| Pointer::parse(&pointer).ok());
        let pointer = self.found(pointer, value, &format!("$ref {text:?} is not a place in this file: {HOME}"))?;
        self.refs.push((index, pointer, value.at));
        None
    }

    /// Looks up what each `$ref` names, and finds those that lead back to themselves on the same value.
    fn resolve(&mut self) {
        for (index, pointer, at) in std::mem::take(&mut self.refs) {
            match self.places.get(pointer.names()).copied() {
                Some(found) => {
                    self.subschemas[index].push(Rule::All(vec![found]));
                    self.same.insert((index, found));
                }
                None => self.blame(at, format!("$ref \"#{}\" leads to no schema in this file", pointer.text())),
            }
        }
        // What leads to an end is left out, until all that is left leads into a circle.
        let mut left = usize::MAX;
        while self.same.len() < left {
            left = self.same.len();
            let begins: BTreeSet<Index> = self.same.iter().map(|(owner, _)| *owner).collect();
            self.same.retain(|(_, inner)| begins.contains(inner));
        }
        if let Some((owner, _)) = self.same.first() {
            self.blame(
                self.begins[*owner],
                "the $ref of this schema, or of one within it, leads in a circle without end",
            );
        }
    }
}

/// The rule for some values.
fn values(elements: &[Node<'_>]) -> Rule {
    let spelled = elements.iter().map(|element| element.spelled().into_owned()).collect();
    let mut shown = elements.iter().map(Node::shown).collect::<Vec<_>>().join(", ");
    if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS_MAX) {
        shown.truncate(end);
        shown.push('…');
    }
    Rule::Values(spelled, shown.into())
}

/// The end of a URL without its percent signs.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
