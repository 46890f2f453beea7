//! What the API may be called by, as a browser's page whose name leads to this machine would try it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::run::program;

struct Api {
    process: Child,
    address: String,
    _data: TempDir,
}

impl Api {
    fn start(args: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = program(&[&["serve", "--port", "0"], args].concat());
        let mut process = command.arg("--data").arg(data.path()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("stepwarden: listening on http://").unwrap().split(',').next().unwrap();
        let address = address.replace("0.0.0.0", "127.0.0.1");
        Self { process, address, _data: data }
    }

    fn ask(&self, line: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request = format!("{line}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_page_whose_name_leads_to_this_machine_reads_nothing_and_posts_nothing() {
    let api = Api::start(&[]);
    let evil = "host: evil.example:3977\r\norigin: http://evil.example:3977\r\n";
    for line in ["GET /orders HTTP/1.1", "POST /orders HTTP/1.1", "GET / HTTP/1.1", "HEAD /health HTTP/1.1"] {
        assert!(api.ask(line, evil, "{}").starts_with("HTTP/1.1 421 "), "{line}");
    }
    let told = api.ask("GET /orders HTTP/1.1", evil, "");
    assert!(told.contains("/problems/misdirected-request") && told.contains("--allow-host"), "{told}");
    let page = api.ask("GET /problems/misdirected-request HTTP/1.1", "host: localhost\r\n", "");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("What to do"), "{page}");
    let orders = api.ask("GET /orders HTTP/1.1", "host: localhost:3977\r\n", "");
    assert!(orders.contains(r#""Orders":[]"#), "{orders}");
    let old = api.ask("GET /health HTTP/1.0", "", "");
    assert!(old.starts_with("HTTP/1.0 200 "), "{old}");
}

#[test]
fn a_name_that_was_allowed_may_be_used_and_an_api_for_other_machines_is_called_what_they_like() {
    let named = Api::start(&["--allow-host", "orders.internal", "--allow-host", "b.internal"]);
    for (host, status) in [("orders.internal", "200"), ("B.internal:81", "200"), ("c.internal", "421")] {
        let told = named.ask("GET /health HTTP/1.1", &format!("host: {host}\r\n"), "");
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {told}");
    }
    let open = Api::start(&["--host", "0.0.0.0", "--no-auth"]);
    assert!(open.ask("GET /health HTTP/1.1", "host: orders.example\r\n", "").starts_with("HTTP/1.1 200 "));
}
