//! Whether a document fits a schema. Every rule that is tried, and every character that is looked at, is counted.

use super::Misfit;
use super::compile::{Compiled, Index, Rule};
use super::pattern::Pattern;
use super::value::{Node, Text, Value};
use crate::json::Json;
use crate::limits::{MISFITS_MAX, SCHEMA_NESTING_MAX, SCHEMA_STEPS_MAX, TEXT_CHARS_MAX};

/// Characters that are compared in one step.
const CHARS_PER_STEP: usize = 16;

/// Why a validation ends early.
enum End {
    /// Enough misfits were found.
    Full,
    /// It took too many steps, or went too deep.
    TooLong,
}

/// One validation of one document.
pub(super) struct Validation<'s, 'd> {
    subschemas: &'s [Vec<Rule>],
    steps_left: usize,
    depth: usize,
    /// The way to the present value.
    way: Vec<Place<'d>>,
    /// How many schemas are tried whose misfits do not count.
    tries: usize,
    misfits: Vec<Misfit>,
}

/// One part of a pointer.
#[derive(Clone, Copy)]
enum Place<'d> {
    Name(&'d str),
    Element(usize),
}

impl<'s, 'd> Validation<'s, 'd> {
    /// Validates a document.
    ///
    /// # Errors
    /// The first misfits, or one that says that the validation takes too long.
    pub(super) fn of(compiled: &Compiled, document: &Json) -> Result<(), Vec<Misfit>> {
        let document = Node::of(document.text());
        let (misfits, _) = Validation::counted(compiled, &document, SCHEMA_STEPS_MAX);
        if misfits.is_empty() { Ok(()) } else { Err(misfits) }
    }

    /// The misfits, and the steps that it took.
    pub(super) fn counted(compiled: &'s Compiled, document: &'d Node<'d>, steps_max: usize) -> (Vec<Misfit>, usize) {
        let mut validation = Self {
            subschemas: &compiled.subschemas,
            steps_left: steps_max,
            depth: 0,
            way: Vec::new(),
            tries: 0,
            misfits: Vec::new(),
        };
        if let Err(End::TooLong) = validation.fits(0, document) {
            let reason = format!("takes more than {steps_max} steps to check by its schema: make one of them simpler");
            validation.misfits = vec![Misfit { pointer: String::new(), reason }];
        }
        (validation.misfits, steps_max - validation.steps_left)
    }

    fn step(&mut self, count: usize) -> Result<(), End> {
        let left = self.steps_left.checked_sub(count);
        self.steps_left = left.unwrap_or(0);
        left.map(drop).ok_or(End::TooLong)
    }

    /// Whether a value fits a subschema.
    fn fits(&mut self, index: Index, node: &'d Node<'d>) -> Result<bool, End> {
        if self.depth == SCHEMA_NESTING_MAX {
            return Err(End::TooLong);
        }
        self.depth += 1;
        let mut fits = true;
        for rule in self.subschemas.get(index).into_iter().flatten() {
            self.step(1)?;
            if !self.follows(rule, node)? {
                fits = false;
                if self.tries > 0 {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(fits)
    }

    /// Whether a value fits a subschema. If not, it is no misfit.
    fn tried(&mut self, index: Index, node: &'d Node<'d>) -> Result<bool, End> {
        self.tries += 1;
        let fits = self.fits(index, node);
        self.tries -= 1;
        fits
    }

    /// How many of these a value fits, at most `max`.
    fn count(&mut self, indexes: &[Index], node: &'d Node<'d>, max: usize) -> Result<usize, End> {
        let mut count = 0;
        for index in indexes {
            count += usize::from(self.tried(*index, node)?);
            if count == max {
                break;
            }
        }
        Ok(count)
    }

    /// A part of the present value.
    fn part(&mut self, place: Place<'d>, index: Index, node: &'d Node<'d>) -> Result<bool, End> {
        self.way.push(place);
        let fits = self.fits(index, node);
        self.way.pop();
        fits
    }

    /// `fits`, and a misfit if not.
    fn says(&mut self, fits: bool, reason: impl FnOnce() -> String) -> Result<bool, End> {
        if fits || self.tries > 0 {
            return Ok(fits);
        }
        let mut pointer = String::new();
        for place in &self.way {
            match place {
                Place::Name(name) => pointer.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1"))),
                Place::Element(place) => pointer.push_str(&format!("/{place}")),
            }
        }
        self.misfits.push(Misfit { pointer: shortened(&pointer), reason: reason() });
        if self.misfits.len() == MISFITS_MAX { Err(End::Full) } else { Ok(false) }
    }

    fn follows(&mut self, rule: &'s Rule, node: &'d Node<'d>) -> Result<bool, End> {
        if let Value::Number(digits) = node.value {
            self.step(digits.len() / CHARS_PER_STEP)?;
        }
        match rule {
            Rule::Never => self.says(false, || "must not be there".to_owned()),
            Rule::Type(types) => {
                let must = || types.iter().map(|name| with_article(name)).collect::<Vec<_>>().join(" or ");
                let fits = types.iter().any(|name| is_of_type(node, name));
                self.says(fits, || format!("must be {}, and is {}", must(), with_article(type_of(node))))
            }
            Rule::Values(values, shown) => {
                let spelled = node.spelled();
                self.step(spelled.len() / CHARS_PER_STEP)?;
                let one_of = if values.len() == 1 { "" } else { "one of " };
                self.says(values.contains(&*spelled), || format!("must be {one_of}{shown}"))
            }
            Rule::Bound(fits, words, limit, shown) => {
                let fits = node.number().is_none_or(|(number, _)| fits(number.cmp(limit)));
                self.says(fits, || format!("must be {words} {shown}"))
            }
            Rule::MultipleOf(divisor, shown) => {
                let fits = node.number().is_none_or(|(number, _)| number.is_multiple_of(divisor));
                self.says(fits, || format!("must be a multiple of {shown}"))
            }
            Rule::Size(what, is_max, limit) => {
                let Some(size) = self.size(what, node)? else { return Ok(true) };
                let (fits, words) = if *is_max { (size <= *limit, "at most") } else { (size >= *limit, "at least") };
                self.says(fits, || format!("must have {words} {limit} {what}, and has {size}"))
            }
            Rule::Pattern(pattern) => {
                let fits = node.text().map_or(Ok(true), |text| self.is_in(pattern, text))?;
                self.says(fits, || format!("must match the pattern {:?}", pattern.text))
            }
            Rule::Unique => self.unique(node),
            Rule::Items(first, others) => self.items(first, *others, node),
            Rule::Contains(index) => {
                let Some(elements) = node.elements() else { return Ok(true) };
                let mut fits = false;
                for element in elements {
                    self.step(1)?;
                    fits = fits || self.tried(*index, element)?;
                }
                self.says(fits, || "must have an element that fits the schema of contains".to_owned())
            }
            Rule::Members(known, patterns, others) => self.members(known, patterns, *others, node),
            Rule::Names(index) => self.names(*index, node),
            Rule::Required(names) => {
                let Value::Object(members) = &node.value else { return Ok(true) };
                self.step((names.len() + members.len()) / CHARS_PER_STEP)?;
                // Both are sorted.
                let mut members = members.iter().map(|(name, _)| &*name.text).peekable();
                let is_missing = |name: &&str| {
                    while members.next_if(|member| member < name).is_some() {}
                    members.peek() != Some(name)
                };
                let mut missing = names.iter().map(|name| &**name).filter(is_missing).peekable();
                let fits = missing.peek().is_none();
                self.says(fits, || format!("must have {}", shortened(&missing.collect::<Vec<_>>().join(", "))))
            }
            Rule::All(indexes) => {
                let mut fits = true;
                for index in indexes {
                    fits &= self.fits(*index, node)?;
                }
                Ok(fits)
            }
            Rule::Any(indexes) => {
                let fits = self.count(indexes, node, 1)? == 1;
                self.says(fits, || format!("must fit one of the {} schemas of anyOf, and fits none", indexes.len()))
            }
            Rule::One(indexes) => {
                let count = self.count(indexes, node, 2)?;
                let found = if count == 0 { "none" } else { "more than one" };
                self.says(count == 1, || {
                    format!("must fit one of the {} schemas of oneOf, and fits {found}", indexes.len())
                })
            }
            Rule::Not(index) => {
                let fits = !self.tried(*index, node)?;
                self.says(fits, || "must not fit the schema of not".to_owned())
            }
            Rule::If(condition, then, otherwise) => {
                let branch = if self.tried(*condition, node)? { then } else { otherwise };
                branch.map_or(Ok(true), |index| self.fits(index, node))
            }
        }
    }

    fn is_in(&mut self, pattern: &Pattern, text: &str) -> Result<bool, End> {
        self.step(pattern.steps(text))?;
        Ok(pattern.is_in(text))
    }

    /// How many of these a value has.
    fn size(&mut self, what: &str, node: &'d Node<'d>) -> Result<Option<usize>, End> {
        Ok(match (what, &node.value) {
            ("characters", Value::Text(Text { text, .. })) => {
                self.step(text.len() / CHARS_PER_STEP)?;
                Some(text.chars().count())
            }
            ("elements", Value::Array(elements)) => Some(elements.len()),
            ("members", Value::Object(members)) => Some(members.len()),
            _ => None,
        })
    }

    /// No two elements are the same. Sorting keeps the cost near the length of their text.
    fn unique(&mut self, node: &'d Node<'d>) -> Result<bool, End> {
        let Some(elements) = node.elements() else { return Ok(true) };
        let mut spelled = Vec::with_capacity(elements.len());
        for (place, element) in elements.iter().enumerate() {
            let one = element.spelled();
            self.step(1 + one.len() / CHARS_PER_STEP)?;
            spelled.push((one, place));
        }
        spelled.sort_unstable();
        let twice = spelled.array_windows().find(|[(one, _), (other, _)]| one == other);
        let places = twice.map_or((0, 0), |[(_, one), (_, other)]| (*one, *other));
        self.says(twice.is_none(), || {
            format!("must not have the same element twice, as at {} and {}", places.0, places.1)
        })
    }

    fn items(&mut self, first: &'s [Index], others: Option<Index>, node: &'d Node<'d>) -> Result<bool, End> {
        let mut fits = true;
        for (place, element) in node.elements().unwrap_or_default().iter().enumerate() {
            let Some(index) = first.get(place).copied().or(others) else { break };
            self.step(1)?;
            fits &= self.part(Place::Element(place), index, element)?;
            if !fits && self.tries > 0 {
                break;
            }
        }
        Ok(fits)
    }

    fn members(
        &mut self,
        known: &'s [(Box<str>, Index)],
        patterns: &'s [(Pattern, Index)],
        others: Option<Index>,
        node: &'d Node<'d>,
    ) -> Result<bool, End> {
        let Value::Object(members) = &node.value else { return Ok(true) };
        self.step(known.len() / CHARS_PER_STEP)?;
        // Both are sorted.
        let (mut fits, mut known) = (true, known.iter().peekable());
        for (name, value) in members {
            self.step(1 + name.text.len() / CHARS_PER_STEP)?;
            let place = Place::Name(&name.text);
            while known.next_if(|(other, _)| **other < *name.text).is_some() {}
            let own = known.next_if(|(other, _)| **other == *name.text);
            let mut is_known = own.is_some();
            if let Some((_, index)) = own {
                fits &= self.part(place, *index, value)?;
            }
            for (pattern, index) in patterns {
                if self.is_in(pattern, &name.text)? {
                    is_known = true;
                    fits &= self.part(place, *index, value)?;
                }
            }
            if let (false, Some(index)) = (is_known, others) {
                fits &= self.part(place, index, value)?;
            }
            if !fits && self.tries > 0 {
                break;
            }
        }
        Ok(fits)
    }

    /// The names of an object's members. A name has no part, so nothing of it is kept.
    fn names(&mut self, index: Index, node: &'d Node<'d>) -> Result<bool, End> {
        let Value::Object(members) = &node.value else { return Ok(true) };
        let mut wrong = None;
        for (name, _) in members {
            self.step(1 + name.literal.len() / CHARS_PER_STEP)?;
            let node = Node::of(name.literal);
            let (subschemas, steps_left, depth) = (self.subschemas, self.steps_left, self.depth);
            let mut inner =
                Validation { subschemas, steps_left, depth, way: Vec::new(), tries: 1, misfits: Vec::new() };
            let fits = inner.fits(index, &node);
            self.steps_left = inner.steps_left;
            if !fits? {
                wrong.get_or_insert(&*name.text);
            }
        }
        let name = shortened(wrong.unwrap_or_default());
        self.says(wrong.is_none(), || format!("must not have a member of the name {name:?}"))
    }
}

fn type_of(node: &Node<'_>) -> &'static str {
    match &node.value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::Text(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Of `integer` is also 1.0.
fn is_of_type(node: &Node<'_>, name: &str) -> bool {
    let is_whole = || node.number().is_some_and(|(number, _)| number.is_whole());
    type_of(node) == name || (name == "integer" && is_whole())
}

fn with_article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        _ if name.starts_with(['a', 'i', 'o']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

/// A text of the document is returned to its sender, but shortened.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
