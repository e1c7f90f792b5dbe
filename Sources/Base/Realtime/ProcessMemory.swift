internal import CRealtime

/// What this process holds of the machine's memory.
public enum ProcessMemory {
    /// Lets go of the code and constants that only the start of the program needed: a daemon runs for months with a
    /// fifth of what it touched to begin with. What is needed comes back from the page cache, some microseconds a
    /// time: call it while no media flows.
    public static func releaseStartUpCode() { handset_release_code_pages() }

    /// Bytes of the machine's memory that this process holds now; 0 if the system does not tell.
    public static var residentBytes: Int { Int(handset_resident_bytes()) }

    /// Gives the machine back what was allocated and is free again, of which the allocator keeps most: it goes only as
    /// far as the end of each of its regions is free. Other threads wait meanwhile for what they allocate, some
    /// milliseconds; never call it while media flows.
    public static func releaseFreeMemory() { handset_release_free_memory() }
}
