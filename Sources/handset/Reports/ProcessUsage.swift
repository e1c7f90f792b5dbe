internal import Glibc
internal import Realtime
internal import Core

/// What a process has used so far.
struct ProcessUsage {
    /// User and system time.
    var cpuSeconds: Double
    /// Resident memory now.
    var residentBytes: Double

    /// Of this process.
    static var ofThisProcess: ProcessUsage {
        ProcessUsage(
            cpuSeconds: MonotonicClock.processCPUTime.seconds, residentBytes: residentBytes(of: getpid()) ?? 0)
    }

    /// Of another process on this machine; nil if there is none.
    init?(of process: pid_t) {
        // /proc/PID/stat: utime and stime are fields 14 and 15; the name in field 2 may hold anything, in brackets.
        guard let stat = KernelFile.text(of: "/proc/\(process)/stat"), let end = stat.lastIndex(of: ")"),
            let resident = Self.residentBytes(of: process)
        else { return nil }
        let fields = stat[end...].split(separator: " ").dropFirst()
        let ticks = fields.dropFirst(11).prefix(2).compactMap { Double($0) }.reduce(0, +)
        cpuSeconds = ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
        residentBytes = resident
    }

    private init(cpuSeconds: Double, residentBytes: Double) {
        self.cpuSeconds = cpuSeconds
        self.residentBytes = residentBytes
    }

    private static func residentBytes(of process: pid_t) -> Double? {
        guard let pages = KernelFile.text(of: "/proc/\(process)/statm")?.split(separator: " ").dropFirst().first else {
            return nil
        }
        return Double(pages).map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) }
    }
}

/// A process that `--watch` names.
struct WatchedProcess {
    let name: String
    private let id: pid_t

    /// Reads NAME=PID; nil unless such a process runs.
    init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2, let id = pid_t(parts[1]), ProcessUsage(of: id) != nil else { return nil }
        name = String(parts[0])
        self.id = id
    }

    /// What it has used; nil if it has ended.
    var usage: ProcessUsage? { ProcessUsage(of: id) }
}
