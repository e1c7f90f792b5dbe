internal import JSON

/// Why a request over HTTP failed: problem details (RFC 9457) with the codes of ``ControlFault``.
public struct ControlProblem: Error, Hashable, Sendable {
    /// The media type of the answer.
    public static let contentType = "application/problem+json"

    /// What is wrong.
    public let fault: ControlFault
    /// The methods that the path has; of ``ControlFault/Code/methodNotAllowed`` alone.
    let allowed: [String]

    /// Wraps a fault.
    public init(_ fault: ControlFault) { self.init(fault, allowed: []) }

    init(_ fault: ControlFault, allowed: [String]) {
        self.fault = fault
        self.allowed = allowed
    }

    init(_ code: ControlFault.Code, _ message: String) { self.init(ControlFault(code, message)) }

    /// The status of HTTP, 400…599.
    public var status: Int { Self.kind(of: fault.code).status }

    /// The answer to the request.
    public var answer: ControlHTTPAnswer {
        let kind = Self.kind(of: fault.code)
        let details: JSONValue = [
            "type": .string(Self.type(of: fault.code)), "title": .string(kind.title),
            "status": .integer(Int64(kind.status)), "detail": .string(fault.message),
            "code": .string(fault.code.rawValue),
        ]
        var answer = ControlHTTPAnswer(
            status: kind.status, contentType: Self.contentType, body: ControlCoding.line(details))
        if !allowed.isEmpty { answer.fields.append(.init("Allow", allowed.joined(separator: ", "))) }
        if fault.code == .unauthorized { answer.fields.append(.init("WWW-Authenticate", "Bearer")) }
        if fault.code == .tooMany { answer.fields.append(.init("Retry-After", "\(Self.retrySeconds)")) }
        return answer
    }

    private static let retrySeconds = 5
}

extension ControlProblem {
    /// A kind of problem.
    struct Kind: Sendable {
        let code: ControlFault.Code
        let status: Int
        let title: String

        init(_ code: ControlFault.Code, _ status: Int, _ title: String) {
            self.code = code
            self.status = status
            self.title = title
        }
    }

    /// The `type` of a problem, a URI that identifies its code.
    static func type(of code: ControlFault.Code) -> String { "urn:handset:problem:\(code.rawValue)" }

    /// The status and title of a code; later versions may add codes.
    static func kind(of code: ControlFault.Code) -> Kind {
        kinds.first { $0.code == code } ?? exchangeKinds.first { $0.code == code }
            ?? Kind(code, 409, "The request cannot be carried out")
    }

    /// The kinds that an exchange has beside those of a device.
    static let exchangeKinds = [
        Kind(.noSuchUser, 404, "There is no such user"),
        Kind(.noSuchDevice, 404, "The device has no session"),
        Kind(.noSuchInvite, 404, "There is no such invite"),
        Kind(.noSuchRoom, 404, "There is no such room"),
        Kind(.noSuchGroup, 404, "There is no such group"),
        Kind(.noSuchMember, 404, "The user is not in it"),
        Kind(.unconfirmed, 500, "It is not known whether the request was carried out"),
        Kind(.unavailable, 503, "The exchange cannot do it at present, and has changed nothing"),
    ]

    /// All kinds of a device.
    static let kinds = [
        Kind(.malformed, 400, "The body is not a JSON object"),
        Kind(.tokenInURL, 400, "A token must not be part of a URL"),
        Kind(.unauthorized, 401, "The bearer token is missing or wrong"),
        Kind(.foreignOrigin, 403, "A page of another origin sent the request"),
        Kind(.notFound, 404, "There is no such resource"),
        Kind(.unknownRequest, 404, "There is no such request"),
        Kind(.noSuchCall, 404, "There is no such call"),
        Kind(.noSuchAccount, 404, "There is no such account"),
        Kind(.noSuchRecording, 404, "There is no such recording"),
        Kind(.methodNotAllowed, 405, "The resource does not have this method"),
        Kind(.severalCalls, 409, "Several calls match"),
        Kind(.severalAccounts, 409, "Several accounts match"),
        Kind(.wrongState, 409, "The state does not allow the request"),
        Kind(.noSoundCard, 409, "The device's calls use no sound card"),
        Kind(.notConfigured, 409, "The configuration does not allow it"),
        Kind(.idempotencyBusy, 409, "The first request with this key has no answer yet"),
        Kind(.tooLong, 413, "The body is too long"),
        Kind(.unsupportedMediaType, 415, "The body is not of the type application/json"),
        Kind(.rangeNotSatisfiable, 416, "The range is not in the recording"),
        Kind(.foreignHost, 421, "The request names another host"),
        Kind(.wrongValue, 422, "A member or parameter is wrong"),
        Kind(.fileUnusable, 422, "The file cannot be used"),
        Kind(.idempotencyMismatch, 422, "The key was used with another request"),
        Kind(.tooMany, 429, "A limit is reached"),
        Kind(.failed, 500, "The device failed"),
        Kind(.notConnected, 503, "The device is not connected to its service"),
    ]
}
