public import CallControl
public import JSON
internal import SignalingClient

// Rooms, groups, and messages to the peer of a call.
extension Device {
    /// Joins a room; its participants, and later joins and leaves, are reported as events.
    ///
    /// - Parameter data: Our connection data for the others, up to 1,000 bytes.
    @discardableResult
    public func join(room: RoomName, data: String? = nil) async throws(SignalingError) -> [RoomParticipant] {
        try await service.join(room: room, data: data)
    }

    /// Leaves a room.
    public func leave(room: RoomName) async throws(SignalingError) { try await service.leave(room: room) }

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
        try await service.send(
            RoomSignal(room: room, type: type, data: data, to: connection), retryAfterReconnect: retryAfterReconnect)
    }

    /// Says something to the peer of a call.
    ///
    /// - Throws: ``SignalingError`` with the code `unknownCall` before the call has an invite, and after its end.
    public func signal(
        _ type: String, data: JSONValue = .null, on call: CallID, retryAfterReconnect: Bool = true
    ) async throws(SignalingError) {
        guard let active = calls[call]?.session, let invite = active.inviteID else {
            throw SignalingError(.unknownCall, activity: "send a signal to the peer", cause: "there is no \(call)")
        }
        try await service.send(
            CallSignal(invite: invite, type: type, data: data, peer: active.namedPeer),
            retryAfterReconnect: retryAfterReconnect)
    }

    /// Makes a group; without an id the service gives it one (GRP-1).
    public func createGroup(
        _ id: GroupID? = nil, name: String? = nil, members: [UserID] = []
    ) async throws(SignalingError) -> GroupID {
        try await service.createGroup(id, name: name, members: members)
    }

    /// Joins a group whose id one knows.
    public func join(group: GroupID) async throws(SignalingError) { try await service.join(group: group) }

    /// Leaves a group.
    public func leave(group: GroupID) async throws(SignalingError) { try await service.leave(group: group) }

    /// Ends a group; only its owner may.
    public func dismiss(group: GroupID) async throws(SignalingError) { try await service.dismiss(group: group) }

    /// A group with its members, for a member.
    public func group(_ id: GroupID) async throws(SignalingError) -> Group { try await service.group(id) }

    /// The groups that this user is in, without their members.
    public func groups() async throws(SignalingError) -> [Group] { try await service.groups() }
}
