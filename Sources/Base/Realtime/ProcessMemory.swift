internal import CRealtime

/// What this process holds of the machine's memory.
public enum ProcessMemory {
    /// Lets go of the code and constants that only the start of the program needed: a daemon runs for months with a
    /// fifth of what it touched to begin with. What is needed comes back from the page cache, some microseconds a
    /// time: call it while no media flows.
    public static func releaseStartUpCode() { handset_release_code_pages() }
}
