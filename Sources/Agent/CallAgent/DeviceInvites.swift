public import CallControl
public import JSON
internal import SignalingClient

/// The invites of a device that are no calls: to raise one's hand, to join a room, or another purpose of their data.
///
/// Answers to them, and invites that come in, are among the device's events.
public struct DeviceInvites: Sendable {
    private let device: Device

    init(_ device: Device) { self.device = device }

    /// Invites users to something that `data` describes; with a `group`, in that group.
    ///
    /// - Parameters:
    ///   - timeToLive: How long they have to answer; nil: no timeout. Default: the configured value.
    ///   - payload: For pushes to devices that are not connected.
    ///   - missedPayload: For invitees who do not answer.
    ///   - idempotencyKey: The same key means the same invite; generated unless given.
    public func send(
        _ users: [UserID], in group: GroupID? = nil, data: JSONValue = [:], timeToLive: Duration?? = .none,
        payload: JSONValue? = nil, missedPayload: JSONValue? = nil, onlineOnly: Bool? = nil,
        idempotencyKey: IdempotencyKey? = nil
    ) async throws(SignalingError) -> OutgoingInvite {
        var options = await device.configuration.invites.options(
            to: users, in: group, timeToLive: timeToLive, onlineOnly: onlineOnly,
            idempotencyKey ?? IdempotencyKey(ours: CallMaker.newKey()))
        options.data = data
        options.payload = payload ?? options.payload
        options.timeoutPayload = missedPayload ?? options.timeoutPayload
        return try await device.send(options)
    }

    /// Invites one user.
    public func send(
        _ user: UserID, data: JSONValue = [:], timeToLive: Duration?? = .none
    ) async throws(SignalingError) -> OutgoingInvite {
        try await send([user], data: data, timeToLive: timeToLive)
    }
}
