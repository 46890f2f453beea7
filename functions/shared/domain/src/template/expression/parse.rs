//! Reading an expression: an operator binds as in arithmetic, and a pointer ends at a blank, a comma or a bracket.

use super::Node;
use super::number::{Number, Rounding};
use super::value::{Compare, Operator};
use crate::limits::{EXPRESSION_CHARS_MAX, EXPRESSION_NESTING_MAX};
use crate::search::Pointer;
use crate::template::Place;

/// Why an expression is refused. It says where it ends to be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadExpression {
    /// Too long.
    #[error("has more than {EXPRESSION_CHARS_MAX} characters")]
    Length,
    /// Nested too deep.
    #[error("is nested deeper than {EXPRESSION_NESTING_MAX} levels")]
    Depth,
    /// Something else is needed here.
    #[error("needs {needed} {place}")]
    Needs {
        /// What.
        needed: &'static str,
        /// `before ...` or `at its end`.
        place: String,
    },
    /// A text that begins with a slash and is no pointer.
    #[error("{0} is no pointer: {1}")]
    Pointer(String, crate::search::NotAPointer),
    /// A pointer with a question mark.
    #[error("{0} has a ? at its end: write ?? and the value where there may be none, as in /Order/Note ?? \"none\"")]
    Optional(String),
    /// Neither is more than the other.
    #[error("compares true, false or null, which == and != do alone")]
    Unordered,
    /// A value that is neither true nor false.
    #[error("needs a comparison, such as /Order/Total > 1000 or /Order/Note exists, with blanks around its operator")]
    NoCondition,
    /// No function has this name.
    #[error(
        "{0} is no function: there are sum, count, round, text, at and if. A text stands in quotes; /SubmittedAt is the \
         time of the order"
    )]
    Function(String),
}

/// Operators of other languages, the longer ones first, and what to write here.
const FOREIGN: [(&str, &str); 12] = [
    ("&&", "`and` in place of &&,"),
    ("||", "`or` in place of ||,"),
    ("!==", "`!=` in place of !==,"),
    ("===", "`==` in place of ===,"),
    ("=~", "an operator that there is, and =~ is none,"),
    ("=", "`==` in place of =,"),
    ("<>", "`!=` in place of <>,"),
    ("!", "`not` in place of !,"),
    ("not in ", "`not` in front of the first value, as in not /Order/Kind in [1, 2],"),
    ("is ", "`==`, `missing` or `exists` in place of is,"),
    ("?", "if(/Order/Kind == 1, 2, 3) in place of ? and :,"),
    ("%", "an operator that there is, and % is none,"),
];
const VALUE: &str = "a pointer, a number, a text in quotes or a function";
/// Longest time that is added, in milliseconds: ten years.
const DURATION_MS_MAX: u64 = 3_660 * 24 * 60 * 60 * 1_000;

pub(super) struct Parser<'t> {
    rest: &'t str,
    depth: usize,
    /// Whether `/Item` stands for an element.
    /// Whether a `??` was read last, without brackets around it.
    is_bare: bool,
}

type Parsed = Result<Node, BadExpression>;

impl<'t> Parser<'t> {
    pub(super) fn parse(text: &'t str) -> Parsed {
        if text.chars().count() > EXPRESSION_CHARS_MAX {
            return Err(BadExpression::Length);
        }
        let mut parser = Self { rest: text, depth: 0, is_bare: false };
        let node = parser.any()?;
        match parser.rest.trim_start() {
            "" => Ok(node),
            _ => Err(parser.needs("an operator, or nothing")),
        }
    }

    fn needs(&self, needed: &'static str) -> BadExpression {
        let needed = self.foreign().unwrap_or(needed);
        let place = match self.rest.trim() {
            "" => "at its end".to_owned(),
            rest => format!("before {:?}", rest.chars().take(20).collect::<String>()),
        };
        BadExpression::Needs { needed, place }
    }

    /// What to write in place of an operator of another language that comes next.
    fn foreign(&self) -> Option<&'static str> {
        let rest = self.rest.trim_start();
        let begins = |sign: &&(&str, &'static str)| rest.starts_with(sign.0);
        let is_own = ["??", "!="].iter().any(|own| rest.starts_with(own)) && !rest.starts_with("!==");
        FOREIGN
            .iter()
            .find(begins)
            .map(|(_, needed)| *needed)
            .filter(|_| !is_own && (!rest.starts_with("==") || rest.starts_with("===")))
    }

    /// Takes a sign or word. A word ends with itself.
    fn take(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some(after) = rest.strip_prefix(word) else { return false };
        let is_word = word.bytes().all(|byte| byte.is_ascii_alphabetic());
        // An operator before a pointer has a blank behind it.
        let goes_on = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '/';
        if (is_word && after.starts_with(goes_on)) || (word == "/" && !after.starts_with(' ')) {
            return false;
        }
        self.rest = after;
        true
    }

    fn expect(&mut self, word: &'static str) -> Result<(), BadExpression> {
        if self.take(word) { Ok(()) } else { Err(self.needs(word)) }
    }

    fn any(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > EXPRESSION_NESTING_MAX {
            return Err(BadExpression::Depth);
        }
        let mut node = self.all()?;
        while self.take("or") {
            let was_bare = std::mem::take(&mut self.is_bare);
            node = Node::Or(Box::new([node, self.all()?]));
            self.in_brackets(was_bare)?;
        }
        self.depth -= 1;
        Ok(node)
    }

    fn all(&mut self) -> Parsed {
        let mut node = self.not()?;
        while self.take("and") {
            let was_bare = std::mem::take(&mut self.is_bare);
            node = Node::And(Box::new([node, self.not()?]));
            self.in_brackets(was_bare)?;
        }
        Ok(node)
    }

    fn not(&mut self) -> Parsed {
        let mut is_negated = false;
        while self.take("not") {
            is_negated = !is_negated;
        }
        let node = self.compared()?;
        if is_negated {
            self.in_brackets(false)?;
        }
        Ok(if is_negated { Node::Not(Box::new(node)) } else { node })
    }

    fn compared(&mut self) -> Parsed {
        let left = self.sum()?;
        // Some of them begin as one that there is here.
        if self.foreign().is_some() {
            return Err(self.needs(VALUE));
        }
        // The longer ones first.
        let operators = [
            ("==", Compare::Equal),
            ("!=", Compare::NotEqual),
            ("<=", Compare::LessOrEqual),
            (">=", Compare::GreaterOrEqual),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ];
        if let Some((_, operator)) = operators.into_iter().find(|(word, _)| self.take(word)) {
            let was_bare = std::mem::take(&mut self.is_bare);
            let right = self.sum()?;
            self.in_brackets(was_bare)?;
            if [&left, &right].iter().any(|node| matches!(node, Node::Duration(_))) {
                return Err(self.needs("a time span only behind + or -,"));
            }
            let is_word = |node: &Node| matches!(node, Node::Word(_));
            let is_ordered = !matches!(operator, Compare::Equal | Compare::NotEqual);
            return match is_ordered && (is_word(&left) || is_word(&right)) {
                true => Err(BadExpression::Unordered),
                false => Ok(Node::Compares(operator, Box::new([left, right]))),
            };
        }
        if self.take("in") {
            self.in_brackets(false)?;
            self.expect("[")?;
            return Ok(Node::In(Box::new(left), self.list("]")?));
        }
        for (word, is_there) in [("exists", true), ("missing", false)] {
            if self.take(word) {
                let Node::Place(place) = left else {
                    return Err(self.needs("a pointer in front of exists or missing"));
                };
                return Ok(Node::Exists(place, is_there));
            }
        }
        Ok(left)
    }

    /// Refuses a `??` beside another operator without brackets: languages do not agree on what binds tighter.
    fn in_brackets(&mut self, was_bare: bool) -> Result<(), BadExpression> {
        match std::mem::take(&mut self.is_bare) || was_bare {
            true => Err(self.needs("brackets around ?? and its two values,")),
            false => Ok(()),
        }
    }

    fn sum(&mut self) -> Parsed {
        self.computed(Self::product, [("+", Operator::Plus), ("-", Operator::Minus)])
    }

    fn product(&mut self) -> Parsed {
        self.computed(Self::or_else, [("*", Operator::Times), ("/", Operator::Over)])
    }

    /// Values that `value` reads, with these operators between them.
    fn computed(&mut self, value: fn(&mut Self) -> Parsed, operators: [(&str, Operator); 2]) -> Parsed {
        let mut node = value(self)?;
        while let Some((_, operator)) = operators.into_iter().find(|(sign, _)| self.take(sign)) {
            let was_bare = std::mem::take(&mut self.is_bare);
            node = Node::Computes(operator, Box::new([node, value(self)?]));
            self.in_brackets(was_bare)?;
        }
        Ok(node)
    }

    fn or_else(&mut self) -> Parsed {
        let node = self.value()?;
        if !self.take("??") {
            return Ok(node);
        }
        let Node::Place(place) = node else { return Err(self.needs("a pointer in front of ??")) };
        let node = Node::OrElse(place, Box::new(self.or_else()?));
        self.is_bare = true;
        Ok(node)
    }

    fn value(&mut self) -> Parsed {
        let value = self.any_value();
        self.is_bare = false;
        value
    }

    fn any_value(&mut self) -> Parsed {
        let rest = self.rest.trim_start();
        match rest.bytes().next() {
            Some(b'(') => {
                self.rest = &rest[1..];
                let node = self.any()?;
                self.expect(")")?;
                Ok(node)
            }
            Some(b'-') => {
                self.rest = &rest[1..];
                self.depth += 1;
                if self.depth > EXPRESSION_NESTING_MAX {
                    return Err(BadExpression::Depth);
                }
                let node = self.value()?;
                self.depth -= 1;
                Ok(Node::Negated(Box::new(node)))
            }
            Some(b'/') => self.pointer(rest),
            Some(b'"' | b'\'') => self.text(rest),
            Some(b'0'..=b'9') => self.number(rest),
            Some(sign) if sign.is_ascii_alphabetic() => self.word(rest),
            Some(_) | None => Err(self.needs(VALUE)),
        }
    }

    fn pointer(&mut self, rest: &'t str) -> Parsed {
        let ends = |sign: char| sign.is_whitespace() || "(),[]".contains(sign);
        let (text, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        if text.ends_with('?') {
            return Err(BadExpression::Optional(text.to_owned()));
        }
        if text.contains(|sign: char| "*+<>=!?\"'{}|&$".contains(sign)) {
            return Err(self.needs("blanks around an operator, and no sign of one within a pointer,"));
        }
        let node = self.place(text)?;
        self.rest = after;
        Ok(node)
    }

    fn place(&self, text: &str) -> Parsed {
        let pointer = Pointer::parse(text).map_err(|fault| BadExpression::Pointer(text.to_owned(), fault))?;
        Ok(Node::Place(Place::within(pointer)))
    }

    /// A text in quotes has no escapes: two kinds of quotes are enough.
    fn text(&mut self, rest: &'t str) -> Parsed {
        let quote = &rest[..1];
        let Some((text, after)) = rest[1..].split_once(quote) else { return Err(self.needs("another quote")) };
        self.rest = after;
        Ok(Node::Text(text.to_owned()))
    }

    /// A number, or a time such as `30d`.
    fn number(&mut self, rest: &'t str) -> Parsed {
        let is_part = |sign: char| sign.is_ascii_digit() || sign == '.';
        let mut end = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
        // An exponent: `1e3`, `1E-2`.
        let exponent =
            rest[end..].strip_prefix(['e', 'E']).map(|power| (power, power.strip_prefix(['+', '-']).unwrap_or(power)));
        if let Some((power, digits)) =
            exponent.filter(|(_, digits)| digits.starts_with(|sign: char| sign.is_ascii_digit()))
        {
            let length = digits.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(digits.len());
            end += 1 + power.len() - digits.len() + length;
        }
        let (digits, after) = rest.split_at(end);
        let unit = &after[..after.find(|sign: char| !sign.is_ascii_alphabetic()).unwrap_or(after.len())];
        let node = if unit.is_empty() {
            serde_json::from_str::<serde_json::Number>(digits).ok().and_then(|_| Number::of(digits)).map(Node::Number)
        } else {
            let is_unit = ["s", "m", "h", "d", "w"].contains(&unit);
            let ms = humantime::parse_duration(&rest[..digits.len() + unit.len()]).ok().filter(|_| is_unit);
            let ms = ms.and_then(|time| u64::try_from(time.as_millis()).ok()).filter(|ms| *ms <= DURATION_MS_MAX);
            ms.map(Node::Duration)
        };
        let node = node.ok_or_else(|| self.needs("a number of at most 38 digits, or a time such as 30d,"))?;
        self.rest = &after[unit.len()..];
        Ok(node)
    }

    fn word(&mut self, rest: &'t str) -> Parsed {
        let (word, after) = rest.split_at(rest.find(|sign: char| !sign.is_ascii_alphanumeric()).unwrap_or(rest.len()));
        if let "true" | "false" | "null" = word {
            self.rest = after;
            return Ok(Node::Word(word.to_owned()));
        }
        if !["sum", "count", "round", "text", "at", "if"].contains(&word) {
            return Err(BadExpression::Function(word.to_owned()));
        }
        self.rest = after;
        self.expect("(")?;
        let node = match word {
            "sum" => {
                let list = self.any()?;
                let of = if self.take(",") { Some(Box::new(self.any()?)) } else { None };
                Node::Sum(Box::new(list), of)
            }
            "count" => Node::Count(Box::new(self.any()?)),
            "round" => self.round()?,
            "text" => Node::AsText(Box::new(self.any()?)),
            // A pointer with signs that would end it.
            "at" => {
                let Node::Text(pointer) = self.value()? else { return Err(self.needs("a pointer in quotes")) };
                self.place(&pointer)?
            }
            _ => {
                let condition = self.any()?;
                self.expect(",")?;
                let then = self.any()?;
                self.expect(",")?;
                Node::If(Box::new([condition, then, self.any()?]))
            }
        };
        self.expect(")")?;
        Ok(node)
    }

    /// `round(x, 2, half-up)`: how half is rounded is always said.
    fn round(&mut self) -> Parsed {
        let node = self.any()?;
        self.expect(",")?;
        let places = ('0'..='9').find(|digit| self.take(&digit.to_string())).and_then(|digit| digit.to_digit(10));
        let places = places.ok_or_else(|| self.needs("the number of digits behind the point, from 0 to 9,"))?;
        if !self.take(",") {
            return Err(self.needs("how a half is rounded, as in round(/Order/Total, 2, half-even) or half-up,"));
        }
        let rounding = match () {
            () if self.take("half-even") => Rounding::HalfEven,
            () if self.take("half-up") => Rounding::HalfUp,
            () => return Err(self.needs("half-even or half-up")),
        };
        Ok(Node::Round(Box::new(node), places, rounding))
    }

    fn list(&mut self, end: &'static str) -> Result<Vec<Node>, BadExpression> {
        let mut nodes = vec![self.any()?];
        while self.take(",") {
            nodes.push(self.any()?);
        }
        self.expect(end)?;
        Ok(nodes)
    }
}
