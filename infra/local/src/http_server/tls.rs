//! The certificate and the key of a server, read again when their files change.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::reread::Reread;

/// The longest file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A certificate and its key.
pub struct Tls(Reread<ServerConfig, 2>);

/// The certificate and the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file is far too long.
    #[error("{} has more than {FILE_BYTES_MAX} bytes: give a certificate or a key in PEM", .0.display())]
    TooLong(PathBuf),
    /// There is no certificate.
    #[error(
        "{} has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----: give the certificate of this \
         server, and those of its issuers after it, as --tls-cert", .0.display()
    )]
    NoCertificate(PathBuf),
    /// There is no key.
    #[error(
        "{} has no private key in PEM without a password (PKCS #8, PKCS #1 or SEC 1): give it as --tls-key",
        .0.display()
    )]
    NoKey(PathBuf),
    /// The two cannot be used together.
    #[error("{} and {} cannot be used together ({error}): give a certificate and its own key", .certificates.display(), .key.display())]
    NoPair {
        /// The file of the certificate.
        certificates: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        error: rustls::Error,
    },
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the certificate, followed by those of its issuers, and its key. Both files are PEM.
    ///
    /// # Errors
    /// [`TlsError`]; its message says what to do.
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        Reread::start([certificates, key], read).map(Self)
    }

    /// The handshake with the files as they are now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.0.now(read).into()
    }
}

fn read([certificates, key]: [&Path; 2]) -> Result<ServerConfig, TlsError> {
    let chain = CertificateDer::pem_slice_iter(&content(certificates)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| TlsError::NoCertificate(certificates.to_owned()))?;
    let private = PrivateKeyDer::from_pem_slice(&content(key)?).map_err(|_| TlsError::NoKey(key.to_owned()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.and_then(|config| config.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| TlsError::NoPair {
        certificates: certificates.to_owned(),
        key: key.to_owned(),
        error,
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn content(file: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::Io { file: file.to_owned(), error };
    if fs::metadata(file).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(TlsError::TooLong(file.to_owned()));
    }
    fs::read(file).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bytes::Bytes;
    use http::{Request, Response};
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;

    use super::super::limits::Limits;
    use super::super::tests::Gone;
    use super::super::{HangUp, Listening, Peer, Server, within};
    use super::*;
    use crate::client::Client;

    /// An authority, and a folder with the files of a server.
    struct Files {
        folder: TempDir,
        authority: String,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Files {
        fn new() -> Self {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let authority = params.self_signed(&key).unwrap().pem();
            let files = Self { folder: tempfile::tempdir().unwrap(), authority, issuer: Issuer::new(params, key) };
            let (certificate, key) = files.pair(4000);
            files.write(&certificate, &key);
            files
        }

        /// A certificate that is good until this year, and its key.
        fn pair(&self, until: i32) -> (String, String) {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
            params.not_after = date_time_ymd(until, 1, 1);
            (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
        }

        fn paths(&self) -> [PathBuf; 2] {
            ["tls.crt", "tls.key"].map(|name| self.folder.path().join(name))
        }

        fn write(&self, certificate: &str, key: &str) {
            let [certificates, of_key] = self.paths();
            fs::write(certificates, certificate).unwrap();
            fs::write(of_key, key).unwrap();
        }

        fn read(&self) -> Result<Tls, TlsError> {
            let [certificates, key] = self.paths();
            Tls::read(&certificates, &key)
        }

        async fn serve(&self, limits: Limits) -> (Server, Arc<Tls>) {
            let port = Some(TcpListener::bind(("127.0.0.1", 0)).await.unwrap());
            let tls = Arc::new(self.read().unwrap());
            let listening = Listening { port, tls: Some(tls.clone()), socket: None };
            (Server::start_with(limits, listening, 1_000, 600_000, whether_ahead).unwrap(), tls)
        }

        /// A client of its own, whose connection is new.
        async fn ask(&self, server: &Server) -> Result<String, String> {
            let client = Client::trusting(self.authority.as_bytes()).unwrap();
            let answer = client.get(&format!("https://{}/", server.address())).await;
            answer.map(|answer| String::from_utf8(answer.body.to_vec()).unwrap()).map_err(|error| error.to_string())
        }
    }

    async fn whether_ahead(request: Request<Bytes>) -> Result<Response<Bytes>, HangUp> {
        Ok(Response::new(format!("ahead: {}", request.extensions().get::<Peer>().unwrap().is_ahead).into()))
    }

    #[tokio::test]
    async fn a_port_with_a_certificate_speaks_tls_and_nothing_else() {
        let files = Files::new();
        let (server, _) = files.serve(Limits::default()).await;
        for _ in 0..10 {
            assert_eq!(
                files.ask(&server).await.as_deref(),
                Ok("ahead: false"),
                "it came with the end of the handshake"
            );
        }
        let mut plain = TcpStream::connect(server.address()).await.unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&answer));
    }

    #[tokio::test]
    async fn a_certificate_that_expired_is_replaced_while_the_server_runs() {
        let files = Files::new();
        let (certificate, key) = files.pair(2001);
        files.write(&certificate, &key);
        let (server, tls) = files.serve(Limits::default()).await;
        let refused = files.ask(&server).await.unwrap_err();
        assert!(refused.contains("invalid peer certificate") && refused.contains("xpired"), "{refused}");
        let (certificate, key) = files.pair(4000);
        files.write(&certificate, &key);
        tls.0.look_again();
        assert!(files.ask(&server).await.is_ok());
    }

    #[tokio::test]
    async fn files_that_do_not_belong_together_or_cannot_be_read_change_nothing() {
        let files = Files::new();
        let (server, tls) = files.serve(Limits::default()).await;
        let [(other, _), (_, key)] = [files.pair(4000), files.pair(4000)];
        for (certificate, key) in [(&*other, &*key), ("nonsense", &key), (&other, ""), ("", "")] {
            files.write(certificate, key);
            tls.0.look_again();
            assert!(files.ask(&server).await.is_ok());
            assert!(tls.0.has_fault());
        }
        fs::remove_file(&files.paths()[0]).unwrap();
        tls.0.look_again();
        assert!(files.ask(&server).await.is_ok());
        let (certificate, key) = files.pair(2001);
        files.write(&certificate, &key);
        tls.0.look_again();
        assert!(files.ask(&server).await.is_err(), "the new pair counts, as expired as it is");
        assert!(!tls.0.has_fault());
    }

    #[test]
    fn what_is_wrong_at_the_start_is_told_with_what_to_do() {
        let files = Files::new();
        let [(certificate, _), (_, key)] = [files.pair(4000), files.pair(4000)];
        for (certificate, key, words) in [
            (&*certificate, &*key, "give a certificate and its own key"),
            (&key, &key, "tls.crt has no certificate in PEM"),
            (&certificate, &certificate, "tls.key has no private key in PEM"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &key, "cannot be used together"),
            (&"#".repeat(1024 * 1024 + 1), &key, "tls.crt has more than 1048576 bytes"),
        ] {
            files.write(certificate, key);
            let error = files.read().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        fs::remove_file(&files.paths()[0]).unwrap();
        assert!(matches!(files.read(), Err(TlsError::Io { .. })));
    }

    #[expect(clippy::disallowed_methods, reason = "a test of times of the host")]
    #[tokio::test]
    async fn a_handshake_that_never_ends_is_closed_as_a_half_head_is() {
        let files = Files::new();
        let limits = Limits { head_ms_max: 100, idle_ms_max: 600_000_000, ..Limits::default() };
        let (server, _) = files.serve(limits).await;
        // Nothing at all, and the first bytes of a long hello.
        for sent in [&[][..], &[22, 3, 1, 2, 0, 1, 0]] {
            let began = Instant::now();
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            stream.write_all(sent).await.unwrap();
            let mut rest = Vec::new();
            // It would stay open for good.
            let _ = stream.read_to_end(&mut rest).await;
            assert!(began.elapsed().as_millis() >= 100, "{:?}", began.elapsed());
        }
    }

    #[tokio::test]
    async fn new_clients_are_served_beside_as_many_half_handshakes_as_there_may_be() {
        let files = Files::new();
        let (server, _) = files.serve(Limits { connections_max: 20, of_network_max: 15, ..Limits::default() }).await;
        let mut hostile = Vec::new();
        for sent in [&[][..], &[22, 3, 1, 2, 0, 1, 0]].repeat(20) {
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            stream.write_all(sent).await.unwrap();
            hostile.push(stream);
            files.ask(&server).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_stop_waits_for_no_handshake() {
        let files = Files::new();
        let (server, _) = files.serve(Limits { head_ms_max: 600_000, ..Limits::default() }).await;
        let _half = TcpStream::connect(server.address()).await.unwrap();
        files.ask(&server).await.unwrap();
        let stopped = within(300_000, server.stop()).await;
        assert!(stopped.is_some(), "handshake and requests have twice this time");
    }

    #[tokio::test]
    async fn a_client_with_tls_that_takes_nothing_of_its_answer_is_closed() {
        const ANSWER_BYTES: usize = 16 * 1024 * 1024;
        let files = Files::new();
        let (client, gone) = (Client::trusting(files.authority.as_bytes()).unwrap(), Arc::new(Notify::new()));
        let start = async |taking_ms_max| {
            let limits = Limits { taking_ms_max, untaken_bytes_max: usize::MAX, ..Limits::default() };
            let port = Some(TcpListener::bind(("127.0.0.1", 0)).await.unwrap());
            let listening = Listening { port, tls: Some(Arc::new(files.read().unwrap())), socket: None };
            let gone = gone.clone();
            let handle = move |_| {
                let answer = Gone(vec![b'x'; ANSWER_BYTES], gone.clone());
                async { Ok(Response::new(Bytes::from_owner(answer))) }
            };
            Server::start_with(limits, listening, 1_000, 60_000, handle).unwrap()
        };
        let server = start(100).await;
        let url = format!("https://{}/", server.address());
        let answer = client.begin(Request::get(&url).body(Bytes::new()).unwrap()).await.unwrap();
        gone.notified().await;
        let read = http_body_util::BodyExt::collect(answer.into_body()).await;
        assert!(read.is_err(), "it has all of it");
        // However slow the host is, this one takes it in time.
        let server = start(600_000).await;
        let url = format!("https://{}/", server.address());
        assert_eq!(client.get(&url).await.unwrap().body.len(), ANSWER_BYTES, "another one takes it");
    }
}
