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

/// The calling thread's pages of memory.
public enum ThreadMemory {
    /// How often a page was not there when the thread needed it.
    public static var pageFaults: Int {
        @_noAllocation @_noLocks get { threadPageFaults() }
    }

    /// Makes `bytes` of the thread's stack resident, below the part that it uses now.
    @_noAllocation @_noLocks
    public static func touchStack(bytes: Int) { touchStackPages(bytes) }
}

// getrusage(2): a system call that waits for nothing.
@_semantics("no_performance_analysis") @inline(__always)
private func threadPageFaults() -> Int { Int(handset_thread_page_faults()) }

// Writes to the stack below its own frame: no allocation, no lock.
@_semantics("no_performance_analysis") @inline(__always)
private func touchStackPages(_ bytes: Int) { handset_thread_touch_stack(bytes) }

/// How much memory this process may have.
public enum MachineMemory {
    /// Bytes of memory that the machine has, or that its control group leaves it (`MemoryMax=` in systemd, the limit of
    /// a container), whichever is less; `nil` if the system does not report it.
    public static var limitBytes: Int? { limit { KernelFile.text(of: $0) } }

    /// - Parameter file: The contents of a file; `nil` if there is none.
    static func limit(reading file: (String) -> String?) -> Int? {
        var limits: [Int] = []
        if let machine = file("/proc/meminfo").flatMap(machineBytes) { limits.append(machine) }
        for group in file("/proc/self/cgroup").map(controlGroups) ?? [] {
            // A group has no more than its parent groups.
            var path = group.path
            while true {
                let name = "\(group.mount)\(path)/\(group.file)"
                if let text = file(name), let bytes = Int(text.filter { !$0.isWhitespace }) { limits.append(bytes) }
                guard let slash = path.lastIndex(of: "/") else { break }
                path = String(path[..<slash])
            }
        }
        return limits.min()
    }

    /// `MemTotal:  16384 kB`
    private static func machineBytes(_ text: String) -> Int? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("MemTotal:") }
        guard let words = line?.split(separator: " "), words.count == 3, let kilobytes = Int(words[1]) else {
            return nil
        }
        return kilobytes << 10
    }

    /// Lines such as `0::/system.slice/handset.service` (version 2), or `9:memory:/handset` (version 1).
    private static func controlGroups(_ text: String) -> [(mount: String, path: String, file: String)] {
        text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            let path = parts[2] == "/" ? "" : String(parts[2])
            if parts[0] == "0", parts[1].isEmpty { return ("/sys/fs/cgroup", path, "memory.max") }
            guard parts[1].split(separator: ",").contains("memory") else { return nil }
            return ("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
        }
    }
}
