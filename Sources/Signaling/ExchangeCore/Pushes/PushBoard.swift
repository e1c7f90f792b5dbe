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

    /// The devices whose tokens changed since ``takeChanged()``, in the order of the changes.
    private var changed: [Endpoint] = []

    /// The devices whose tokens were set or taken out since last asked, in the order of that.
    mutating func takeChanged() -> [Endpoint] {
        guard !changed.isEmpty else { return [] }
        defer { changed = [] }
        return changed
    }

    /// All devices with push tokens.
    var endpoints: [Endpoint] {
        byUser.flatMap { user, entries in entries.map { Endpoint(user: user, device: $0.device) } }
    }

    /// One device's tokens.
    func targets(of endpoint: Endpoint) -> [DeviceRegister.PushTarget] {
        entries(of: endpoint.user).first { $0.device == endpoint.device }?.targets ?? []
    }

    /// The user's devices with push tokens, the one set longest ago first.
    func entries(of user: UserID) -> [Entry] { byUser[user] ?? [] }

    /// Sets a device's tokens in the place of those that it had; none takes the device out.
    mutating func set(_ targets: [DeviceRegister.PushTarget], for endpoint: Endpoint) {
        guard !targets.isEmpty || !self.targets(of: endpoint).isEmpty else { return }
        restore(targets, for: endpoint)
        changed.append(endpoint)
        let entries = entries(of: endpoint.user)
        guard entries.count > Self.devices, let oldest = entries.first else { return }
        byUser[endpoint.user] = Array(entries.dropFirst())
        changed.append(Endpoint(user: endpoint.user, device: oldest.device))
    }

    /// Sets tokens that are on disk already.
    mutating func restore(_ targets: [DeviceRegister.PushTarget], for endpoint: Endpoint) {
        var entries = entries(of: endpoint.user).filter { $0.device != endpoint.device }
        if !targets.isEmpty { entries.append(Entry(device: endpoint.device, targets: targets)) }
        byUser[endpoint.user] = entries.isEmpty ? nil : entries
    }
}
