//! What a server listens on: a port, with TLS or without, a socket in the file system, or both.

use std::fs::{self, Permissions};
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixSocket, UnixStream};
use tokio::select;
use tokio_rustls::TlsAcceptor;

use super::limits::network;
use super::stream::Transport;
use super::tls::Tls;

/// Connections of a socket that the system keeps until they are accepted.
const BACKLOG: u32 = 1_024;
/// The network of all clients of the socket. No address on a port is this one.
const OF_THE_SOCKET: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// What a server listens on: a port, a socket, or both.
#[derive(Debug, Default)]
pub struct Listening {
    /// The port.
    pub port: Option<TcpListener>,
    /// The certificate of the port, if it speaks TLS.
    pub tls: Option<Arc<Tls>>,
    /// The socket. It has no TLS: nothing of it leaves this machine.
    pub socket: Option<SocketFile>,
}

/// A listening socket in the file system, which only its owner can open. Dropping it removes the file.
#[derive(Debug)]
pub struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file: what another process puts in its place stays.
    file: (u64, u64),
}

/// A connection that a client opened.
pub(super) struct Accepted {
    pub(super) stream: Box<dyn Transport>,
    /// `None`: it came by the socket.
    pub(super) client: Option<IpAddr>,
    /// The handshake that comes first.
    pub(super) tls: Option<TlsAcceptor>,
}

impl From<TcpListener> for Listening {
    fn from(port: TcpListener) -> Self {
        Self { port: Some(port), ..Self::default() }
    }
}

impl Listening {
    /// The address of the port.
    ///
    /// # Errors
    /// If the port has no address; a bound one always has.
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.port.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// The next connection. Cancel-safe.
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        select! {
            accepted = of_port(self.port.as_ref()) => {
                let (stream, client) = accepted?;
                let tls = self.tls.as_ref().map(|tls| tls.acceptor());
                Ok(Accepted { stream: Box::new(prepared(stream)), client: Some(client.ip()), tls })
            }
            accepted = of_socket(self.socket.as_ref()) => {
                Ok(Accepted { stream: Box::new(accepted?), client: None, tls: None })
            }
        }
    }
}

impl Accepted {
    /// The network of the client.
    pub(super) fn network(&self) -> IpAddr {
        self.client.map_or(OF_THE_SOCKET, network)
    }
}

async fn of_port(port: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match port {
        Some(port) => port.accept().await,
        None => pending().await,
    }
}

async fn of_socket(socket: Option<&SocketFile>) -> io::Result<UnixStream> {
    match socket {
        Some(socket) => Ok(socket.listener.accept().await?.0),
        None => pending().await,
    }
}

/// Answers are small and urgent.
fn prepared(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("no delay: {error}");
    }
    stream
}

impl SocketFile {
    /// Listens at this path. What a killed process left there is replaced.
    ///
    /// # Errors
    /// `AddrInUse` if a process listens there, `AlreadyExists` if there is another kind of file; else the system's.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        // The process may change its directory before it removes the file.
        let path = std::path::absolute(path)?;
        make_room(&path).await?;
        let socket = UnixSocket::new_stream()?;
        socket.bind(&path)?;
        // The mode is set before the socket listens. Clients can connect only after that.
        let about = fs::set_permissions(&path, Permissions::from_mode(0o600)).and_then(|()| fs::metadata(&path))?;
        Ok(Self { listener: socket.listen(BACKLOG)?, file: (about.dev(), about.ino()), path })
    }

    /// Its path, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

async fn make_room(path: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    if !about.file_type().is_socket() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        // Its queue is full: somebody has to be there.
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        Ok(_) | Err(_) => Err(ErrorKind::AddrInUse.into()),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|about| (about.dev(), about.ino()) == self.file);
        if is_own && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("{} stays: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_its_owners_alone_and_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let socket = SocketFile::bind(&path).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).await.unwrap();
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "as after a kill");
        let socket = SocketFile::bind(&path).await.unwrap();
        assert_eq!(SocketFile::bind(&path).await.unwrap_err().kind(), ErrorKind::AddrInUse);
        UnixStream::connect(&path).await.unwrap();
        // Somebody removes it by hand, and another server takes the path: the first one leaves that alone.
        fs::remove_file(&path).unwrap();
        let second = SocketFile::bind(&path).await.unwrap();
        drop(socket);
        UnixStream::connect(&path).await.unwrap();
        drop(second);
    }

    #[tokio::test]
    async fn another_kind_of_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.json");
        fs::write(&path, "{}").unwrap();
        assert_eq!(SocketFile::bind(&path).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"{}");
    }
}
