internal import CRealtime
public import Timekeeping

/// The machine's clocks, for the edges that feed cores with time.
public enum MonotonicClock {
    /// Now, on CLOCK_MONOTONIC. One call into the vDSO; no system call.
    public static var now: Instant {
        @_noAllocation @_noLocks get { Instant(nanoseconds: monotonicNanoseconds()) }
    }

    /// CPU time this process has used, user and system together.
    public static var processCPUTime: Duration { .nanoseconds(handset_process_cpu_time()) }
}

// clock_gettime: no allocation, no lock.
@_semantics("no_performance_analysis") @inline(__always)
private func monotonicNanoseconds() -> Int64 { handset_monotonic_now() }
