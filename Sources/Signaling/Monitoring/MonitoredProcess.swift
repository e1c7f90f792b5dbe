internal import Core
internal import Glibc
internal import Realtime

/// What a monitoring server asks of its process. Each answer may take its time; the server waits for it no longer than
/// ``MonitoringServer/patience``.
package struct MonitoredProcess: Sendable {
    /// Adds the process's own metrics to a page.
    package let measure: @Sendable (inout MetricPage) async -> Void
    /// Whether the process does its work. It is false for a fault of the process alone, never because a server, card, bot or disk fails:
    /// who watches restarts a process that is not alive, which is no remedy for these.
    package let isAlive: @Sendable () async -> Bool
    /// What keeps the process from taking calls now, in sentences; nothing if it is ready.
    package let obstacles: @Sendable () async -> [String]

    package init(
        measure: @escaping @Sendable (inout MetricPage) async -> Void, isAlive: @escaping @Sendable () async -> Bool,
        obstacles: @escaping @Sendable () async -> [String]
    ) {
        self.measure = measure
        self.isAlive = isAlive
        self.obstacles = obstacles
    }
}

/// What the kernel counts for every process, by the names that Prometheus' clients use.
package enum ProcessMetrics {
    static let processorTime = Metric("process_cpu_seconds_total", .counter, "Processor time, of user and system")
    static let residentMemory = Metric("process_resident_memory_bytes", .gauge, "Memory in use (RSS)")
    static let openFiles = Metric("process_open_fds", .gauge, "Open file descriptors")
    static let openFilesLimit = Metric("process_max_fds", .gauge, "The limit on open file descriptors")
    static let startTime = Metric("process_start_time_seconds", .gauge, "When the process started, in Unix time")
    static let build = Metric("handset_build_info", .gauge, "Always 1; the version is a label", by: ["version"])

    /// All of them.
    package static let all = [processorTime, residentMemory, openFiles, openFilesLimit, startTime, build]

    /// Adds them to a page.
    ///
    /// - Parameter started: When the process started, in Unix time.
    static func add(to page: inout MetricPage, version: String, started: Double) {
        page.add(processorTime, MonotonicClock.processCPUTime.seconds)
        if let pages = residentPages { page.add(residentMemory, pages * Int(getpagesize())) }
        if let count = openDescriptors { page.add(openFiles, count) }
        if let limit = descriptorLimit { page.add(openFilesLimit, limit) }
        page.add(startTime, started)
        page.add(build, 1, [version])
    }

    /// The second number of `/proc/self/statm` (proc(5)).
    private static var residentPages: Int? {
        KernelFile.text(of: "/proc/self/statm")?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    /// The soft limit in `/proc/self/limits` (proc(5)); nil also if there is none.
    private static var descriptorLimit: Int? {
        let lines = KernelFile.text(of: "/proc/self/limits")?.split(separator: "\n") ?? []
        return lines.first { $0.hasPrefix("Max open files") }?.split(separator: " ").dropFirst(3).first.flatMap {
            Int($0)
        }
    }

    /// The number of descriptors, of which the kernel has said since Linux 6.2 as the size of the folder of them.
    private static var openDescriptors: Int? {
        var status = stat()
        // Fills in the one structure that it is given.
        guard unsafe stat("/proc/self/fd", &status) == 0, status.st_size > 0 else { return nil }
        return Int(status.st_size)
    }
}
