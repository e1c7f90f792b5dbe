internal import Core
internal import Glibc
internal import Realtime

/// What a monitoring server measures and checks of its process. It waits for each answer no longer than
/// ``MonitoringServer/patience``.
package struct MonitoredProcess: Sendable {
    /// Adds the process's own metrics to a page.
    package let measure: @Sendable (inout MetricPage) async -> Void
    /// Whether the process does its work. It is false for a fault of the process alone, never because a server, card, bot or disk fails:
    /// a process that is not alive is restarted, which does not repair these.
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

    /// Descriptors that are counted one by one, at most: some milliseconds of work.
    private static let mostCounted = 16_384

    /// The number of descriptors; nil without `/proc`, and if they are more than ``mostCounted`` before Linux 6.2.
    private static var openDescriptors: Int? {
        let folder = "/proc/self/fd"
        // Since Linux 6.2 the number is the folder's size, which was 0 before. The entries have the descriptor that reads them.
        return size(of: folder) ?? entries(of: folder, atMost: mostCounted).map { $0 - 1 }
    }

    private static func size(of folder: String) -> Int? {
        var status = stat()
        // Fills in the one structure that it is given.
        guard unsafe stat(folder, &status) == 0, status.st_size > 0 else { return nil }
        return Int(status.st_size)
    }

    /// The number of entries of a folder, without itself and its parent; nil if it cannot be read, or has more than `limit`.
    static func entries(of folder: String, atMost limit: Int) -> Int? {
        guard let directory = unsafe opendir(folder) else { return nil }
        defer { unsafe closedir(directory) }
        var count = -2
        while count <= limit {
            guard unsafe readdir(directory) != nil else { return max(0, count) }
            count += 1
        }
        return nil
    }
}
