public import JSON

/// Data of `streamDropped` and `streamResumed`: a peer's connection was lost, or is there again (CONN-8).
///
/// Either ``room`` or ``invite`` is there: what the peer is a peer in.
public struct StreamChange: Codable, Hashable, Sendable {
    /// The room that both are in.
    public var room: RoomName?
    /// The invite that became the call that both are in.
    public var invite: InviteID?
    /// The peer's connection.
    public var connection: ConnectionName
    /// The peer.
    public var user: UserID

    /// Makes the data.
    public init(room: RoomName? = nil, invite: InviteID? = nil, connection: ConnectionName, user: UserID) {
        self.room = room
        self.invite = invite
        self.connection = connection
        self.user = user
    }
}

/// Data of `moveRequested`: the exchange asks the device to connect again (CONN-12).
public struct MoveRequested: Codable, Hashable, Sendable {
    /// How long the device may take, in seconds; after it the exchange may close the connection.
    public var withinSeconds: Double
    /// Where to connect; absent: the address in the resources for the connection.
    public var webSocketURL: String?

    /// Makes the data.
    public init(withinSeconds: Double, webSocketURL: String? = nil) {
        self.withinSeconds = withinSeconds
        self.webSocketURL = webSocketURL
    }

    private enum CodingKeys: String, CodingKey { case withinSeconds = "within_seconds", webSocketURL = "websocket_url" }
}

/// Data of `tokenExpiring`: the session's token is about to end (AUTH-4).
public struct TokenExpiring: Codable, Hashable, Sendable {
    /// Seconds until then; after it the exchange closes the connection.
    public var expiresIn: Double

    /// Makes the data.
    public init(expiresIn: Double) { self.expiresIn = expiresIn }

    private enum CodingKeys: String, CodingKey { case expiresIn = "expires_in" }
}

/// Data of `notification`: a payload for the application, unchanged (CONN-11).
public struct NotificationReceived: Codable, Hashable, Sendable {
    /// The payload.
    public var payload: JSONValue?

    /// Makes the data.
    public init(payload: JSONValue? = nil) {
        self.payload = payload
    }
}
