/// A request that a bot makes, as it came by HTTP.
public struct ServiceRequest: Equatable, Sendable {
    /// In upper case, as methods are.
    public var method: String
    /// The path and the query.
    public var target: String
    /// The credentials of `Authorization`.
    public var credentials: ServiceCredentials
    /// The value of `Content-Type`.
    public var contentType: String?
    /// The body.
    public var body: [UInt8]

    /// Makes one.
    public init(
        method: String, target: String, authorization: String? = nil, contentType: String? = nil, body: [UInt8] = []
    ) {
        self.method = method
        self.target = target
        credentials = ServiceCredentials(authorization: authorization)
        self.contentType = contentType
        self.body = body
    }
}

/// The services whose requests are understood.
public enum BotService: String, CaseIterable, Hashable, Sendable {
    case twilio
    case telnyx
    case plivo
}

/// Why a bot's request is refused. The message is for the bot's author and does not repeat the request.
public struct ServiceFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of faults. ``ServiceAnswer`` writes them as each service does.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        /// There is nothing at the path.
        case noSuchPath
        /// The path does not support the method.
        case wrongMethod
        /// The credentials are missing, or unknown.
        case unauthorized
        /// There is no such call, or it is not this account's.
        case noSuchCall
        /// The call ended, or its state does not allow the request.
        case callOver
        /// The body is not understood.
        case badRequest
        /// Not allowed: the callee is not permitted, or the credentials are for another purpose.
        case forbidden
        /// There were too many requests.
        case tooMany
        /// It cannot be done now.
        case unavailable
    }

    /// The kind.
    public let kind: Kind
    /// The service whose form the bot understands; `nil` if the path does not name one.
    public let service: BotService?
    /// Twilio's error number, if the fault has one of its own; else that of the kind.
    public let twilioCode: Int64?
    /// The message.
    public let description: String

    /// Makes one.
    public init(_ kind: Kind, _ service: BotService?, twilioCode: Int64? = nil, _ description: String) {
        self.kind = kind
        self.service = service
        self.twilioCode = twilioCode
        self.description = description
    }
}
