//! The body of a response: as much of it as can be read.

use std::borrow::Cow;
use std::error::Error;
use std::io::Read as _;
use std::pin::pin;

use bytes::{Buf, BufMut, Bytes};
use domain::limits::{ANSWER_BYTES_MAX, NAME_CHARS_MAX};
use flate2::read::GzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};

use crate::client::chain;

/// What a body in the format of gzip begins with.
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// What was read of a body, after an unrequested compression was undone.
pub(crate) struct Read {
    bytes: Bytes,
    pub(crate) end: End,
    /// Content type and encoding, as the service says them.
    said: [Option<HeaderValue>; 2],
}

/// How the reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the end of the body.
    Whole,
    /// It has more than [`ANSWER_BYTES_MAX`].
    TooLarge,
    /// The connection broke.
    Broken(String),
}

impl Read {
    /// Reads at most [`ANSWER_BYTES_MAX`] bytes.
    pub(crate) async fn of<B>(headers: &HeaderMap, body: B) -> Self
    where
        B: Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let said = [CONTENT_TYPE, CONTENT_ENCODING].map(|name| headers.get(name).cloned());
        let (mut body, mut read) = (pin!(body), Vec::new());
        let mut end = loop {
            let data = match body.frame().await.map(|frame| frame.map(Frame::into_data)) {
                None => break End::Whole,
                Some(Ok(Ok(data))) => data,
                // Trailers.
                Some(Ok(Err(_))) => continue,
                Some(Err(error)) => break End::Broken(chain(&*error.into())),
            };
            let room = ANSWER_BYTES_MAX - read.len();
            let is_over = data.remaining() > room;
            read.put(data.take(room));
            if is_over {
                break End::TooLarge;
            }
        };
        if read.starts_with(GZIP) {
            let mut plain = Vec::new();
            let unpacked = GzDecoder::new(&*read).take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut plain);
            if plain.len() > ANSWER_BYTES_MAX {
                (_, end) = (plain.pop(), End::TooLarge);
            } else if let (Err(error), End::Whole) = (unpacked, &end) {
                // Of a body that was cut there is a part.
                end = End::Broken(format!("its gzip: {error}"));
            }
            read = plain;
        }
        Self { bytes: read.into(), end, said }
    }

    /// Its bytes, without blanks around them.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.trim_ascii()
    }

    /// Its text. U+FFFD stands for bytes that are no UTF-8.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        let text = String::from_utf8_lossy(self.bytes());
        match text.strip_prefix('\u{feff}') {
            None => text,
            Some(text) => Cow::Owned(text.trim_start().to_owned()),
        }
    }

    /// What the service says about the body, for people, such as ` (text/html)`.
    pub(crate) fn said(&self) -> String {
        let [content_type, encoding] = self.said.each_ref().map(|value| {
            let value = value.as_ref()?.to_str().ok()?.split(';').next()?.trim();
            Some(value.chars().take(NAME_CHARS_MAX).collect::<String>()).filter(|value| !value.is_empty())
        });
        let encoding = encoding.map(|encoding| format!("Content-Encoding {encoding}"));
        let all: Vec<String> = content_type.into_iter().chain(encoding).collect();
        if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::read::GzEncoder;
    use http_body_util::Full;

    use super::*;

    const PLAIN: &[u8] = b"{\"code\":\"no_stock\"}";

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        GzEncoder::new(plain, Compression::fast()).read_to_end(&mut packed).unwrap();
        packed
    }

    async fn read(body: &[u8]) -> Read {
        Read::of(&HeaderMap::new(), Full::new(Bytes::copy_from_slice(body))).await
    }

    #[tokio::test]
    async fn a_compression_that_nobody_asked_for_is_taken_off() {
        let whole = read(&gzip(PLAIN)).await;
        assert_eq!((whole.bytes(), &whole.end), (PLAIN, &End::Whole));
        let long = [PLAIN, &[b'x'; 20_000]].concat();
        let mut cut = gzip(&long);
        cut.truncate(cut.len() - 9);
        let part = read(&cut).await;
        assert!(
            long.starts_with(part.bytes()) && part.bytes().starts_with(PLAIN),
            "what there is of a body that was cut"
        );
        assert!(matches!(&part.end, End::Broken(problem) if problem.starts_with("its gzip: ")), "{:?}", part.end);
        let mut changed = gzip(PLAIN);
        *changed.last_mut().unwrap() ^= 1;
        for packed in [&changed[..], &changed[..10], &GZIP[..3]] {
            assert!(matches!(read(packed).await.end, End::Broken(_)), "{packed:?}");
        }
    }

    #[tokio::test]
    async fn a_small_body_that_grows_beyond_the_limit_is_too_large() {
        for (bytes, end) in [(ANSWER_BYTES_MAX, End::Whole), (ANSWER_BYTES_MAX + 1, End::TooLarge)] {
            let read = read(&gzip(&vec![b'x'; bytes])).await;
            assert_eq!((read.end, read.bytes.len()), (end, ANSWER_BYTES_MAX));
        }
    }

    #[tokio::test]
    async fn what_there_is_of_a_large_body_is_kept() {
        let body = [PLAIN, &vec![b'x'; ANSWER_BYTES_MAX]].concat();
        let read = read(&body).await;
        assert_eq!((read.end, read.bytes.len()), (End::TooLarge, ANSWER_BYTES_MAX));
        assert!(read.bytes.starts_with(PLAIN));
    }

    #[tokio::test]
    async fn type_and_encoding_are_said_as_far_as_they_are_known() {
        let both = [(CONTENT_ENCODING, "br"), (CONTENT_TYPE, "application/json")];
        for (headers, words) in [
            (&[][..], ""),
            (&[(CONTENT_TYPE, "text/html; charset=utf-8")], " (text/html)"),
            (&both, " (application/json, Content-Encoding br)"),
        ] {
            let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            assert_eq!(Read::of(&headers, Full::<Bytes>::default()).await.said(), words);
        }
    }
}
