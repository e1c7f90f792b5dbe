/// A request that a bot makes, as it came by HTTP.
public struct ServiceRequest: Equatable, Sendable {
    /// In upper case, as methods are.
    public var method: String
    /// The path and the query.
    public var target: String
    /// What `Authorization` says.
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

/// Why a request of a bot is not followed, in words for whoever wrote the bot. The words do not repeat the request.
public struct ServiceFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of faults. ``ServiceAnswer`` has each service's way to say them.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        /// There is nothing at the path.
        case noSuchPath
        /// The path does not have the method.
        case wrongMethod
        /// The credentials are missing, or unknown.
        case unauthorized
        /// There is no such call, or it is not this account's.
        case noSuchCall
        /// The call is over, or in a state in which it cannot be done.
        case callOver
        /// The body is not understood.
        case badRequest
        /// It must not be done: the callee is not allowed, or the credentials are for something else.
        case forbidden
        /// There were too many requests.
        case tooMany
        /// It cannot be done now.
        case unavailable
    }

    /// Which kind it is.
    public let kind: Kind
    /// Whose words the bot understands; `nil` if the path tells nothing of it.
    public let service: BotService?
    /// Twilio's number for it, if it has one of its own; else that of the kind.
    public let twilioCode: Int64?
    /// The words.
    public let description: String

    /// Makes one.
    public init(_ kind: Kind, _ service: BotService?, twilioCode: Int64? = nil, _ description: String) {
        self.kind = kind
        self.service = service
        self.twilioCode = twilioCode
        self.description = description
    }
}
