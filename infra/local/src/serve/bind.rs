//! Binding a port and a socket, with a one-line error for the user.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::http_server::{Listening, SocketFile, Tls, TlsError};

/// Where the API listens.
#[derive(Debug, Clone)]
pub struct Listen {
    /// The address of the port.
    pub host: IpAddr,
    /// The port; 0 picks a free one. `None`: the socket alone.
    pub port: Option<u16>,
    /// The files of the certificate and of its key, for TLS on the port.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The socket in the file system.
    pub socket: Option<PathBuf>,
}

/// A port could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens on the port.
    #[error("port {0} is taken; choose another with --port: commands then need --api http://localhost:PORT")]
    PortTaken(u16),
    /// Only a privileged user may listen on the port.
    #[error("port {0} is for privileged users; choose one from 1024 with --port")]
    NotAllowed(u16),
    /// The address is not one of this machine's.
    #[error("{0} is not an address of this machine; choose another with --host")]
    NoSuchAddress(IpAddr),
    /// Another process listens on the socket.
    #[error("another process listens on {}: end it, or choose another path with --socket", .0.display())]
    SocketTaken(PathBuf),
    /// The path of the socket is that of another file.
    #[error("{} is no socket: remove it, or choose another path with --socket", .0.display())]
    NotASocket(PathBuf),
    /// Any other error of the socket.
    #[error("cannot listen on {}: {source}; choose another path with --socket", .path.display())]
    Socket {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Any other error.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// Listens on a port; 0 picks a free one.
///
/// # Errors
/// [`BindError`]; its message names the remedy.
pub async fn bind(host: IpAddr, port: u16) -> Result<TcpListener, BindError> {
    let address = SocketAddr::new(host, port);
    TcpListener::bind(address).await.map_err(|source| why(address, source))
}

impl Listen {
    /// Whether other machines can call.
    #[must_use]
    pub fn lets_others_in(&self) -> bool {
        self.port.is_some() && !self.host.to_canonical().is_loopback()
    }

    /// Listens.
    ///
    /// # Errors
    /// [`BindError`]; its message names the remedy.
    pub async fn open(&self) -> Result<Listening, BindError> {
        let tls = self.tls.as_ref().map(|(certificates, key)| Tls::read(certificates, key)).transpose()?;
        let port = match self.port {
            Some(port) => Some(bind(self.host, port).await?),
            None => None,
        };
        let socket = match &self.socket {
            Some(path) => Some(SocketFile::bind(path).await.map_err(|source| why_not(path, source))?),
            None => None,
        };
        Ok(Listening { port, tls: tls.map(Arc::new), socket })
    }
}

fn why_not(path: &Path, source: io::Error) -> BindError {
    let (kind, path) = (source.kind(), path.to_owned());
    if kind == ErrorKind::AddrInUse {
        BindError::SocketTaken(path)
    } else if kind == ErrorKind::AlreadyExists {
        BindError::NotASocket(path)
    } else {
        BindError::Socket { path, source }
    }
}

fn why(address: SocketAddr, source: io::Error) -> BindError {
    let kind = source.kind();
    if kind == ErrorKind::AddrInUse {
        BindError::PortTaken(address.port())
    } else if kind == ErrorKind::PermissionDenied {
        BindError::NotAllowed(address.port())
    } else if kind == ErrorKind::AddrNotAvailable {
        BindError::NoSuchAddress(address.ip())
    } else {
        BindError::Other { address, source }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_told_with_the_way_out() {
        let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let first = bind(host, 0).await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = bind(host, port).await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("port {port} is taken; choose another with --port: commands then need --api http://localhost:PORT")
        );
    }

    #[tokio::test]
    async fn an_address_of_somebody_else_is_told() {
        // Reserved for documentation; no machine has this address.
        let error = bind("192.0.2.1".parse().unwrap(), 0).await.unwrap_err().to_string();
        assert_eq!(error, "192.0.2.1 is not an address of this machine; choose another with --host");
    }
}
