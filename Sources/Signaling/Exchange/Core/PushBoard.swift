import SignalWire

/// Where to push to devices that are not connected (DEV-2). It outlives sessions.
///
/// Capacity: ``devices`` for a user; past it the device goes whose tokens were set longest ago.
struct PushBoard: Sendable {
    /// The push tokens of one device.
    struct Entry: Hashable, Sendable {
        var device: DeviceID
        var targets: [DeviceRegister.PushTarget]
    }

    static let devices = 64
    private var byUser: [UserID: [Entry]] = [:]

    /// The user's devices with push tokens, the one set longest ago first.
    func entries(of user: UserID) -> [Entry] { byUser[user] ?? [] }

    /// Sets a device's tokens in the place of those that it had; none takes the device out.
    mutating func set(_ targets: [DeviceRegister.PushTarget], for endpoint: Endpoint) {
        var entries = entries(of: endpoint.user).filter { $0.device != endpoint.device }
        if !targets.isEmpty { entries.append(Entry(device: endpoint.device, targets: targets)) }
        if entries.count > Self.devices { entries.removeFirst() }
        byUser[endpoint.user] = entries.isEmpty ? nil : entries
    }
}
