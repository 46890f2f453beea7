//! Binding a port and a socket, with a one-line error for the user.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::BadSetting;
use crate::http_server::{Listening, SocketFile, Tls};

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

/// Listens on a port; 0 picks a free one.
///
/// # Errors
/// [`BadSetting`]; its message names the remedy.
pub async fn bind(host: IpAddr, port: u16) -> Result<TcpListener, BadSetting> {
    let address = SocketAddr::new(host, port);
    TcpListener::bind(address).await.map_err(|error| why(address, &error))
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
    /// [`BadSetting`]; its message names the remedy.
    pub async fn open(&self) -> Result<Listening, BadSetting> {
        let tls = self.tls.as_ref().map(|(certificates, key)| Tls::read(certificates, key));
        let tls = tls.transpose().map_err(|error| BadSetting(error.to_string()))?;
        let port = match self.port {
            Some(port) => Some(bind(self.host, port).await?),
            None => None,
        };
        let socket = match &self.socket {
            Some(path) => Some(SocketFile::bind(path).await.map_err(|error| why_not(path, &error))?),
            None => None,
        };
        Ok(Listening { port, tls: tls.map(Arc::new), socket })
    }
}

fn why_not(path: &Path, error: &io::Error) -> BadSetting {
    let (kind, path) = (error.kind(), path.display());
    BadSetting(if kind == ErrorKind::AddrInUse {
        format!("another process listens on {path}: end it, or choose another path with --socket")
    } else if kind == ErrorKind::AlreadyExists {
        format!("{path} is no socket: remove it, or choose another path with --socket")
    } else {
        format!("cannot listen on {path}: {error}; choose another path with --socket")
    })
}

fn why(address: SocketAddr, error: &io::Error) -> BadSetting {
    let (kind, host, port) = (error.kind(), address.ip(), address.port());
    BadSetting(if kind == ErrorKind::AddrInUse {
        format!("port {port} is taken; choose another with --port: commands then need --api http://localhost:PORT")
    } else if kind == ErrorKind::PermissionDenied {
        format!("port {port} is for privileged users; choose one from 1024 with --port")
    } else if kind == ErrorKind::AddrNotAvailable {
        format!("{host} is not an address of this machine; choose another with --host")
    } else {
        format!("cannot listen on {address}: {error}")
    })
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
