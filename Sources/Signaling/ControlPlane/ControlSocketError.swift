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

    /// Which program listens, or should.
    public enum Owner: Hashable, Sendable {
        case device
        case exchange
        case trunk
    }

    /// What kind of thing is wrong.
    public let code: Code
    /// Where the socket is, or should be.
    public let path: String
    private let activity: String
    private let cause: String
    /// Whether the socket's mode, or that of its folder, keeps this user out.
    private let isForbidden: Bool
    /// Whether it is about the interface on TCP, of which ``path`` is the address.
    private let isOnNetwork: Bool
    /// Which program listens, or should.
    public var owner = Owner.device

    package init(
        _ code: Code, _ path: String, _ activity: String, cause: String, isForbidden: Bool = false,
        isOnNetwork: Bool = false
    ) {
        self.code = code
        self.path = path
        self.activity = activity
        self.cause = cause
        self.isForbidden = isForbidden
        self.isOnNetwork = isOnNetwork
    }

    package init(_ code: Code, _ path: String, _ activity: String, errno: Int32) {
        self.init(
            code, path, activity, cause: "\(SystemError(errno))", isForbidden: errno == EACCES)
    }

    /// The whole story in one line.
    public var description: String {
        "\(isOnNetwork ? "control interface" : "control socket") \"\(path)\": cannot \(activity): \(cause). \(advice)"
    }

    private var advice: String {
        if isOnNetwork { return "Check the address, the \(owner)'s `control` section, and its log." }
        return switch (code, owner) {
        case (.inUse, .device): "Stop it, or give this device another path in control.socket."
        case (.inUse, _): "Stop it, or give this \(owner) another path in control.socket."
        case (.notUsable, _): "Check the folder, or give another path in control.socket."
        case (.noDevice, .device) where isForbidden:
            "Use root or the device's user, or join the socket's group: `usermod -aG handset-control USER`, and a new login."
        case (.noDevice, .exchange) where isForbidden, (.noDevice, .trunk) where isForbidden:
            "Use root or the \(owner)'s user, or join the socket's group, which `access: group` lets in."
        case (.noDevice, .device):
            "Does `handset run` run, with control.socket in its configuration? --socket and --config name others."
        case (.noDevice, .exchange):
            "Does `handset serve` run, with control in its configuration? --socket and --config name others."
        case (.noDevice, .trunk):
            "Does `handset trunk` run, with control in its configuration? --socket and --config name others."
        case (.lost, _): "Look at the \(owner)'s log."
        }
    }
}
