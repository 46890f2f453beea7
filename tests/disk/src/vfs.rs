//! The table of functions by which SQLite uses a disk.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, Once};

use rusqlite::ffi::{
    SQLITE_ACCESS_EXISTS, SQLITE_BUSY, SQLITE_CANTOPEN, SQLITE_FULL, SQLITE_IOCAP_POWERSAFE_OVERWRITE, SQLITE_IOERR,
    SQLITE_IOERR_FSYNC, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_NOTFOUND, SQLITE_OK, SQLITE_OPEN_CREATE,
    SQLITE_OPEN_DELETEONCLOSE, SQLITE_SHM_EXCLUSIVE, SQLITE_SHM_LOCK, sqlite3_file, sqlite3_int64, sqlite3_io_methods,
    sqlite3_vfs, sqlite3_vfs_register,
};

use crate::files::Wrong;
use crate::{DISKS, State, lock};

/// The name of the VFS, for a connection that is opened with [`crate::Disk::path`].
pub const VFS: &str = "disk";

const SECTOR: c_int = 4_096;
/// The 1st of January 2026, as a Julian day in milliseconds.
const NOW_MS: sqlite3_int64 = 212_634_072_000_000;

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(raise),
    xUnlock: Some(lower),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(index_map),
    xShmLock: Some(index_lock),
    xShmBarrier: Some(index_barrier),
    xShmUnmap: Some(index_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// What SQLite keeps of an open file. The first member must be SQLite's own.
#[repr(C)]
struct Open {
    base: sqlite3_file,
    handle: *mut Handle,
}

struct Handle {
    state: Arc<Mutex<State>>,
    name: String,
    number: u64,
    is_temporary: bool,
}

/// Makes the VFS known to SQLite. Only the first call does something.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let size = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let vfs = Box::leak(Box::new(sqlite3_vfs {
            iVersion: 2,
            szOsFile: size(size_of::<Open>()),
            mxPathname: 512,
            pNext: null_mut(),
            zName: c"disk".as_ptr(),
            pAppData: null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_path),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(time),
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(time_ms),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }));
        // SAFETY: the table lives for ever, and each function keeps what SQLite expects of it.
        let code = unsafe { sqlite3_vfs_register(vfs, 0) };
        assert_eq!(code, SQLITE_OK, "SQLite takes a table of its own version");
    });
}

/// The disk and the file of a path.
fn place(path: &str) -> Option<(Arc<Mutex<State>>, String)> {
    let (number, name) = path.strip_prefix('/')?.split_once('/')?;
    let state = lock(&DISKS).get(&number.parse().ok()?)?.clone();
    Some((state, name.to_owned()))
}

/// # Safety
/// `path` is null or a C string.
unsafe fn place_of(path: *const c_char) -> Option<(Arc<Mutex<State>>, String)> {
    if path.is_null() {
        return None;
    }
    // SAFETY: by the contract of this function.
    place(unsafe { CStr::from_ptr(path) }.to_str().ok()?)
}

/// # Safety
/// `file` was opened by [`open`] and is not closed.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a Handle {
    // SAFETY: by the contract of this function, `file` is an `Open` whose handle lives until `close`.
    unsafe { &*(*file.cast::<Open>()).handle }
}

fn code(outcome: Result<(), Wrong>, device: c_int) -> c_int {
    match outcome {
        Ok(()) => SQLITE_OK,
        Err(Wrong::Device) => device,
        Err(Wrong::Full) => SQLITE_FULL,
    }
}

fn at(offset: sqlite3_int64) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

unsafe extern "C" fn open(
    _vfs: *mut sqlite3_vfs,
    path: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let opened = file.cast::<Open>();
    // SAFETY: SQLite gives room for an `Open`. Without methods it does not close the file after an error.
    unsafe { (*opened).base.pMethods = std::ptr::null() };
    // SAFETY: SQLite gives a C string, or null for a temporary file. This disk has no temporary files of SQLite's.
    let Some((state, name)) = (unsafe { place_of(path) }) else { return SQLITE_CANTOPEN };
    let number = {
        let State { files, locks } = &mut *lock(&state);
        if files.is_off || (!files.exists(&name) && flags & SQLITE_OPEN_CREATE == 0) {
            return SQLITE_CANTOPEN;
        }
        files.create(&name);
        locks.last_handle += 1;
        locks.last_handle
    };
    let is_temporary = flags & SQLITE_OPEN_DELETEONCLOSE != 0;
    // SAFETY: as above; SQLite may pass no place for the flags.
    unsafe {
        (*opened).handle = Box::into_raw(Box::new(Handle { state, name, number, is_temporary }));
        (*opened).base.pMethods = &raw const METHODS;
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    SQLITE_OK
}

unsafe extern "C" fn delete(_vfs: *mut sqlite3_vfs, path: *const c_char, _sync_folder: c_int) -> c_int {
    // SAFETY: SQLite gives a C string.
    match unsafe { place_of(path) } {
        Some((state, name)) => code(lock(&state).files.delete(&name), SQLITE_IOERR),
        None => SQLITE_IOERR,
    }
}

unsafe extern "C" fn access(_vfs: *mut sqlite3_vfs, path: *const c_char, flags: c_int, result: *mut c_int) -> c_int {
    // SAFETY: SQLite gives a C string.
    let place = unsafe { place_of(path) };
    let exists = place.is_some_and(|(state, name)| lock(&state).files.exists(&name));
    // SAFETY: SQLite gives a place for the result.
    unsafe { *result = c_int::from(exists || flags != SQLITE_ACCESS_EXISTS) };
    SQLITE_OK
}

unsafe extern "C" fn full_path(_vfs: *mut sqlite3_vfs, path: *const c_char, room: c_int, into: *mut c_char) -> c_int {
    // SAFETY: SQLite gives a C string.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes_with_nul();
    if bytes.len() > usize::try_from(room).unwrap_or(0) {
        return SQLITE_CANTOPEN;
    }
    // SAFETY: `into` has this much room.
    unsafe { bytes.as_ptr().copy_to_nonoverlapping(into.cast(), bytes.len()) };
    SQLITE_OK
}

unsafe extern "C" fn randomness(_vfs: *mut sqlite3_vfs, length: c_int, into: *mut c_char) -> c_int {
    // SAFETY: `into` has this much room. SQLite uses these bits for names and salts.
    unsafe { into.cast::<u8>().write_bytes(0x5a, usize::try_from(length).unwrap_or(0)) };
    length
}

unsafe extern "C" fn sleep(_vfs: *mut sqlite3_vfs, microseconds: c_int) -> c_int {
    microseconds
}

unsafe extern "C" fn time(_vfs: *mut sqlite3_vfs, into: *mut f64) -> c_int {
    // SAFETY: SQLite gives a place for the time.
    unsafe { *into = NOW_MS as f64 / 86_400_000.0 };
    SQLITE_OK
}

unsafe extern "C" fn time_ms(_vfs: *mut sqlite3_vfs, into: *mut sqlite3_int64) -> c_int {
    // SAFETY: SQLite gives a place for the time.
    unsafe { *into = NOW_MS };
    SQLITE_OK
}

unsafe extern "C" fn last_error(_vfs: *mut sqlite3_vfs, _length: c_int, _into: *mut c_char) -> c_int {
    0
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes an open file once.
    let handle = unsafe { Box::from_raw((*file.cast::<Open>()).handle) };
    let State { files, locks } = &mut *lock(&handle.state);
    locks.close(&handle.name, handle.number);
    if handle.is_temporary {
        // Nobody asks for its result.
        let _ = files.delete(&handle.name);
    }
    SQLITE_OK
}

unsafe extern "C" fn read(file: *mut sqlite3_file, into: *mut c_void, length: c_int, offset: sqlite3_int64) -> c_int {
    // SAFETY: SQLite reads open files only, into a place of this length.
    let (handle, into) = unsafe {
        let into = into.cast::<u8>();
        into.write_bytes(0, usize::try_from(length).unwrap_or(0));
        (handle(file), std::slice::from_raw_parts_mut(into, usize::try_from(length).unwrap_or(0)))
    };
    match lock(&handle.state).files.read(&handle.name, at(offset), into) {
        Ok(read) if read == into.len() => SQLITE_OK,
        Ok(_) => SQLITE_IOERR_SHORT_READ,
        Err(_) => SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite writes open files only, from a place of this length.
    let (handle, from) =
        unsafe { (handle(file), std::slice::from_raw_parts(from.cast(), usize::try_from(length).unwrap_or(0))) };
    code(lock(&handle.state).files.write(&handle.name, at(offset), from), SQLITE_IOERR)
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    // SAFETY: SQLite cuts open files only.
    let handle = unsafe { handle(file) };
    code(lock(&handle.state).files.truncate(&handle.name, at(length)), SQLITE_IOERR)
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite syncs open files only.
    let handle = unsafe { handle(file) };
    code(lock(&handle.state).files.sync(&handle.name), SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, into: *mut sqlite3_int64) -> c_int {
    // SAFETY: SQLite asks about open files only, and gives a place for the result.
    let handle = unsafe { handle(file) };
    let length = lock(&handle.state).files.length(&handle.name);
    // SAFETY: as above.
    unsafe { *into = sqlite3_int64::try_from(length).unwrap_or(sqlite3_int64::MAX) };
    SQLITE_OK
}

unsafe extern "C" fn raise(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite locks open files only.
    let handle = unsafe { handle(file) };
    let is_raised = lock(&handle.state).locks.raise(&handle.name, handle.number, level);
    if is_raised { SQLITE_OK } else { SQLITE_BUSY }
}

unsafe extern "C" fn lower(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite unlocks open files only.
    let handle = unsafe { handle(file) };
    lock(&handle.state).locks.lower(&handle.name, handle.number, level);
    SQLITE_OK
}

unsafe extern "C" fn check_reserved(file: *mut sqlite3_file, result: *mut c_int) -> c_int {
    // SAFETY: SQLite asks about open files only.
    let handle = unsafe { handle(file) };
    let is_reserved = lock(&handle.state).locks.is_reserved(&handle.name);
    // SAFETY: SQLite gives a place for the result.
    unsafe { *result = c_int::from(is_reserved) };
    SQLITE_OK
}

unsafe extern "C" fn file_control(_file: *mut sqlite3_file, _operation: c_int, _argument: *mut c_void) -> c_int {
    SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut sqlite3_file) -> c_int {
    SECTOR
}

unsafe extern "C" fn characteristics(_file: *mut sqlite3_file) -> c_int {
    SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn index_map(
    file: *mut sqlite3_file,
    region: c_int,
    _size: c_int,
    extend: c_int,
    into: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite maps the index of open files only.
    let handle = unsafe { handle(file) };
    let number = usize::try_from(region).unwrap_or(0);
    let region = lock(&handle.state).locks.region(&handle.name, handle.number, number, extend != 0);
    // SAFETY: SQLite gives a place for the result. A region stays where it is until its last user leaves.
    unsafe { *into = region.map_or(null_mut(), <*mut u64>::cast) };
    SQLITE_OK
}

unsafe extern "C" fn index_lock(file: *mut sqlite3_file, offset: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: SQLite locks the index of open files only.
    let handle = unsafe { handle(file) };
    let from = usize::try_from(offset).unwrap_or(0);
    let slots = from..from + usize::try_from(count).unwrap_or(0);
    let (takes, exclusive) = (flags & SQLITE_SHM_LOCK != 0, flags & SQLITE_SHM_EXCLUSIVE != 0);
    let is_done = lock(&handle.state).locks.index_lock(&handle.name, handle.number, slots, takes, exclusive);
    if is_done { SQLITE_OK } else { SQLITE_BUSY }
}

unsafe extern "C" fn index_barrier(_file: *mut sqlite3_file) {}

unsafe extern "C" fn index_unmap(file: *mut sqlite3_file, deletes: c_int) -> c_int {
    // SAFETY: SQLite leaves the index of open files only.
    let handle = unsafe { handle(file) };
    lock(&handle.state).locks.leave_index(&handle.name, handle.number, deletes != 0);
    SQLITE_OK
}
