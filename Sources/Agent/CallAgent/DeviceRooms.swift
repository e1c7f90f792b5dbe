public import CallControl
public import JSON
internal import SignalingClient

/// The rooms of a device's service: what connections are in them, and signals between these. A service may have none.
public struct DeviceRooms: Sendable {
    private let service: any SignalingService

    init(_ service: any SignalingService) { self.service = service }

    /// Joins a room; its participants, and later joins and leaves, are reported as events.
    ///
    /// - Parameter data: Our connection data for the others, up to 1,000 bytes.
    @discardableResult
    public func join(_ room: RoomName, data: String? = nil) async throws(SignalingError) -> [RoomParticipant] {
        try await rooms(to: "join the room \(room)").join(room: room, data: data)
    }

    /// Leaves a room.
    public func leave(_ room: RoomName) async throws(SignalingError) {
        try await rooms(to: "leave the room \(room)").leave(room: room)
    }

    /// Sends a signal to everybody in a room, or to one connection there (contract SIG-1).
    ///
    /// - Parameters:
    ///   - type: Up to 128 bytes.
    ///   - data: Up to 8 KiB as JSON text.
    ///   - retryAfterReconnect: Whether to wait or to fail while the device reconnects (CONN-6).
    public func signal(
        _ type: String, data: JSONValue = .null, in room: RoomName, to connection: ConnectionName? = nil,
        retryAfterReconnect: Bool = true
    ) async throws(SignalingError) {
        try await rooms(to: "send a signal in the room \(room)").send(
            RoomSignal(room: room, type: type, data: data, to: connection), retryAfterReconnect: retryAfterReconnect)
    }

    private func rooms(to activity: String) throws(SignalingError) -> any RoomSignaling {
        if let rooms = service.roomSignaling { return rooms }
        throw SignalingError(.invalidRequest, activity: activity, cause: "the service has no rooms")
    }
}

/// The groups of users at a device's service, which may have none.
public struct DeviceGroups: Sendable {
    private let service: any SignalingService

    init(_ service: any SignalingService) { self.service = service }

    /// Makes a group; without an id the service gives it one (GRP-1).
    public func create(
        _ id: GroupID? = nil, name: String? = nil, members: [UserID] = []
    ) async throws(SignalingError) -> GroupID {
        try await groups(to: "make a group").createGroup(id, name: name, members: members)
    }

    /// Joins a group whose id one knows.
    public func join(_ group: GroupID) async throws(SignalingError) {
        try await groups(to: "join the group \(group)").join(group: group)
    }

    /// Leaves a group.
    public func leave(_ group: GroupID) async throws(SignalingError) {
        try await groups(to: "leave the group \(group)").leave(group: group)
    }

    /// Ends a group; only its owner may.
    public func dismiss(_ group: GroupID) async throws(SignalingError) {
        try await groups(to: "dismiss the group \(group)").dismiss(group: group)
    }

    /// A group with its members, for a member.
    public func group(_ id: GroupID) async throws(SignalingError) -> Group {
        try await groups(to: "ask who is in the group \(id)").group(id)
    }

    /// The groups that this user is in, without their members; none at a service without groups.
    public func all() async throws(SignalingError) -> [Group] {
        guard let groups = service.groupSignaling else { return [] }
        return try await groups.groups()
    }

    private func groups(to activity: String) throws(SignalingError) -> any GroupSignaling {
        if let groups = service.groupSignaling { return groups }
        throw SignalingError(.invalidRequest, activity: activity, cause: "the service has no groups")
    }
}
