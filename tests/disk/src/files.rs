//! The files, without SQLite: what is written, what is synced, and what a power cut leaves.

use std::collections::BTreeMap;
use std::fmt;

use crate::rng::Rng;

/// The unit in which a write is torn, in bytes.
const SECTOR: usize = 512;

/// A fault of one operation, in 10,000 operations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// A write fails, with a part of it done.
    pub write: u64,
    /// A sync fails. The writes before it are then on the disk, still waiting, or lost, as on Linux. A new length is not
    /// lost.
    pub sync: u64,
    /// A read fails.
    pub read: u64,
}

/// What has happened on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Syncs that succeeded.
    pub syncs: u64,
    /// Syncs that failed.
    pub syncs_failed: u64,
    /// Writes that failed.
    pub writes_failed: u64,
    /// Reads that failed.
    pub reads_failed: u64,
    /// Writes that found no room.
    pub full: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Unsynced writes that a power cut lost, as a whole or in part.
    pub lost: u64,
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The device failed.
    Device,
    /// The disk is full.
    Full,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// One file.
#[derive(Debug, Default)]
struct File {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What is on the disk for sure. `None`: not even the name.
    kept: Option<Vec<u8>>,
    /// The changes since, in order.
    unsynced: Vec<Change>,
}

/// All files of a disk.
#[derive(Debug)]
pub(crate) struct Files {
    files: BTreeMap<String, File>,
    pub(crate) rng: Rng,
    pub(crate) faults: Faults,
    pub(crate) counts: Counts,
    /// The largest sum of all files, in bytes.
    pub(crate) room: Option<usize>,
    /// Without power every operation fails.
    pub(crate) is_off: bool,
    /// The power is cut at this many further writes and syncs.
    pub(crate) cut_after: Option<u64>,
    pub(crate) when_off: Option<Hook>,
}

/// What happens when the power goes off.
pub(crate) struct Hook(pub(crate) Box<dyn Fn() + Send>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}

impl Files {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            files: BTreeMap::new(),
            rng: Rng(seed),
            faults: Faults::default(),
            counts: Counts::default(),
            room: None,
            is_off: false,
            cut_after: None,
            when_off: None,
        }
    }

    /// One write or sync nearer to the power cut.
    fn step(&mut self) -> Result<(), Wrong> {
        if let Some(left) = &mut self.cut_after {
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None if self.is_off => {}
                None => {
                    self.is_off = true;
                    self.when_off.iter().for_each(|hook| hook.0());
                }
            }
        }
        if self.is_off { Err(Wrong::Device) } else { Ok(()) }
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The sum of all files, in bytes.
    pub(crate) fn taken(&self) -> usize {
        self.files.values().map(|file| file.seen.len()).sum()
    }

    pub(crate) fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.files.get(name).map(|file| file.seen.clone())
    }

    pub(crate) fn replace(&mut self, name: &str, content: Option<Vec<u8>>) {
        self.files.remove(name);
        let file = content.map(|content| File { kept: Some(content.clone()), seen: content, unsynced: Vec::new() });
        file.into_iter().for_each(|file| drop(self.files.insert(name.to_owned(), file)));
    }

    pub(crate) fn create(&mut self, name: &str) {
        self.files.entry(name.to_owned()).or_default();
    }

    pub(crate) fn delete(&mut self, name: &str) -> Result<(), Wrong> {
        self.step()?;
        self.files.remove(name);
        Ok(())
    }

    pub(crate) fn length(&self, name: &str) -> usize {
        self.files.get(name).map_or(0, |file| file.seen.len())
    }

    /// Reads as many bytes as there are.
    pub(crate) fn read(&mut self, name: &str, offset: usize, into: &mut [u8]) -> Result<usize, Wrong> {
        if self.is_off {
            return Err(Wrong::Device);
        }
        if self.rng.chance(self.faults.read) {
            self.counts.reads_failed += 1;
            return Err(Wrong::Device);
        }
        let seen = self.files.get(name).map_or(&[][..], |file| &file.seen);
        let found = seen.get(offset..).unwrap_or_default();
        let length = found.len().min(into.len());
        into[..length].copy_from_slice(&found[..length]);
        Ok(length)
    }

    pub(crate) fn write(&mut self, name: &str, offset: usize, bytes: &[u8]) -> Result<(), Wrong> {
        self.step()?;
        let all = self.taken();
        let more = (offset + bytes.len()).saturating_sub(self.length(name));
        if more > 0 && self.room.is_some_and(|room| all + more > room) {
            self.counts.full += 1;
            return Err(Wrong::Full);
        }
        let fails = self.rng.chance(self.faults.write);
        let done = if fails { self.rng.below(bytes.len() + 1) } else { bytes.len() };
        let file = self.files.entry(name.to_owned()).or_default();
        file.change(Change::Write(offset, bytes[..done].to_vec()));
        if fails {
            self.counts.writes_failed += 1;
            return Err(Wrong::Device);
        }
        Ok(())
    }

    pub(crate) fn truncate(&mut self, name: &str, length: usize) -> Result<(), Wrong> {
        self.step()?;
        if let Some(file) = self.files.get_mut(name) {
            file.change(Change::Length(length));
        }
        Ok(())
    }

    pub(crate) fn sync(&mut self, name: &str) -> Result<(), Wrong> {
        self.step()?;
        let fails = self.rng.chance(self.faults.sync);
        let Some(file) = self.files.get_mut(name) else { return Ok(()) };
        if !fails {
            self.counts.syncs += 1;
            let kept = file.kept.get_or_insert_default();
            file.unsynced.drain(..).for_each(|change| change.apply(kept));
            return Ok(());
        }
        self.counts.syncs_failed += 1;
        let kept = file.kept.get_or_insert_default();
        // Linux forgets that a page was to be written, but not that a file has another length: that is in the journal of
        // the file system. What comes after it comes after it on the disk, too.
        let mut is_behind_length = false;
        for change in std::mem::take(&mut file.unsynced) {
            let is_length = matches!(change, Change::Length(_));
            match self.rng.below(3) {
                0 if !is_behind_length => change.apply(kept),
                2 if !is_length => {}
                _ => {
                    is_behind_length |= is_length;
                    file.unsynced.push(change);
                }
            }
        }
        Err(Wrong::Device)
    }

    /// Cuts the power and turns it on again: what was not synced is kept, lost or torn.
    pub(crate) fn cut(&mut self) {
        self.counts.cuts += 1;
        let (rng, counts) = (&mut self.rng, &mut self.counts);
        // Some disks lose nothing, some all, most a part.
        let kept_in_3 = rng.below(4);
        self.files.retain(|_, file| {
            let unsynced = std::mem::take(&mut file.unsynced);
            let mut image = match file.kept.take() {
                Some(image) => image,
                None if rng.below(2) == 0 => Vec::new(),
                None => return false,
            };
            for change in unsynced {
                if rng.below(3) < kept_in_3 {
                    change.apply(&mut image);
                    continue;
                }
                counts.lost += 1;
                if let Change::Write(offset, bytes) = change
                    && rng.below(3) == 0
                {
                    for (place, sector) in bytes.chunks(SECTOR).enumerate() {
                        if rng.below(2) == 0 {
                            Change::Write(offset + place * SECTOR, sector.to_vec()).apply(&mut image);
                        }
                    }
                }
            }
            file.seen.clone_from(&image);
            file.kept = Some(image);
            true
        });
        self.turn_on();
    }

    pub(crate) fn turn_on(&mut self) {
        (self.is_off, self.cut_after) = (false, None);
    }
}

impl File {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.unsynced.push(change);
    }
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write(offset, bytes) => {
                let end = offset + bytes.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[*offset..end].copy_from_slice(bytes);
            }
            Self::Length(length) => image.resize(*length, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &mut Files, name: &str) -> Vec<u8> {
        let mut bytes = vec![0; files.length(name)];
        assert_eq!(files.read(name, 0, &mut bytes), Ok(bytes.len()));
        bytes
    }

    #[test]
    fn what_is_synced_outlasts_every_power_cut_and_what_is_not_is_kept_lost_or_torn() {
        let (mut kept, mut lost, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let mut files = Files::new(seed);
            files.write("a", 0, &[1; 2_048]).unwrap();
            files.sync("a").unwrap();
            files.write("a", 0, &[2; 2_048]).unwrap();
            files.cut();
            let image = read(&mut files, "a");
            assert_eq!(image.len(), 2_048);
            match image.iter().filter(|byte| **byte == 2).count() {
                2_048 => kept += 1,
                0 => lost += 1,
                _ => torn += 1,
            }
        }
        assert!(kept > 10 && lost > 10 && torn > 10, "{kept} {lost} {torn}");
    }

    #[test]
    fn without_power_nothing_works_and_a_file_that_was_never_synced_may_be_gone() {
        let gone = (0..50).filter(|seed| {
            let mut files = Files::new(*seed);
            files.cut_after = Some(1);
            files.write("a", 0, b"x").unwrap();
            assert_eq!(files.write("a", 1, b"y"), Err(Wrong::Device));
            assert_eq!(files.sync("a"), Err(Wrong::Device));
            files.cut();
            !files.exists("a")
        });
        assert!((5..45).contains(&gone.count()));
    }

    #[test]
    fn a_full_disk_refuses_only_what_grows() {
        let mut files = Files::new(1);
        files.room = Some(10);
        files.write("a", 0, &[1; 10]).unwrap();
        assert_eq!(files.write("b", 0, b"x"), Err(Wrong::Full));
        files.write("a", 0, &[2; 10]).unwrap();
        assert_eq!((read(&mut files, "a"), files.counts.full), (vec![2; 10], 1));
    }
}
