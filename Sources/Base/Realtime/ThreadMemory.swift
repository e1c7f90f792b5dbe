internal import CRealtime

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
