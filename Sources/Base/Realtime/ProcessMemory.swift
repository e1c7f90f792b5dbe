internal import CRealtime
internal import Synchronization

/// What this process holds of the machine's memory.
public enum ProcessMemory {
    /// Lets go of the code and constants that only the start of the program needed: a daemon runs for months with a
    /// fifth of what it touched to begin with. What is needed comes back from the page cache, some microseconds a
    /// time: call it while no media flows. Locked memory stays (``lock()``).
    public static func releaseStartUpCode() {
        if handset_release_code_pages() { released.add(1, ordering: .relaxed) }
    }

    /// How often ``releaseStartUpCode()`` let go of something.
    public static var releases: Int { released.load(ordering: .relaxed) }

    private static let released = Atomic<Int>(0)

    /// Keeps in memory what this process uses from now on: no page of it is written out or dropped, however little memory
    /// there is, so that no real-time thread waits for a disk. What it does not use takes no memory.
    ///
    /// - Throws: If the process may not lock as much as it likes; then nothing is locked, for the next allocation beyond
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

    /// Bytes of the machine's memory that this process holds now; 0 if the system does not tell.
    public static var residentBytes: Int { Int(handset_resident_bytes()) }

    /// Gives the machine back what was allocated and is free again, of which the allocator keeps most: it goes only as
    /// far as the end of each of its regions is free. Other threads wait meanwhile for what they allocate, some
    /// milliseconds; never call it while media flows.
    public static func releaseFreeMemory() { handset_release_free_memory() }
}
