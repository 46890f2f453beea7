//! The output of the log lines. A line that cannot be written is lost; the loss has no other effect.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The longest time that a line waits for its reader, in nanoseconds. After one wait in vain, later lines do not wait.
const WAIT_NS_MAX: i64 = 100_000_000;
/// A writable pipe takes this many bytes without waiting for its reader.
const PART_BYTES_MAX: usize = 4_096;

/// Writes whole lines to one destination.
pub(super) struct Output {
    to: Box<dyn Write + Send>,
    /// True while the last line that was begun has no end.
    is_torn: bool,
}

impl Output {
    pub(super) fn new(to: impl Write + Send + 'static) -> Self {
        Self { to: Box::new(to), is_torn: false }
    }

    /// Writes one complete line, newline included. Returns whether all of it was written.
    pub(super) fn write_line(&mut self, line: &[u8]) -> bool {
        if self.is_torn && self.write(b"\n") == 0 {
            return false;
        }
        let written = self.write(line);
        self.is_torn = (1..line.len()).contains(&written);
        written == line.len()
    }

    /// Returns the number of bytes that it wrote.
    fn write(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match self.to.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(some) => written += some,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        written
    }
}

/// The process's stdout. It has no buffer and never waits for a reader that does not read.
pub(super) struct Stdout {
    /// `None` if the process has no stdout.
    file: Option<File>,
    is_stuck: bool,
}

impl Stdout {
    pub(super) fn open() -> Self {
        Self::to(io::stdout())
    }

    fn to(stdout: impl AsFd) -> Self {
        Self { file: stdout.as_fd().try_clone_to_owned().ok().map(File::from), is_stuck: false }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        let wait = Timespec { tv_sec: 0, tv_nsec: if self.is_stuck { 0 } else { WAIT_NS_MAX } };
        self.is_stuck = poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&wait))? == 0;
        if self.is_stuck {
            return Err(ErrorKind::TimedOut.into());
        }
        file.write(&bytes[..bytes.len().min(PART_BYTES_MAX)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_reader_that_went_away_is_no_matter() {
        let (reader, writer) = io::pipe().unwrap();
        let mut output = Output::new(Stdout::to(writer));
        drop(reader);
        output.write_line(b"one\n");
        output.write_line(b"two\n");
    }

    #[test]
    fn a_reader_that_does_not_read_loses_lines_and_holds_nobody_up() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = Output::new(Stdout::to(writer));
        let line = [&[b'x'; 9_999][..], b"\n"].concat();
        let written = (0..100).filter(|_| output.write_line(&line)).count();
        assert!((4..100).contains(&written), "it says which are lost");
        let mut room = vec![0; 40_000];
        reader.read_exact(&mut room).unwrap();
        output.write_line(b"at last\n");
        drop(output);
        let mut text = String::from_utf8(room).unwrap();
        reader.read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let (last, before) = lines.split_last().unwrap();
        assert_eq!(*last, "at last", "on a line of its own, though the one before was torn");
        assert!((4..100).contains(&before.len()));
        assert!(before.iter().rev().skip(1).all(|line| line.len() == 9_999));
    }

    #[test]
    fn a_line_is_written_whole_in_several_parts() {
        /// Accepts three bytes at once, and sometimes none.
        struct Few(Vec<u8>, io::PipeWriter);
        impl Write for Few {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(b'.');
                if self.0.len().is_multiple_of(2) {
                    return Err(ErrorKind::Interrupted.into());
                }
                self.1.write(&bytes[..bytes.len().min(3)])
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = Output::new(Few(Vec::new(), writer));
        output.write_line(b"{\"message\":\"whole\"}\n");
        drop(output);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "{\"message\":\"whole\"}\n");
    }
}
