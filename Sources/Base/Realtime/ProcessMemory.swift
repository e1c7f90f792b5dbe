internal import CRealtime
internal import Synchronization

/// The memory of this process.
public enum ProcessMemory {
    /// Releases the code and constants that only the start of the program needed: a daemon runs for months with a fifth
    /// of the pages that it touched at the start. Pages that are needed again come from the page cache within some
    /// microseconds each, so call it while no media flows. Locked memory stays (``lock()``).
    public static func releaseStartUpCode() {
        if handset_release_code_pages() { released.add(1, ordering: .relaxed) }
    }

    /// How often ``releaseStartUpCode()`` released something.
    public static var releases: Int { released.load(ordering: .relaxed) }

    private static let released = Atomic<Int>(0)

    /// Keeps this process's memory, secrets among it, from core dumps, and from other processes of its user: they
    /// cannot attach a debugger, and `/proc/PID/mem` is root's. Programs that it starts are not affected.
    ///
    /// Files in `/proc/self` that only the owner may read are root's from then on; the one that this module needs stays open.
    public static func forbidDumps() { _ = handset_forbid_dumps() }

    /// Whether core dumps and debuggers may have what is in memory.
    public static var mayBeDumped: Bool { handset_may_be_dumped() }

    /// Locks the pages that this process uses from now on: none is swapped out or dropped, however little memory there
    /// is, so that no real-time thread waits for a disk. Unused pages take no memory.
    ///
    /// - Throws: If the process may not lock without limit; then nothing is locked, because the next allocation beyond
    ///   the limit would fail.
    public static func lock() throws(RealtimeError) {
        let result = handset_lock_memory()
        guard result == 0 else { throw RealtimeError(memoryLockRefused: -result) }
    }

    /// Throws what ``lock()`` would throw for want of a right, and locks nothing.
    public static func checkLock() throws(RealtimeError) {
        let result = handset_check_lock()
        guard result == 0 else { throw RealtimeError(memoryLockRefused: -result) }
    }

    /// Ends what ``lock()`` began.
    public static func unlock() { handset_unlock_memory() }

    /// Bytes of the machine's memory that this process holds now; 0 if the system does not report it.
    public static var residentBytes: Int { Int(handset_resident_bytes()) }

    /// Returns freed memory to the system. The allocator keeps most of it otherwise: it returns only the free end of
    /// each of its regions. Other threads that allocate wait meanwhile, some milliseconds; never call it while media
    /// flows.
    public static func releaseFreeMemory() { handset_release_free_memory() }
}
