/// The stable numbers of errors on the wire: those of JSON-RPC 2.0 §5.1 and the protocol's own.
public enum RPCErrorCode: Int, CaseIterable, Sendable {
    /// The message is not JSON.
    case parseError = -32700
    /// The message is JSON, but no JSON-RPC 2.0 request.
    case invalidRequest = -32600
    /// There is no such method.
    case unknownMethod = -32601
    /// The method does not take these parameters.
    case invalidParams = -32602
    /// The exchange failed; not the client's fault.
    case internalError = -32603
    /// Nothing but `session.start` and `ping` works before login (AUTH-6).
    case notAuthenticated = 4001
    /// The token was good once.
    case tokenExpired = 4002
    /// The token never was good, or was withdrawn.
    case tokenRejected = 4003
    /// The token claims to be signed here, but is not.
    case tokenWrongSignature = 4004
    /// The token is valid for another session only (AUTH-5).
    case tokenForAnotherSession = 4005
    /// The token was valid until a logout, or the exchange's operator, revoked it.
    case tokenRevoked = 4006
    /// This login may not do that: an anonymous one may only join rooms (AUTH-3).
    case notAllowed = 4030
    /// Register the device first (DEV-1).
    case notRegistered = 4031
    /// No user has that id.
    case unknownUser = 4040
    /// There is no such invite, or it ended long ago.
    case unknownInvite = 4041
    /// There is no such room, or this connection is not in it.
    case unknownRoom = 4042
    /// The invite has not become a call, or the call has ended.
    case unknownCall = 4043
    /// There is no such group, or this user is not in it.
    case unknownGroup = 4044
    /// Another device of this user has answered, or this one has answered otherwise (INV-5).
    case alreadyHandled = 4090
    /// The invite has ended: every invitee is done (INV-6).
    case inviteEnded = 4091
    /// The answer came after the ttl (INV-10).
    case inviteTimedOut = 4092
    /// The inviter has taken the invite back (INV-10).
    case inviteCancelled = 4093
    /// Only the inviter cancels, only invitees answer, and only the owner dismisses a group.
    case notYours = 4094
    /// Another group has that id already.
    case groupExists = 4095
    /// A part of the message is too large; `data.limit` names the limit.
    case tooLarge = 4130
    /// Too many messages, invites or sessions at once.
    case tooManyRequests = 4290
    /// The invite was for devices that are online, and none is.
    case noDeviceOnline = 4800

    /// The name in `data.name`.
    public var name: String {
        switch self {
        case .parseError: "parseError"
        case .invalidRequest: "invalidRequest"
        case .unknownMethod: "unknownMethod"
        case .invalidParams: "invalidParams"
        case .internalError: "internalError"
        case .notAuthenticated: "notAuthenticated"
        case .tokenExpired: "tokenExpired"
        case .tokenRejected: "tokenRejected"
        case .tokenWrongSignature: "tokenWrongSignature"
        case .tokenForAnotherSession: "tokenForAnotherSession"
        case .tokenRevoked: "tokenRevoked"
        case .notAllowed: "notAllowed"
        case .notRegistered: "notRegistered"
        case .unknownUser: "unknownUser"
        case .unknownInvite: "unknownInvite"
        case .unknownRoom: "unknownRoom"
        case .unknownCall: "unknownCall"
        case .unknownGroup: "unknownGroup"
        case .alreadyHandled: "alreadyHandled"
        case .inviteEnded: "inviteEnded"
        case .inviteTimedOut: "inviteTimedOut"
        case .inviteCancelled: "inviteCancelled"
        case .notYours: "notYours"
        case .groupExists: "groupExists"
        case .tooLarge: "tooLarge"
        case .tooManyRequests: "tooManyRequests"
        case .noDeviceOnline: "noDeviceOnline"
        }
    }
}

/// The error member of a response (JSON-RPC 2.0 §5.1).
public struct RPCError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The contents of `data`.
    public struct Details: Hashable, Sendable, Codable {
        /// The code's name; a client may match on it instead of the number.
        public var name: String
        /// With `tooLarge`: what is allowed.
        public var limit: Int?

        /// Makes details.
        public init(name: String, limit: Int? = nil) {
            self.name = name
            self.limit = limit
        }
    }

    /// The number on the wire. See ``known`` for what it means.
    public var code: Int
    /// A sentence for people.
    public var message: String
    /// The code's name, and the limit if one was passed.
    public var data: Details?

    /// Makes an error that this wire defines.
    public init(_ code: RPCErrorCode, _ message: String, limit: Int? = nil) {
        self.code = code.rawValue
        self.message = message
        data = Details(name: code.name, limit: limit)
    }

    /// The code, if this version of the wire knows it.
    public var known: RPCErrorCode? { RPCErrorCode(rawValue: code) }

    /// The sentence, with name and number.
    public var description: String { "\(message) (\(data?.name ?? "error") \(code))" }
}
