//! Restate, with the order of the bench as a handler: installed from its registry packages, and run as a user runs it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tests::bench::process::{Process, Usage};
use tests::bench::served::Stub;
use tests::bench::{Wire, document};
use tokio::runtime::Runtime;

/// What is measured.
pub(crate) const NAME: &str = "Restate 1.7.12, 4 partitions, handler in Rust (SDK 0.13.0)";
/// Its path for an order with a key.
pub(crate) const PATH: &str = "/Order/{}/carry";
const PACKAGE: &str = "@restatedev/restate-server";
const VERSION: &str = "1.7.12";
const PARTITIONS: &str = "4";
const STARTED_MAX: Duration = Duration::from_secs(60);

/// The programs.
#[derive(Debug)]
pub(crate) struct Installed {
    server: PathBuf,
    worker: PathBuf,
}

/// A server and its worker, on a directory of the caller's.
#[derive(Debug)]
pub(crate) struct Restate {
    server: Process,
    worker: Process,
    address: SocketAddr,
}

impl Installed {
    /// Installs the server by npm and builds the worker, beside the build of this program. The next time takes a second.
    ///
    /// # Errors
    /// Where npm or cargo is missing or fails.
    pub(crate) fn install() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let build = program.ancestors().nth(2).ok_or_else(|| io::Error::other("no folder for a peer"))?;
        let (folder, target) = (build.join("peer"), build.join("peer/target"));
        fs::create_dir_all(&folder)?;
        let prefix = folder.as_os_str();
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(prefix);
        succeeds(npm.arg(format!("{PACKAGE}@{VERSION}")))?;
        // Not in the checkout: that would get a lock file.
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peer");
        for name in ["Cargo.toml", "worker.rs"] {
            fs::copy(sources.join(name), folder.join(name))?;
        }
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--manifest-path"]).arg(folder.join("Cargo.toml"));
        succeeds(cargo.arg("--target-dir").arg(&target))?;
        let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        let server = format!("node_modules/{PACKAGE}-{system}-{processor}/bin/restate-server");
        Ok(Self { server: folder.join(server), worker: target.join("release/peer") })
    }
}

fn succeeds(command: &mut Command) -> io::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{program} failed: {status}"))) }
}

impl Restate {
    /// Starts both on free ports, and waits until they have carried an order.
    ///
    /// # Errors
    /// Where one of them does not start.
    pub(crate) fn start(installed: &Installed, data: &Path, stub: &Stub, runtime: &Runtime) -> io::Result<Self> {
        let [address, admin, node, of_worker] = free_addresses()?;
        let mut command = Command::new(&installed.worker);
        command.arg(of_worker.to_string()).args(stub.addresses().map(|address| address.to_string()));
        let mut worker = Process::start(&mut command)?;
        worker.line_is("ready")?;
        let mut command = Command::new(&installed.server);
        command
            .arg("--no-logo")
            // Without a network, it reports that it cannot look for a newer version.
            .stderr(Stdio::null())
            .env("RESTATE_BASE_DIR", data)
            .env("RESTATE_LISTEN_MODE", "tcp")
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", PARTITIONS)
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("RESTATE_LOG_FILTER", "error")
            .env("RESTATE_BIND_ADDRESS", node.to_string())
            .env("RESTATE_ADMIN__BIND_ADDRESS", admin.to_string())
            .env("RESTATE_INGRESS__BIND_ADDRESS", address.to_string());
        let server = Process::start(&mut command)?;
        let worker_url = json!({"uri": format!("http://{of_worker}")}).to_string();
        for (address, path, body) in
            [(admin, "/deployments", worker_url), (address, &*PATH.replace("{}", "first"), document(0))]
        {
            let began = Instant::now();
            while !matches!(runtime.block_on(posted(address, path, &body)), Ok(200 | 201)) {
                if began.elapsed() > STARTED_MAX {
                    return Err(io::Error::other(format!("Restate does not take what is posted to {path}")));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(Self { server, worker, address })
    }

    /// Where orders are posted.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What both have taken.
    ///
    /// # Errors
    /// Where one of them ended.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        let (server, worker) = (self.server.usage()?, self.worker.usage()?);
        Ok(Usage {
            cpu_ms: server.cpu_ms + worker.cpu_ms,
            resident_mib: server.resident_mib + worker.resident_mib,
            resident_mib_max: server.resident_mib_max + worker.resident_mib_max,
            written_bytes: server.written_bytes + worker.written_bytes,
            switches: server.switches + worker.switches,
        })
    }
}

/// The status with which the server answers.
async fn posted(address: SocketAddr, path: &str, body: &str) -> io::Result<u16> {
    let mut wire = Wire::open(address).await?;
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
    wire.send(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).await?;
    Ok(wire.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?.status())
}

/// Free addresses on this machine.
fn free_addresses<const N: usize>() -> io::Result<[SocketAddr; N]> {
    let listeners: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<io::Result<_>>()?;
    let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
    addresses.try_into().map_err(|_| io::Error::other("too few addresses"))
}
