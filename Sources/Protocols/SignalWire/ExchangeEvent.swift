public import JSON

/// An event that the exchange sends to a device.
public enum ExchangeEvent: Hashable, Sendable {
    case inviteReceived(InviteReceived)
    case inviteAccepted(InviteAnswered)
    case inviteRejected(InviteAnswered)
    case inviteHandled(InviteHandled)
    case inviteCancelled(InviteCancelled)
    case inviteModified(InviteModified)
    case inviteTimedOut(InviteTimedOut)
    case inviteMissed(InviteMissed)
    case inviteEnded(InviteEnded)
    case groupChanged(GroupChanged)
    case callSignal(CallSignalled)
    case callEnded(CallEnded)
    case connectionCreated(ConnectionCreated)
    case connectionDestroyed(ConnectionDestroyed)
    case roomSignal(RoomSignalled)
    case streamDropped(StreamChange)
    case streamResumed(StreamChange)
    case moveRequested(MoveRequested)
    case tokenExpiring(TokenExpiring)
    case presenceChanged(Presence)
    case notification(NotificationReceived)
    /// An event of a newer exchange; a client passes over it.
    case unknown(type: String, data: JSONValue?)

    /// The types that this version of the wire knows, by their names on the wire.
    public enum Kind: String, CaseIterable, Sendable {
        case inviteReceived, inviteAccepted, inviteRejected, inviteHandled, inviteCancelled, inviteModified
        case inviteTimedOut, inviteMissed, inviteEnded, groupChanged, callSignal, callEnded, connectionCreated
        case connectionDestroyed, roomSignal, streamDropped, streamResumed, moveRequested, tokenExpiring,
            presenceChanged
        case notification
    }
}

/// An event with its number in its user's stream.
///
/// Numbers rise. A device is only sent the events meant for it, so that gaps are normal.
public struct NumberedEvent: Hashable, Sendable {
    /// The JSON-RPC method of the notification that carries events.
    public static let method = "event"

    /// The event's number.
    public var sequence: UInt64
    /// The event.
    public var event: ExchangeEvent

    /// Makes a numbered event.
    public init(sequence: UInt64, event: ExchangeEvent) {
        self.sequence = sequence
        self.event = event
    }
}

extension NumberedEvent: Codable {
    private enum Key: String, CodingKey { case sequence, type, data }

    /// Reads an event of any type.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        sequence = try container.decode(UInt64.self, forKey: .sequence)
        let type = try container.decode(String.self, forKey: .type)
        guard let kind = ExchangeEvent.Kind(rawValue: type) else {
            event = .unknown(type: type, data: try container.decodeIfPresent(JSONValue.self, forKey: .data))
            return
        }
        func data<Data: Decodable>(_ type: Data.Type = Data.self) throws -> Data {
            try container.decode(type, forKey: .data)
        }
        event =
            switch kind {
            case .inviteReceived: .inviteReceived(try data())
            case .inviteAccepted: .inviteAccepted(try data())
            case .inviteRejected: .inviteRejected(try data())
            case .inviteHandled: .inviteHandled(try data())
            case .inviteCancelled: .inviteCancelled(try data())
            case .inviteModified: .inviteModified(try data())
            case .inviteTimedOut: .inviteTimedOut(try data())
            case .inviteMissed: .inviteMissed(try data())
            case .inviteEnded: .inviteEnded(try data())
            case .groupChanged: .groupChanged(try data())
            case .callSignal: .callSignal(try data())
            case .callEnded: .callEnded(try data())
            case .connectionCreated: .connectionCreated(try data())
            case .connectionDestroyed: .connectionDestroyed(try data())
            case .roomSignal: .roomSignal(try data())
            case .streamDropped: .streamDropped(try data())
            case .streamResumed: .streamResumed(try data())
            case .moveRequested: .moveRequested(try data())
            case .tokenExpiring: .tokenExpiring(try data())
            case .presenceChanged: .presenceChanged(try data())
            case .notification: .notification(try data())
            }
    }

    /// Writes the event.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(sequence, forKey: .sequence)
        try event.encode(to: encoder)
    }
}

extension ExchangeEvent: Encodable {
    private enum Key: String, CodingKey { case type, data }

    /// Writes the event without a number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        func put(_ kind: ExchangeEvent.Kind, _ data: some Encodable) throws {
            try container.encode(kind.rawValue, forKey: .type)
            try container.encode(data, forKey: .data)
        }
        switch self {
        case .inviteReceived(let data): try put(.inviteReceived, data)
        case .inviteAccepted(let data): try put(.inviteAccepted, data)
        case .inviteRejected(let data): try put(.inviteRejected, data)
        case .inviteHandled(let data): try put(.inviteHandled, data)
        case .inviteCancelled(let data): try put(.inviteCancelled, data)
        case .inviteModified(let data): try put(.inviteModified, data)
        case .inviteTimedOut(let data): try put(.inviteTimedOut, data)
        case .inviteMissed(let data): try put(.inviteMissed, data)
        case .inviteEnded(let data): try put(.inviteEnded, data)
        case .groupChanged(let data): try put(.groupChanged, data)
        case .callSignal(let data): try put(.callSignal, data)
        case .callEnded(let data): try put(.callEnded, data)
        case .connectionCreated(let data): try put(.connectionCreated, data)
        case .connectionDestroyed(let data): try put(.connectionDestroyed, data)
        case .roomSignal(let data): try put(.roomSignal, data)
        case .streamDropped(let data): try put(.streamDropped, data)
        case .streamResumed(let data): try put(.streamResumed, data)
        case .moveRequested(let data): try put(.moveRequested, data)
        case .tokenExpiring(let data): try put(.tokenExpiring, data)
        case .presenceChanged(let data): try put(.presenceChanged, data)
        case .notification(let data): try put(.notification, data)
        case .unknown(let type, let data):
            try container.encode(type, forKey: .type)
            try container.encodeIfPresent(data, forKey: .data)
        }
    }
}
