//! An input that looks like an HTTP message: a first line, lines of headers, an empty line, and a body. So what is kept
//! can be read and written by hand.

/// The parts of an input.
pub(super) struct Text<'a> {
    pub(super) first: &'a str,
    /// Names and values as they stand there.
    pub(super) headers: Vec<(&'a [u8], &'a [u8])>,
    pub(super) body: &'a [u8],
}

impl<'a> Text<'a> {
    /// `None` where the first line is no text.
    pub(super) fn of(input: &'a [u8]) -> Option<Self> {
        let (head, body) = match input.windows(2).position(|pair| pair == b"\n\n") {
            Some(end) => (&input[..end], &input[end + 2..]),
            None => (input, &b""[..]),
        };
        let mut lines = head.split(|byte| *byte == b'\n');
        let first = std::str::from_utf8(lines.next()?).ok()?;
        let header = |line: &'a [u8]| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        };
        Some(Self { first, headers: lines.filter_map(header).collect(), body })
    }
}
