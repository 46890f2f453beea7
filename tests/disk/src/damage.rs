//! Files that are lost or cut while no process uses them, and what a database holds then.

use std::io;
use std::sync::{Arc, Mutex};

use rusqlite::config::DbConfig;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags};

use crate::{Disk, State, VFS, lock};

impl Disk {
    /// The content of a file. `None`: there is none.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        lock(&self.state).files.content(name)
    }

    /// Replaces the content of a file for good, or removes it.
    pub fn replace(&self, name: &str, content: Option<Vec<u8>>) {
        lock(&self.state).files.replace(name, content);
    }

    /// Asks a copy of a database, and so changes nothing.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn ask<T: FromSql>(&self, database: &str, sql: &str) -> rusqlite::Result<T> {
        let copy = Self::new(0);
        for name in [database.to_owned(), format!("{database}-wal"), format!("{database}-journal")] {
            copy.replace(&name, self.content(&name));
        }
        let connection = Connection::open_with_flags_and_vfs(copy.path(database), OpenFlags::default(), VFS)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.query_row(sql, [], |row| row.get(0))
    }

    /// A file of this disk, without SQLite.
    #[must_use]
    pub fn file(&self, name: &str) -> SmallFile {
        SmallFile { state: self.state.clone(), name: name.to_owned() }
    }
}

/// A small file, which is read and written as a whole.
#[derive(Debug)]
pub struct SmallFile {
    state: Arc<Mutex<State>>,
    name: String,
}

impl SmallFile {
    /// The content.
    ///
    /// # Errors
    /// There is no such file, or the disk fails.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let files = &mut lock(&self.state).files;
        if !files.exists(&self.name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut content = vec![0; files.length(&self.name)];
        files.read(&self.name, 0, &mut content).map_err(|_| failed())?;
        Ok(content)
    }

    /// Writes this from the beginning.
    ///
    /// # Errors
    /// The disk fails or is full. A part may be written.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        let files = &mut lock(&self.state).files;
        files.create(&self.name);
        files.write(&self.name, 0, content).map_err(|_| failed())
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> io::Result<()> {
        lock(&self.state).files.sync(&self.name).map_err(|_| failed())
    }
}

fn failed() -> io::Error {
    io::Error::other("the disk failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_loses_what_was_not_synced_and_keeps_what_was() {
        let lost = (0..50).filter(|seed| {
            let disk = Disk::new(*seed);
            let file = disk.file("number");
            assert!(file.read().is_err());
            file.write(b"1").unwrap();
            file.sync().unwrap();
            file.write(b"2").unwrap();
            assert_eq!(file.read().unwrap(), b"2");
            disk.cut();
            file.read().unwrap() == b"1"
        });
        assert!((5..45).contains(&lost.count()));
    }

    #[test]
    fn a_database_without_its_log_is_asked_about_and_nothing_changes() {
        let disk = Disk::new(1);
        let connection = Connection::open_with_flags_and_vfs(disk.path("db"), OpenFlags::default(), VFS).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch("CREATE TABLE numbers (number); INSERT INTO numbers VALUES (7)").unwrap();
        disk.turn_off();
        drop(connection);
        disk.turn_on();
        let files = || [disk.content("db"), disk.content("db-wal")];
        let before = files();
        assert_eq!(disk.ask::<i64>("db", "SELECT number FROM numbers").unwrap(), 7);
        assert_eq!(files(), before);
        disk.replace("db-wal", None);
        disk.ask::<i64>("db", "SELECT number FROM numbers").unwrap_err();
    }
}
