//! The W3C's `traceparent`: how a message names the span that sent it.

use std::fmt;
use std::str::FromStr;

/// A span's identity for other systems: W3C Trace Context, version 00.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    is_sampled: bool,
}

/// The text is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent such as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
pub struct NotATraceParent;

/// The length of version 00, in characters. Later versions may append something.
const CHARS: usize = 55;

impl TraceParent {
    /// A span of a trace. `None` if an id is all zeros, which is not an id.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) -> Option<Self> {
        (trace_id != [0; 16] && span_id != [0; 8]).then_some(Self { trace_id, span_id, is_sampled })
    }

    /// The 16 bytes of the trace's id.
    #[must_use]
    pub const fn trace_id(&self) -> &[u8; 16] {
        &self.trace_id
    }

    /// The 8 bytes of the span's id.
    #[must_use]
    pub const fn span_id(&self) -> &[u8; 8] {
        &self.span_id
    }

    /// Whether the trace is recorded.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

impl FromStr for TraceParent {
    type Err = NotATraceParent;

    fn from_str(text: &str) -> Result<Self, NotATraceParent> {
        parse(text.as_bytes()).ok_or(NotATraceParent)
    }
}

fn parse(text: &[u8]) -> Option<TraceParent> {
    let (known, more) = text.split_at_checked(CHARS)?;
    let [version] = bytes(&known[..2])?;
    let is_whole = match version {
        0x00 => more.is_empty(),
        // The beginning of a later version has the same form.
        0x01..=0xfe => more.is_empty() || more[0] == b'-',
        0xff => false,
    };
    let is_parted = [2, 35, 52].into_iter().all(|place| known[place] == b'-');
    if !is_whole || !is_parted {
        return None;
    }
    let [flags] = bytes(&known[53..])?;
    TraceParent::new(bytes(&known[3..35])?, bytes(&known[36..52])?, flags & 1 == 1)
}

/// Bytes from two lower-case hexadecimal digits each.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? * 16 + digit(pair[1])?;
    }
    Some(bytes)
}

const fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace_id = u128::from_be_bytes(self.trace_id);
        let span_id = u64::from_be_bytes(self.span_id);
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(self.is_sampled))
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const W3C: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_example_of_the_recommendation_is_read_and_written_the_same() {
        let parent: TraceParent = W3C.parse().unwrap();
        assert_eq!((parent.trace_id()[0], parent.span_id()[7], parent.is_sampled()), (0x0a, 0x31, true));
        assert_eq!((parent.to_string().as_str(), format!("{parent:?}").as_str()), (W3C, W3C));
    }

    #[test]
    fn of_a_later_version_and_of_unknown_flags_is_read_what_is_known() {
        for (text, is_sampled) in [
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-will-be", true),
            ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", true),
        ] {
            assert_eq!(text.parse::<TraceParent>().unwrap().is_sampled(), is_sampled, "{text}");
        }
    }

    #[test]
    fn what_the_recommendation_calls_invalid_is_none() {
        for text in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\u{e9}",
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(NotATraceParent), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) {
            let Some(parent) = TraceParent::new(trace_id, span_id, is_sampled) else { return Ok(()) };
            prop_assert_eq!(parent.to_string().parse(), Ok(parent));
        }

        #[test]
        fn whatever_is_read_is_none_or_means_the_same_when_written(text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-?.{0,3})?") {
            if let Ok(parent) = text.parse::<TraceParent>() {
                prop_assert_eq!(&parent.to_string()[3..53], &text[3..53]);
                prop_assert_eq!(parent.to_string().parse(), Ok(parent));
            }
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,80}") {
            if let Ok(parent) = text.parse::<TraceParent>() {
                prop_assert_eq!(parent.to_string().parse(), Ok(parent));
            }
        }
    }
}
