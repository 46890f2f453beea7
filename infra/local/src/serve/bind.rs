//! Binding a port, with a one-line error for the user.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpListener;

/// A port could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens on the port.
    #[error("port {0} is taken; choose another with --port")]
    PortTaken(u16),
    /// Only a privileged user may listen on the port.
    #[error("port {0} is for privileged users; choose one from 1024 with --port")]
    NotAllowed(u16),
    /// The address is not one of this machine's.
    #[error("{0} is not an address of this machine; choose another with --host")]
    NoSuchAddress(IpAddr),
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
        assert_eq!(error, format!("port {port} is taken; choose another with --port"));
    }

    #[tokio::test]
    async fn an_address_of_somebody_else_is_told() {
        // Reserved for documentation; no machine has this address.
        let error = bind("192.0.2.1".parse().unwrap(), 0).await.unwrap_err().to_string();
        assert_eq!(error, "192.0.2.1 is not an address of this machine; choose another with --host");
    }
}
