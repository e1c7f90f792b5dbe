/// A request (RFC 3261 §7.1).
public struct SIPRequest: Equatable, Sendable {
    /// The method.
    public var method: SIPMethod
    /// The target of the request.
    public var uri: AnyURI
    /// The headers. `Content-Length` is written by the writer.
    public var headers: SIPHeaders
    /// The body.
    public var body: [UInt8]

    /// Makes a request with no more than this in it.
    public init(method: SIPMethod, uri: AnyURI, headers: SIPHeaders = SIPHeaders(), body: [UInt8] = []) {
        self.method = method
        self.uri = uri
        self.headers = headers
        self.body = body
    }
}

/// A response (RFC 3261 §7.2).
public struct SIPResponse: Equatable, Sendable {
    /// 100 to 699.
    public var status: Int
    /// The reason phrase, for people.
    public var reason: String
    /// The headers. `Content-Length` is written by the writer.
    public var headers: SIPHeaders
    /// The body.
    public var body: [UInt8]

    /// Makes a response; without a reason, with the usual one.
    public init(status: Int, reason: String? = nil, headers: SIPHeaders = SIPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.reason = reason ?? StatusText.text(status)
        self.headers = headers
        self.body = body
    }

    /// Answers a request: with its `Via`, `From`, `To`, `Call-ID` and `CSeq` (RFC 3261 §8.2.6.2).
    ///
    /// - Parameter toTag: Our tag, which is added to a `To` that has none, except in a 100.
    public init(_ status: Int, to request: SIPRequest, toTag: String? = nil, reason: String? = nil) {
        self.init(status: status, reason: reason)
        for header in request.headers.all {
            switch header.name.key {
            case "via", "from", "call-id", "cseq": headers.append(SIPHeaderName(header.name.text), header.value)
            case "to":
                var value = header.value
                if let toTag, status > 100, request.headers.to?.tag == nil { value += ";tag=" + toTag }
                headers.append(SIPHeaderName(header.name.text), value)
            case "timestamp" where status == 100: headers.append("Timestamp", header.value)
            default: break
            }
        }
    }

    /// 1xx.
    public var isProvisional: Bool { status < 200 }
    /// 2xx.
    public var isSuccess: Bool { (200..<300).contains(status) }
}

/// A request or a response.
public enum SIPMessage: Equatable, Sendable {
    /// A request.
    case request(SIPRequest)
    /// A response.
    case response(SIPResponse)

    /// Its headers.
    public var headers: SIPHeaders {
        switch self {
        case .request(let request): request.headers
        case .response(let response): response.headers
        }
    }

    /// Its body.
    public var body: [UInt8] {
        switch self {
        case .request(let request): request.body
        case .response(let response): response.body
        }
    }
}

/// The usual reason of each status (RFC 3261 §21 and the registry).
enum StatusText {
    static func text(_ status: Int) -> String {
        switch status {
        case 100: "Trying"
        case 180: "Ringing"
        case 181: "Call Is Being Forwarded"
        case 182: "Queued"
        case 183: "Session Progress"
        case 200: "OK"
        case 202: "Accepted"
        case 300: "Multiple Choices"
        case 301: "Moved Permanently"
        case 302: "Moved Temporarily"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 410: "Gone"
        case 413: "Request Entity Too Large"
        case 414: "Request-URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Unsupported URI Scheme"
        case 420: "Bad Extension"
        case 421: "Extension Required"
        case 422: "Session Interval Too Small"
        case 423: "Interval Too Brief"
        case 480: "Temporarily Unavailable"
        case 481: "Call/Transaction Does Not Exist"
        case 482: "Loop Detected"
        case 483: "Too Many Hops"
        case 484: "Address Incomplete"
        case 486: "Busy Here"
        case 487: "Request Terminated"
        case 488: "Not Acceptable Here"
        case 489: "Bad Event"
        case 491: "Request Pending"
        case 500: "Server Internal Error"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 505: "Version Not Supported"
        case 513: "Message Too Large"
        case 600: "Busy Everywhere"
        case 603: "Decline"
        case 606: "Not Acceptable"
        default: status < 200 ? "Progress" : status < 300 ? "Success" : "Failure"
        }
    }
}
