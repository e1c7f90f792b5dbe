internal import Files
internal import Glibc

/// A control socket that cannot be listened at, or connected to. Match on `code`; print the error itself.
public struct ControlSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of thing is wrong.
    public enum Code: Hashable, Sendable {
        /// Another process listens there.
        case inUse
        /// The socket cannot be created or listened on.
        case notUsable
        /// No device can be reached there.
        case noDevice
        /// The device ended, or does not answer.
        case lost
    }

    /// What kind of thing is wrong.
    public let code: Code
    /// Where the socket is, or should be.
    public let path: String
    private let activity: String
    private let cause: String
    /// Whether the socket's mode, or that of its folder, keeps this user out.
    private let isForbidden: Bool

    init(_ code: Code, _ path: String, _ activity: String, cause: String, isForbidden: Bool = false) {
        self.code = code
        self.path = path
        self.activity = activity
        self.cause = cause
        self.isForbidden = isForbidden
    }

    init(_ code: Code, _ path: String, _ activity: String, errno: Int32) {
        self.init(
            code, path, activity, cause: "\(SystemError(errno))", isForbidden: errno == EACCES)
    }

    /// The whole story in one line.
    public var description: String {
        let advice =
            switch code {
            case .inUse: "Stop it, or give this device another path in control.socket."
            case .notUsable: "Check the folder, or give another path in control.socket."
            case .noDevice where isForbidden:
                "Use root or the device's user, or join the socket's group: `usermod -aG handset-control USER`, and a new login."
            case .noDevice:
                "Does `handset run` run, with control.socket in its configuration? --socket and --config name others."
            case .lost: "Look at the device's log."
            }
        return "control socket \"\(path)\": cannot \(activity): \(cause). \(advice)"
    }
}
