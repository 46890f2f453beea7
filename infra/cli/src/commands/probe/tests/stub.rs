//! A service on a free port that keeps the rules, but for one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::remote::clock;

/// The status of no answer.
const SILENCE: u16 = 0;
/// How long it works on a call.
const WORK: Duration = Duration::from_millis(80);
pub(super) const TOKEN: &str = "the-right-token-1";

/// The rule that it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaks {
    Nothing,
    /// It has no keys at all.
    Keys,
    /// A repeat is told that it is one.
    AnswerToARepeat,
    /// A key is kept only if the caller is there at the end.
    KeysOfCallersThatLeft,
    /// A key counts together with its body.
    OtherBodies,
    UndoOfNothing,
    SecondUndo,
    /// Each undo undoes once more.
    OneUndo,
    ForwardAfterUndo,
    /// Only the order counts.
    KeysOfSteps,
    Tokens,
    /// A repeat never gets an answer.
    Silence,
    /// A repeat is told in a success that it is one, without an id.
    WordsToARepeat,
    /// A repeat makes it fail, in a page that is no JSON.
    Repeats,
    /// A call whose caller left is at work for good.
    CallersThatLeft,
    /// Nothing: each answer has an id of its own, beside that of its effect.
    AnswerIds,
    /// Nothing: it takes five calls in a second.
    Limit,
    /// Nothing: it takes a call on at first, and wants an address for the result.
    Callback,
    /// It has no such path.
    UndoPath,
}

/// What it did.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Forward calls, and undos.
    pub(super) calls: [u32; 2],
    pub(super) effects: u32,
    pub(super) undone: u32,
    /// The body of each key, and its answer once the work is over.
    keys: BTreeMap<String, (String, Option<String>)>,
    undos: BTreeMap<String, String>,
    undone_keys: BTreeSet<String>,
    /// Of the calls that it took.
    taken: Vec<Instant>,
    /// The addresses for later results.
    pub(super) callback_urls: BTreeSet<String>,
}

#[derive(Clone)]
pub(super) struct Stub {
    pub(super) url: String,
    pub(super) books: Arc<Mutex<Books>>,
    pub(super) breaks: Breaks,
}

struct Received {
    path: String,
    key: String,
    token: String,
    callback_url: String,
    body: String,
}

impl Books {
    /// Whether it takes one call more.
    fn takes(&mut self) -> bool {
        self.taken.retain(|at| at.elapsed() < Duration::from_secs(1));
        let takes = self.taken.len() < 5;
        if takes {
            self.taken.push(clock::instant());
        }
        takes
    }
}

impl Stub {
    pub(super) async fn start(breaks: Breaks) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stub = Self { url, books: Arc::default(), breaks };
        let serving = stub.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        stub
    }

    async fn serve(self, mut stream: TcpStream) {
        while let Some(received) = receive(&mut stream).await {
            let (status, mut body) = self.answer(&received, &mut stream).await;
            if status == SILENCE {
                return clock::pause(Duration::from_secs(5)).await;
            }
            if self.breaks == Breaks::AnswerIds && status == 200 && body.contains("ID") {
                let answer = self.books.lock().unwrap().calls[0];
                body = body.replace('}', &format!(r#", "request": "r-{answer}", "at": "2026-11-30T12:00:00Z"}}"#));
            }
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
            if stream.write_all((head + &body).as_bytes()).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&self, received: &Received, stream: &mut TcpStream) -> (u16, String) {
        let is_undo = received.path == "/undo";
        self.books.lock().unwrap().calls[usize::from(is_undo)] += 1;
        if received.token != format!("Bearer {TOKEN}") && self.breaks != Breaks::Tokens {
            return (401, r#"{"code": "unauthorized"}"#.to_owned());
        }
        if self.breaks == Breaks::Limit && !self.books.lock().unwrap().takes() {
            return (429, r#"{"code": "slow_down"}"#.to_owned());
        }
        let key = received.key.strip_suffix("/undo").unwrap_or(&received.key);
        let key = if self.breaks == Breaks::KeysOfSteps { &key[..36] } else { key };
        if is_undo && self.breaks == Breaks::UndoPath {
            return (404, r#"{"message": "no such path"}"#.to_owned());
        }
        if self.breaks == Breaks::Callback && !is_undo {
            if received.callback_url.is_empty() {
                return (400, r#"{"code": "no_address"}"#.to_owned());
            }
            if self.books.lock().unwrap().callback_urls.insert(format!("{key} {}", received.callback_url)) {
                return (202, "{}".to_owned());
            }
        }
        if is_undo { self.undo(key) } else { self.forward(key, &received.body, stream).await }
    }

    async fn forward(&self, key: &str, body: &str, stream: &mut TcpStream) -> (u16, String) {
        {
            let mut books = self.books.lock().unwrap();
            if books.undone_keys.contains(key) && self.breaks != Breaks::ForwardAfterUndo {
                return (422, r#"{"code": "undone"}"#.to_owned());
            }
            let known = books.keys.get(key).filter(|(of, _)| self.breaks != Breaks::OtherBodies || of == body);
            match known.filter(|_| self.breaks != Breaks::Keys) {
                Some((of, _)) if of != body => return (422, r#"{"code": "other_body"}"#.to_owned()),
                Some((_, None)) => return (409, r#"{"code": "busy"}"#.to_owned()),
                Some(_) if self.breaks == Breaks::WordsToARepeat => return (200, r#"{"said": "twice"}"#.to_owned()),
                Some(_) if self.breaks == Breaks::Repeats => return (500, "<p>duplicate key</p>".to_owned()),
                Some(_) if self.breaks == Breaks::Silence => return (SILENCE, String::new()),
                Some(_) if self.breaks == Breaks::AnswerToARepeat => return (400, r#"{"code": "twice"}"#.to_owned()),
                Some((_, Some(answer))) => return (200, answer.clone()),
                None => drop(books.keys.insert(key.to_owned(), (body.to_owned(), None))),
            }
        }
        let has_left = tokio::select! {
            () = clock::pause(WORK) => false,
            read = stream.read_u8() => read.is_err(),
        };
        if has_left {
            clock::pause(WORK).await;
        }
        let mut books = self.books.lock().unwrap();
        if has_left && self.breaks == Breaks::CallersThatLeft {
            return (SILENCE, String::new());
        }
        books.effects += 1;
        let answer = format!(r#"{{"ID": "c-{}"}}"#, books.effects);
        if has_left && self.breaks == Breaks::KeysOfCallersThatLeft {
            books.keys.remove(key);
        } else {
            books.keys.insert(key.to_owned(), (body.to_owned(), Some(answer.clone())));
        }
        (200, answer)
    }

    fn undo(&self, key: &str) -> (u16, String) {
        let mut books = self.books.lock().unwrap();
        if !books.keys.contains_key(key) {
            if self.breaks == Breaks::UndoOfNothing {
                return (400, r#"{"error": {"code": "not_found"}}"#.to_owned());
            }
            books.undone_keys.insert(key.to_owned());
            return (200, "{}".to_owned());
        }
        match books.undos.get(key).filter(|_| self.breaks != Breaks::OneUndo) {
            Some(_) if self.breaks == Breaks::SecondUndo => return (409, r#"{"code": "undone"}"#.to_owned()),
            Some(answer) => return (200, answer.clone()),
            None => {}
        }
        books.undone += 1;
        let answer = format!(r#"{{"Refund": "r-{}"}}"#, books.undone);
        books.undos.insert(key.to_owned(), answer.clone());
        books.undone_keys.insert(key.to_owned());
        (200, answer)
    }
}

/// A request; `None` once the connection is closed.
async fn receive(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        bytes.push(stream.read_u8().await.ok()?);
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(of, _)| of.eq_ignore_ascii_case(name)).map_or(String::new(), |(_, value)| value.to_owned())
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    let body = String::from_utf8(body).unwrap();
    let [key, token, callback_url] = ["idempotency-key", "authorization", "callback-url"].map(header);
    Some(Received { path, key, token, callback_url, body })
}
