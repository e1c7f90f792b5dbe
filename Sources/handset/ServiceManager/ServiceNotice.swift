public import Core

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
    var fitsTheEnd: Bool {
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
