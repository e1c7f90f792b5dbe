/// What happens to the accounts of a process.
public struct AccountEvent: Sendable {
    /// Which one; nil for the only account of a file that names none, and for what is about the process.
    public let account: String?
    /// What.
    public let kind: Kind

    /// What happens.
    public enum Kind: Sendable {
        /// Something of the account's device, or of the sound card and the media workers.
        case device(DeviceEvent)
        /// The account has logged in, and can be called.
        case connected(DeviceConfiguration)
        /// The account has failed, and is tried again after this time. The number counts its failures in a row.
        case failed(any Error, retryAfter: Duration, failures: Int)
        /// The account has lost its login: it takes no more calls, and logs in again when its present ones have ended.
        case lost
        /// This machine's clock cannot be right, so that no certificate can be checked; the account waits for the time.
        case waitsForTime(any Error)
        /// The account has failed, and is not tried again.
        case gaveUp(any Error)
        /// The account is gone.
        case removed
        /// Every account has been tried once, or has had time for it.
        case ready
    }
}

/// An account of a process, at one moment.
public struct AccountMember: Sendable {
    /// What it is called; nil for the only account of a file that names none.
    public let name: String?
    /// Its settings.
    public let configuration: DeviceConfiguration
    /// Its device; nil while there is none, because the account waits after a failure.
    public let device: Device?
    /// Whether it is drained, also with its next device.
    public let isDraining: Bool
    /// Why it failed last; nil if it has connected since.
    public let failure: String?
}

/// A device, and what must live as long as it does.
public struct AccountDevice: Sendable {
    let device: Device
    let belongings: (any Sendable)?

    /// Joins them.
    ///
    /// - Parameter belongings: Such as a lock.
    public init(_ device: Device, with belongings: (any Sendable)? = nil) {
        self.device = device
        self.belongings = belongings
    }
}

/// What became of accounts when their configuration was read again.
public struct AccountChanges: Sendable {
    /// New ones, which log in.
    public var added: [String] = []
    /// Those that are gone, once their calls have ended.
    public var removed: [String] = []
    /// Those that log in again with other settings, once their calls have ended.
    public var restarted: [String] = []
    /// Those that continue, with other settings for calls that begin from now on.
    public var adopted: [String] = []
    /// Those that stay as they are, or away, until the process starts again, and why.
    public var refused: [(name: String, reason: String)] = []

    /// Nothing has changed.
    public init() {}
}
