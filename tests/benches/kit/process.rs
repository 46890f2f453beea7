//! Processes that were started, and what the system says about them.

use std::fs::DirEntry;
use std::io::{self, BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::machine::TICKS_PER_S;

/// Places of user and system time in `/proc/{pid}/stat`, counted behind the program's name.
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;

/// A process of ours, which is killed when this goes.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What a process has taken so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Time of the processors, in milliseconds.
    pub cpu_ms: f64,
    /// Memory that it has, in MiB.
    pub resident_mib: f64,
    /// The most that it had, in MiB.
    pub resident_mib_max: f64,
    /// Bytes that it had written to the disk.
    pub written_bytes: u64,
    /// How often its threads were switched.
    pub switches: u64,
}

impl Process {
    /// Starts a program whose standard output is read line by line.
    ///
    /// # Errors
    /// Where there is no such program.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        Ok(Self { child, lines: BufReader::new(stdout).lines() })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints. Blocks until then.
    ///
    /// # Errors
    /// `UnexpectedEof` where it ended.
    pub fn line(&mut self) -> io::Result<String> {
        self.lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Reads lines until this one.
    ///
    /// # Errors
    /// `UnexpectedEof` where it ended before.
    pub fn line_is(&mut self, wanted: &str) -> io::Result<()> {
        while self.line()? != wanted {}
        Ok(())
    }

    /// Ends it as a power failure would, as far as the process is concerned.
    ///
    /// # Errors
    /// The system's.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Waits until it ended by itself.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }

    /// What it has taken so far.
    ///
    /// # Errors
    /// The system's, where it ended.
    pub fn usage(&self) -> io::Result<Usage> {
        usage(self.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kill();
    }
}

/// What a process has taken so far.
///
/// # Errors
/// The system's, where there is none.
pub fn usage(id: u32) -> io::Result<Usage> {
    let read = |name: &str| std::fs::read_to_string(PathBuf::from(format!("/proc/{id}")).join(name));
    let status = read("status")?;
    let mib = |name| number_behind(&status, name) as f64 / 1_024.0;
    // The program's name is in brackets and may hold anything.
    let stat = read("stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = [USER_TIME, SYSTEM_TIME].iter().filter_map(|&place| fields.get(place)?.parse::<f64>().ok()).sum();
    Ok(Usage {
        // Ticks leave out what runs for less than one; the scheduler's own count leaves out threads that ended.
        cpu_ms: (ticks * 1_000.0 / TICKS_PER_S).max(scheduled_ms(id)),
        resident_mib: mib("VmRSS:"),
        resident_mib_max: mib("VmHWM:"),
        written_bytes: number_behind(&read("io").unwrap_or_default(), "write_bytes:"),
        switches: switches(id),
    })
}

/// What the scheduler says that the threads of a process ran; 0 where it keeps no count.
fn scheduled_ms(id: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let ran_ns = threads.filter_map(|thread| {
        let told = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        told.split_whitespace().next()?.parse::<f64>().ok()
    });
    ran_ns.sum::<f64>() / 1e6
}

/// How often the threads that a process has were switched, by themselves or by the system.
fn switches(id: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let told = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    told.map(|status| {
        number_behind(&status, "voluntary_ctxt_switches:") + number_behind(&status, "nonvoluntary_ctxt_switches:")
    })
    .sum()
}

fn number_behind(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// A program in the folder of this one.
///
/// # Errors
/// Where it is not there: it has to be built first.
pub fn neighbour(name: &str) -> io::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    if program.exists() {
        return Ok(program);
    }
    let problem = format!("{} is not there; build it first: cargo build --release -p {name}", program.display());
    Err(io::Error::new(io::ErrorKind::NotFound, problem))
}

/// What the files of a folder and of those in it take.
///
/// # Errors
/// The system's.
pub fn bytes_in(folder: &Path) -> io::Result<u64> {
    let bytes = |entry: DirEntry| match entry.file_type()?.is_dir() {
        true => bytes_in(&entry.path()),
        false => Ok(entry.metadata()?.len()),
    };
    // A program that runs may have removed it since.
    let still_there = |found: io::Result<u64>| match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => found,
    };
    std::fs::read_dir(folder)?.map(|entry| still_there(bytes(entry?))).sum()
}
