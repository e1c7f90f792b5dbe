internal import CRealtime
public import Core

/// The machine's clocks, for the edges that feed cores with time.
public enum MonotonicClock {
    /// Now, on CLOCK_MONOTONIC. One call into the vDSO; no system call.
    public static var now: Instant {
        @_noAllocation @_noLocks get { Instant(nanoseconds: monotonicNanoseconds()) }
    }

    /// The time of day in nanoseconds since 1970-01-01 00:00 UTC, which may jump: for NTP timestamps and records.
    public static var wallNanoseconds: Int64 {
        @_noAllocation @_noLocks get { readWallClock() }
    }

    /// The time of day, for certificates and tokens.
    public static var wallTime: WallClock { WallClock(unixMilliseconds: wallNanoseconds / 1_000_000) }

    /// CPU time this process has used, user and system together.
    public static var processCPUTime: Duration { .nanoseconds(handset_process_cpu_time()) }

    /// CPU time this thread has used, in nanoseconds: without the time in which others had the core. A system call.
    public static var threadCPUNanoseconds: Int64 {
        @_noAllocation @_noLocks get { readThreadClock() }
    }
}

// clock_gettime: no allocation, no lock.
@_semantics("no_performance_analysis") @inline(__always)
private func monotonicNanoseconds() -> Int64 { handset_monotonic_now() }

// clock_gettime: a system call that waits for nothing.
@_semantics("no_performance_analysis") @inline(__always)
private func readThreadClock() -> Int64 { handset_thread_cpu_time() }

// clock_gettime: no allocation, no lock.
@_semantics("no_performance_analysis") @inline(__always)
private func readWallClock() -> Int64 { handset_wall_now() }
