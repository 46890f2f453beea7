//! A member that is there twice. Of such an object one reader takes the first value and another one the last, so what a
//! workflow decides by and what a service reads could differ.

use std::borrow::Cow;

use super::JsonError;
use super::partial::bytes_of;
use crate::limits::NESTING_MAX;
use crate::tokens::{Token, Tokens};

/// An object or an array that is open.
struct Open {
    /// How many names were there before it.
    names_before: usize,
    /// The position of the present element of an array.
    element: Option<usize>,
}

/// Checks depth and names of a JSON text, in one pass without recursion: a parser that keeps raw values does neither.
///
/// # Errors
/// [`JsonError::TooDeep`], or [`JsonError::Repeated`] with the place of a member that its object has twice, however its
/// name is spelled.
pub(super) fn check(text: &str) -> Result<(), JsonError> {
    let mut open = Vec::<Open>::new();
    // Those of every open object, the innermost last.
    let mut names = Vec::<Cow<'_, [u8]>>::new();
    for token in Tokens::of(text) {
        let depth = open.len();
        match (token, open.last_mut()) {
            (Token::Open(_), _) if depth == NESTING_MAX => return Err(JsonError::TooDeep),
            (Token::Open(bracket), _) => {
                open.push(Open { names_before: names.len(), element: (bracket == "[").then_some(0) });
            }
            (Token::Close(_), _) => {
                let (outer, own) = names.split_at_mut(open.pop().map_or(0, |closed| closed.names_before));
                own.sort_unstable();
                if let Some([name, _]) = own.array_windows().find(|[one, next]| one == next) {
                    return Err(JsonError::Repeated(pointer(&open, outer, name)));
                }
                let kept = outer.len();
                names.truncate(kept);
            }
            (Token::Comma, Some(Open { element: Some(element), .. })) => *element += 1,
            (Token::Key(literal), _) => names.push(bytes_of(literal).unwrap_or(Cow::Borrowed(literal.as_bytes()))),
            (Token::Comma | Token::Scalar(_), _) => {}
        }
    }
    Ok(())
}

/// The place of the member `name` of the object in which these are open, with the names of their members so far.
fn pointer(open: &[Open], names: &[Cow<'_, [u8]>], name: &[u8]) -> String {
    // The last name of an object is that of the member which is open.
    let ends = open.iter().skip(1).map(|inner| inner.names_before).chain([names.len()]);
    let place = |(outer, end): (&Open, usize)| match outer.element {
        Some(element) => element.to_string(),
        None => String::from_utf8_lossy(end.checked_sub(1).and_then(|last| names.get(last)).map_or(b"", |name| name))
            .into_owned(),
    };
    let places = open.iter().zip(ends).map(place).chain([String::from_utf8_lossy(name).into_owned()]);
    places.map(|place| format!("/{}", place.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(text: &str) -> Option<String> {
        match check(text) {
            Ok(()) => None,
            Err(JsonError::Repeated(place)) => Some(place),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_member_that_is_there_twice_is_found_at_any_depth_with_its_place() {
        for (text, place) in [
            (r#"{"Total":5000,"Total":10}"#, "/Total"),
            (r#"{"a":[7,[],{"b":{"x":1,"y":2,"x":1}}],"z":{}}"#, "/a/2/b/x"),
            (r#"[{"a":1},{"a":1,"b":[],"a":2}]"#, "/1/a"),
            (r#"{"a":{"k":{},"k":{}},"b":1}"#, "/a/k"),
            (r#"{"a":{"":1,"":2}}"#, "/a/"),
            (r#"{"a/b":{"~":{"c":1,"c":2}}}"#, "/a~1b/~0/c"),
            (r#" [ [ 1 , 2 ] , [ { "a" : "," , "b" : 1, "a" : 2 } ] ] "#, "/1/0/a"),
        ] {
            assert_eq!(repeated(text).as_deref(), Some(place), "{text}");
        }
    }

    #[test]
    fn an_escape_hides_no_repeated_name() {
        for (text, place) in [
            (r#"{"Total":5000,"Tot\u0061l":10}"#, "/Total"),
            (r#"{"\u00e9":1,"é":2}"#, "/é"),
            (r#"{"a\/b":1,"a/b":2}"#, "/a~1b"),
            (r#"{"\ud83d\ude00":1,"😀":2}"#, "/😀"),
            (r#"{"A\uD83D":1,"\u0041\ud83d":2}"#, "/A\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(repeated(text).as_deref(), Some(place), "{text}");
        }
    }

    #[test]
    fn names_that_differ_or_are_of_other_objects_are_no_repeat() {
        for text in [
            r#"{"Total":1,"total":2,"Total ":3}"#,
            r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#,
            r#"{"a":"\"a\":1,\"a\":2"}"#,
            r#"{"\ud83d":1,"\ud83e":2}"#,
            r#"{"é":1,"e\u0301":2}"#,
            "7",
            "{}",
        ] {
            assert_eq!(repeated(text), None, "{text}");
        }
    }

    #[test]
    fn any_text_comes_to_an_end() {
        for text in ["", "}", "{\"a\":", "[[[", "{\"a\":1,\"a\"", "]}{", "{\"\\ud8\":1}", "{\"a\\"] {
            let _ = check(text);
        }
    }
}
