public import SignalWire

/// Where to push to one device, as it is kept.
public struct StoredPushTargets: Hashable, Sendable {
    /// Whose device it is.
    public var user: String
    /// The device.
    public var device: String
    /// Its push tokens; empty: the device is not pushed to.
    public var targets: [DeviceRegister.PushTarget]

    /// Makes an entry.
    public init(user: String, device: String, targets: [DeviceRegister.PushTarget]) {
        self.user = user
        self.device = device
        self.targets = targets
    }
}
