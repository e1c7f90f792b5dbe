/// Why a request was not carried out. Match on `code`; the message is for people.
public struct ControlFault: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The kind of fault; later versions may add some.
    public struct Code: RawRepresentable, Hashable, Sendable, Codable {
        /// As on the wire.
        public let rawValue: String
        /// Any text will do.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The line is not a JSON object.
        public static let malformed = Code(rawValue: "malformed")
        /// The line is longer than ``ControlLimits/requestBytes``.
        public static let tooLong = Code(rawValue: "too_long")
        /// There is no such request.
        public static let unknownRequest = Code(rawValue: "unknown_request")
        /// A member is missing or unknown, or has a value that is not allowed.
        public static let wrongValue = Code(rawValue: "wrong_value")
        /// There is no call of that number, or no call that the request applies to.
        public static let noSuchCall = Code(rawValue: "no_such_call")
        /// Several calls match; the request must name one.
        public static let severalCalls = Code(rawValue: "several_calls")
        /// There is no account of that name.
        public static let noSuchAccount = Code(rawValue: "no_such_account")
        /// Several accounts match; the request must name one.
        public static let severalAccounts = Code(rawValue: "several_accounts")
        /// The call's state does not allow the request.
        public static let wrongState = Code(rawValue: "wrong_state")
        /// The device's calls do not use a sound card.
        public static let noSoundCard = Code(rawValue: "no_sound_card")
        /// The device is not connected to its service.
        public static let notConnected = Code(rawValue: "not_connected")
        /// The limit of calls, or of clients, is reached.
        public static let tooMany = Code(rawValue: "too_many")
        /// A file cannot be played, or not be recorded to.
        public static let fileUnusable = Code(rawValue: "file_unusable")
        /// The device's configuration does not allow it.
        public static let notConfigured = Code(rawValue: "not_configured")
        /// The device could not do it.
        public static let failed = Code(rawValue: "failed")
        /// An exchange has no user of that name.
        public static let noSuchUser = Code(rawValue: "no_such_user")
        /// The user's device has no session at the exchange.
        public static let noSuchDevice = Code(rawValue: "no_such_device")
        /// The exchange has no such invite.
        public static let noSuchInvite = Code(rawValue: "no_such_invite")
        /// No one is in a room of that name at the exchange.
        public static let noSuchRoom = Code(rawValue: "no_such_room")
        /// The exchange has no such group.
        public static let noSuchGroup = Code(rawValue: "no_such_group")
        /// The user is not in the room or group.
        public static let noSuchMember = Code(rawValue: "no_such_member")
        /// The exchange cannot do it at present, and has changed nothing.
        public static let unavailable = Code(rawValue: "unavailable")
        /// It is not known whether the exchange has done it.
        public static let unconfirmed = Code(rawValue: "unconfirmed")
        /// Over HTTP: there is no such path.
        public static let notFound = Code(rawValue: "not_found")
        /// Over HTTP: the record names no such recording, or its file is gone.
        public static let noSuchRecording = Code(rawValue: "no_such_recording")
        /// Over HTTP: the range of bytes begins behind the end of the recording.
        public static let rangeNotSatisfiable = Code(rawValue: "range_not_satisfiable")
        /// Over HTTP: the path does not have this method.
        public static let methodNotAllowed = Code(rawValue: "method_not_allowed")
        /// Over HTTP: the bearer token is missing or wrong.
        public static let unauthorized = Code(rawValue: "unauthorized")
        /// Over HTTP: a token is in the URL, where logs would keep it.
        public static let tokenInURL = Code(rawValue: "token_in_url")
        /// Over HTTP: the request names another host, as after DNS rebinding.
        public static let foreignHost = Code(rawValue: "foreign_host")
        /// Over HTTP: a page of another origin sent the request.
        public static let foreignOrigin = Code(rawValue: "foreign_origin")
        /// Over HTTP: the body is not of the type application/json.
        public static let unsupportedMediaType = Code(rawValue: "unsupported_media_type")
        /// Over HTTP: another request had this `Idempotency-Key`.
        public static let idempotencyMismatch = Code(rawValue: "idempotency_mismatch")
        /// Over HTTP: the first request with this `Idempotency-Key` has no answer yet.
        public static let idempotencyBusy = Code(rawValue: "idempotency_busy")
    }

    /// The kind of fault.
    public var code: Code
    /// What is wrong and what to try, as a sentence without its full stop.
    public var message: String

    /// Names a fault.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
