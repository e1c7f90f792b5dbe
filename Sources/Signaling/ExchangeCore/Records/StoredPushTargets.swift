public import SignalWire

/// The push tokens of one device, as stored.
public struct StoredPushTargets: Hashable, Sendable {
    /// Whose device it is.
    public var user: UserID
    /// The device.
    public var device: DeviceID
    /// Its push tokens; empty: the device is not pushed to.
    public var targets: [DeviceRegister.PushTarget]

    /// Makes an entry.
    public init(user: UserID, device: DeviceID, targets: [DeviceRegister.PushTarget]) {
        self.user = user
        self.device = device
        self.targets = targets
    }
}
