/// Why a device can make no call at present.
public struct CallObstacle: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of reasons.
    public enum Reason: Hashable, Sendable {
        /// The device takes no more calls: it is drained, or ends.
        case draining
        /// The device is not connected to its service.
        case notConnected
        /// It has as many calls as `answer.max_calls` allows.
        case callLimit(Int)
        /// The machine carries no more calls (`answer.max_calls: auto`).
        case machineFull
    }

    /// What is in the way.
    public let reason: Reason

    init(_ reason: Reason) { self.reason = reason }

    /// What is in the way, in words.
    public var description: String {
        switch reason {
        case .draining: "the device takes no more calls: it stops"
        case .notConnected: "the device is not connected to its service"
        case .callLimit: "the device has as many calls as it may have"
        case .machineFull: "the device has as many calls as its machine carries"
        }
    }
}
