//! A client certificate, and certificate authorities beside those of the system.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, RootCertStore};

use super::secret::Secret;

/// # Errors
/// The fault, without the text.
pub(super) fn certificates(secret: &Secret) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(secret.expose().as_bytes()).collect();
    let read = read.ok().filter(|read| !read.is_empty());
    read.ok_or_else(|| "must be PEM, from -----BEGIN CERTIFICATE----- on".to_owned())
}

/// # Errors
/// The fault, without the text.
pub(super) fn authorities(secret: &Secret) -> Result<Vec<CertificateDer<'static>>, String> {
    let authorities = certificates(secret)?;
    let mut roots = RootCertStore::empty();
    let is_usable = authorities.iter().all(|authority| roots.add(authority.clone()).is_ok());
    is_usable.then_some(authorities).ok_or_else(|| "has a certificate that cannot be read: export it again".to_owned())
}

/// The certificate with its private key.
///
/// # Errors
/// The fault of the key, without its text.
pub(super) fn identity(certificates: Vec<CertificateDer<'static>>, key: &Secret) -> Result<Arc<CertifiedKey>, String> {
    let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes())
        .map_err(|_| "must be PEM without a password, from -----BEGIN PRIVATE KEY----- on".to_owned())?;
    match CertifiedKey::from_der(certificates, key, &rustls::crypto::ring::default_provider()) {
        Ok(identity) => Ok(Arc::new(identity)),
        Err(Error::InconsistentKeys(_)) => Err("is not the key of the certificate".to_owned()),
        Err(error) => Err(format!("cannot be used with the certificate: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use agent::Answer;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::ServerConfig;
    use rustls::server::WebPkiClientVerifier;

    use super::super::READ_AGAIN_MS;
    use super::super::tests::{Secrets, call, oauth2, ok, payment, read_settings, secrets, token};
    use super::*;
    use crate::stand_in::StandIn;
    use crate::{HttpClients, http_agent};

    const TLS: &str = "tls = { certificate = \"env:CERTIFICATE\", key = \"env:PRIVATE\", ca = \"env:AUTHORITY\" }";

    /// A certificate authority.
    struct Authority {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Authority {
        fn new() -> Self {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let pem = params.self_signed(&key).unwrap().pem();
            Self { pem, issuer: Issuer::new(params, key) }
        }

        /// A certificate and its private key.
        fn issue(&self) -> (String, String) {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
            (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
        }

        /// A server with a certificate of this authority, for clients of the other one.
        fn server(&self, clients: &Self) -> ServerConfig {
            let (certificate, key) = self.issue();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(clients.pem.as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_client_cert_verifier(verifier.build().unwrap())
                .with_single_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
                )
                .unwrap()
        }
    }

    fn insert(secrets: &Secrets, (certificate, key): (String, String), authority: &Authority) {
        let of = [("CERTIFICATE", certificate), ("PRIVATE", key), ("AUTHORITY", authority.pem.clone())];
        secrets.lock().unwrap().extend(of.map(|(name, pem)| (name.to_owned(), pem)));
    }

    #[tokio::test]
    async fn a_service_that_asks_for_a_certificate_gets_it_and_is_known_by_its_authority() {
        let (of_server, of_clients, secrets) = (Authority::new(), Authority::new(), secrets());
        let stand_in = StandIn::start_tls(of_server.server(&of_clients), [ok()]).await;
        insert(&secrets, of_clients.issue(), &of_server);
        let without = "tls.ca = \"env:AUTHORITY\"";
        let answer = call(&mut payment(&stand_in.base, without, &secrets).await, 0).await;
        assert!(matches!(answer, Answer::Unknown { .. }), "refused without a certificate: {answer:?}");
        let answer = call(&mut payment(&stand_in.base, TLS, &secrets).await, 0).await;
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
        insert(&secrets, of_clients.issue(), &of_clients);
        let answer = call(&mut payment(&stand_in.base, TLS, &secrets).await, 0).await;
        assert!(
            matches!(&answer, Answer::Retry { problem, .. } if problem.contains("invalid peer certificate")),
            "{answer:?}"
        );
        assert_eq!(stand_in.received().len(), 1);
    }

    #[tokio::test]
    async fn a_certificate_that_was_replaced_is_used_from_the_call_after_a_refusal_on() {
        let (of_server, of_clients, secrets) = (Authority::new(), Authority::new(), secrets());
        let stand_in = StandIn::start_tls(of_server.server(&of_clients), [ok()]).await;
        insert(&secrets, of_server.issue(), &of_server);
        let mut service = payment(&stand_in.base, TLS, &secrets).await;
        assert!(!matches!(call(&mut service, 0).await, Answer::Done(_)));
        insert(&secrets, of_clients.issue(), &of_server);
        assert!(!matches!(call(&mut service, READ_AGAIN_MS).await, Answer::Done(_)));
        assert!(matches!(call(&mut service, READ_AGAIN_MS).await, Answer::Done(_)));
    }

    #[tokio::test]
    async fn a_token_is_fetched_with_the_certificate_too() {
        let (of_server, of_clients, secrets) = (Authority::new(), Authority::new(), secrets());
        let stand_in = StandIn::start_tls(of_server.server(&of_clients), [ok()]).await;
        let endpoint = StandIn::start_tls(of_server.server(&of_clients), [token("t-1", 60)]).await;
        insert(&secrets, of_clients.issue(), &of_server);
        let lines = format!("{TLS}\n{}", oauth2(&endpoint));
        let answer = call(&mut payment(&stand_in.base, &lines, &secrets).await, 0).await;
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    }

    #[tokio::test]
    async fn each_fault_of_a_certificate_is_found_at_the_start_with_its_place_and_shown_without_it() {
        let (authority, secrets) = (Authority::new(), secrets());
        let ((certificate, _), (_, other)) = (authority.issue(), authority.issue());
        insert(&secrets, (certificate, other), &authority);
        let fault = async || read_settings(TLS, &secrets).await.unwrap_err().to_string();
        assert_eq!(
            fault().await,
            "agents.toml:2:48: agents.payment.tls.key: env:PRIVATE is not the key of the certificate"
        );
        let broken = authority.pem.replace("MII", "AAA");
        for (name, pem) in [("CERTIFICATE", "hidden"), ("PRIVATE", "hidden"), ("AUTHORITY", &*broken)] {
            secrets.lock().unwrap().insert(name.to_owned(), pem.to_owned());
        }
        assert_eq!(
            fault().await,
            "agents.toml:2:23: agents.payment.tls.certificate: env:CERTIFICATE must be PEM, from -----BEGIN \
             CERTIFICATE----- on; \
             agents.toml:2:48: agents.payment.tls.key: env:PRIVATE must be PEM without a password, from -----BEGIN \
             PRIVATE KEY----- on; \
             agents.toml:2:68: agents.payment.tls.ca: env:AUTHORITY has a certificate that cannot be read: export it \
             again"
        );
    }

    #[tokio::test]
    async fn a_certificate_needs_an_https_url_and_is_not_shown() {
        let (authority, secrets) = (Authority::new(), secrets());
        let (certificate, key) = authority.issue();
        insert(&secrets, (certificate, key.clone()), &authority);
        let settings = read_settings(TLS, &secrets).await.unwrap().of("payment").unwrap().clone();
        let known = settings.auth.as_ref().unwrap().ready(crate::tests::NOW).await.unwrap();
        let shown = format!("{settings:?} {known:?}");
        assert!(key.lines().all(|line| line.starts_with("-----") || !shown.contains(line)), "{shown}");
        let agent = |url| http_agent("payment", url, settings.clone(), &HttpClients::new());
        let fault = agent("http://localhost:1").unwrap_err().to_string();
        assert_eq!(fault, "it is no https URL, though the settings have tls: give one, or leave tls out");
        assert!(agent("https://localhost:1").is_ok());
    }
}
