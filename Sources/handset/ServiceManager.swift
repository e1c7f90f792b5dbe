// ServiceManager: notifies the service manager that started this process of its state (sd_notify(3)), without libsystemd.

internal import Glibc
internal import Synchronization
public import Core
internal import Files

/// The service manager that waits for notices of this process. Its methods may be called from any thread.
public final class ServiceManager: Sendable {
    /// The longest time between two ``ServiceNotice/alive``, after which the service manager ends this process; nil if it
    /// watches nothing.
    public let watchdogLimit: Duration?

    private let address: NotifyAddress
    private let descriptor: Int32
    /// Whether it was notified of the service's end. A service that becomes ready again after that is taken for one that runs.
    private let isStopping = Mutex(false)

    /// The service manager that the environment names; nil if it names none.
    ///
    /// - Parameters:
    ///   - environment: What the process's variables hold.
    ///   - process: This process's number.
    /// - Throws: ``ServiceManagerError`` if it names one that cannot be notified.
    public init?(environment: (String) -> String?, process: Int32) throws(ServiceManagerError) {
        guard let name = environment("NOTIFY_SOCKET"), !name.isEmpty else { return nil }
        guard let address = NotifyAddress(name) else {
            throw ServiceManagerError(
                name, "it is neither a path nor an abstract name of at most 107 bytes", "Start without NOTIFY_SOCKET.")
        }
        self.address = address
        watchdogLimit = Self.watchdogLimit(environment, process)
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw ServiceManagerError(name, errno: errno) }
    }

    /// The service manager of this process; nil if it has none.
    public static func ofThisProcess() throws(ServiceManagerError) -> ServiceManager? {
        try ServiceManager(
            environment: { name in unsafe getenv(name).map { unsafe String(cString: $0) } }, process: getpid())
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Sends notices without blocking. After `stopping`, notices of readiness, reload and status are suppressed.
    public func notify(_ notices: ServiceNotice...) throws(ServiceManagerError) {
        let isTold = isStopping.withLock { isStopping in
            if notices.contains(.stopping) { isStopping = true }
            return !isStopping || notices.allSatisfy(\.fitsTheEnd) || notices.contains(.stopping)
        }
        guard isTold else { return }
        let text = notices.map(\.text).joined(separator: "\n")
        guard address.send(Array(text.utf8), through: descriptor) else {
            throw ServiceManagerError("NOTIFY_SOCKET", errno: errno)
        }
    }

    /// Not of another process, from which this one has inherited its environment.
    private static func watchdogLimit(_ environment: (String) -> String?, _ process: Int32) -> Duration? {
        guard let limit = environment("WATCHDOG_USEC").flatMap({ Int64($0) }), limit > 0 else { return nil }
        if let watched = environment("WATCHDOG_PID"), watched != "\(process)" { return nil }
        return .microseconds(limit)
    }
}

/// The service manager cannot be notified.
public struct ServiceManagerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was done, what the system said, and what to try.
    public let description: String

    init(_ name: String, _ cause: String, _ advice: String) {
        description = "cannot notify the service manager at \(name): \(cause). \(advice)"
    }

    init(_ name: String, errno code: Int32) {
        self.init(name, "\(SystemError(code))", "Check that it listens there, and that the unit has NotifyAccess=main.")
    }
}

/// A notice of a service to its service manager (sd_notify(3)).
public enum ServiceNotice: Hashable, Sendable {
    /// It has started, or has reloaded its configuration.
    case ready
    /// It reloads its configuration since `at`, on CLOCK_MONOTONIC; ``ready`` follows.
    case reloading(at: Instant)
    /// It has begun to end.
    case stopping
    /// What it is doing, in one line for people.
    case status(String)
    /// It works; the watchdog waits for this.
    case alive

    /// Whether it is true of a service that ends.
    fileprivate var fitsTheEnd: Bool {
        switch self {
        case .stopping, .alive: true
        case .ready, .reloading, .status: false
        }
    }

    /// The assignments of the protocol.
    var text: String {
        switch self {
        case .ready: "READY=1"
        case .reloading(let start): "RELOADING=1\nMONOTONIC_USEC=\(start.nanoseconds / 1_000)"
        case .stopping: "STOPPING=1"
        case .status(let line): "STATUS=" + String(line.map { $0.isNewline ? " " : $0 })
        case .alive: "WATCHDOG=1"
        }
    }
}

/// Where a service manager listens: a path, or a name in the abstract namespace of unix(7), which begins with `@`.
private struct NotifyAddress {
    private var raw = sockaddr_un()
    private let length: socklen_t

    /// Nil if it is neither, or does not fit.
    init?(_ text: String) {
        var bytes = Array(text.utf8)
        guard bytes.count > 1, bytes.count < MemoryLayout.size(ofValue: raw.sun_path), !bytes.contains(0) else {
            return nil
        }
        switch bytes[0] {
        case UInt8(ascii: "/"): bytes.append(0)
        case UInt8(ascii: "@"): bytes[0] = 0
        default: return nil
        }
        raw.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: bytes) }
        length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    }

    /// Sends one datagram there, without waiting. False, and errno set, if that cannot be.
    func send(_ bytes: [UInt8], through descriptor: Int32) -> Bool {
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = unsafe withUnsafePointer(to: raw) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe sendto(descriptor, bytes, bytes.count, flags, $0, length)
            }
        }
        return count == bytes.count
    }
}
