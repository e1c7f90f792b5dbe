internal import Core

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

extension SIPMessage {
    /// Reads one message that fills a datagram, or that ``SIPStreamFramer`` cut from a stream.
    ///
    /// Lines may end in CR LF or LF. Bytes that are not UTF-8 are repaired. What a datagram has beyond `Content-Length` is
    /// ignored (RFC 3261 §18.3).
    ///
    /// - Throws: ``SIPParseError`` with the status of the answer. Nothing a peer sends can trap.
    public init(parsing bytes: [UInt8]) throws(SIPParseError) {
        var parser = MessageParser(bytes)
        self = try parser.message()
    }
}

private struct MessageParser {
    private let bytes: [UInt8]
    private var index = 0
    private var method: SIPMethod?
    private var isRequest = true
    private var headers = SIPHeaders()

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func message() throws(SIPParseError) -> SIPMessage {
        guard bytes.count <= SIPLimits.messageBytes else {
            throw dropped("longer than \(SIPLimits.messageBytes) bytes")
        }
        while index < bytes.count, bytes[index] == 13 || bytes[index] == 10 { index += 1 }
        guard let line = nextLine(), !line.isEmpty else { throw dropped("expected a start line") }
        let start = try startLine(Array(line))
        // A fault of the start line is answered too, and the answer needs the headers.
        let fault = try headerLines()
        if let startFault = start.fault { throw refused(startFault.status, startFault.message) }
        if let fault { throw refused(400, fault) }
        let body = try body()
        switch start.kind {
        case .request(let method, let uri):
            let request = SIPRequest(method: method, uri: uri, headers: headers, body: body)
            if let fault = MessageCheck.fault(headers, method: method) { throw refused(400, fault) }
            return .request(request)
        case .response(let status, let reason):
            if let fault = MessageCheck.fault(headers, method: nil) { throw dropped(fault) }
            return .response(SIPResponse(status: status, reason: reason, headers: headers, body: body))
        case .malformed: throw refused(400, "expected a start line")
        }
    }

    private enum Start {
        case request(SIPMethod, AnyURI)
        case response(Int, String)
        case malformed
    }

    private mutating func startLine(_ line: [UInt8]) throws(SIPParseError) -> (
        kind: Start, fault: (status: Int, message: String)?
    ) {
        let text = String(decoding: line, as: UTF8.self)
        if text.utf8.count >= 4, text.prefix(4).isEqual("SIP/") {
            isRequest = false
            return (try statusLine(text), nil)
        }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        method = SIPMethod(rawValue: parts[0])
        guard let method else { throw dropped("expected a method or SIP/2.0") }
        guard let version = parts.last, parts.count > 2, version.isSame(as: "SIP/2.0") else {
            let isOtherVersion = parts.count == 3 && parts[2].prefix(4).isEqual("SIP/")
            return (.malformed, isOtherVersion ? (505, "expected SIP/2.0") : (400, "expected METHOD URI SIP/2.0"))
        }
        guard parts.count == 3 else { return (.malformed, (400, "expected one space around the URI")) }
        guard parts[1].utf8.count <= SIPLimits.uriBytes else { return (.malformed, (414, "the URI is too long")) }
        guard let uri = AnyURI(parts[1]) else { return (.malformed, (400, "expected a URI in the request line")) }
        return (.request(method, uri), nil)
    }

    private func statusLine(_ text: String) throws(SIPParseError) -> Start {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, String(parts[0]).isSame(as: "SIP/2.0"), parts[1].utf8.count == 3,
            let status = Digits.number(parts[1], upTo: 699), status >= 100
        else { throw dropped("expected SIP/2.0, a status from 100 to 699 and a reason") }
        return .response(status, parts.count > 2 ? String(parts[2]) : "")
    }

    /// Reads up to the empty line.
    ///
    /// - Returns: The fault of a malformed line; the other lines are still read, because the answer needs them.
    private mutating func headerLines() throws(SIPParseError) -> String? {
        var fault: String?
        var pending: [UInt8] = []
        while true {
            guard index <= SIPLimits.headerBytes else { throw refused(513, "the headers are too long") }
            guard let line = nextLine() else { return "expected an empty line behind the headers" }
            if let first = line.first, first == 0x20 || first == 0x09 {
                guard !pending.isEmpty else {
                    fault = fault ?? "the first header is folded"
                    continue
                }
                pending.append(0x20)
                pending += line.drop { $0 == 0x20 || $0 == 0x09 }
                continue
            }
            if !pending.isEmpty, let lineFault = header(pending) { fault = fault ?? lineFault }
            guard !line.isEmpty else { return fault }
            guard headers.all.count < SIPLimits.headers else { throw refused(513, "there are too many headers") }
            pending = Array(line)
        }
    }

    private mutating func header(_ line: [UInt8]) -> String? {
        // A CR within a line is white space here, as it is when the message is written.
        let line = line.map { $0 == 13 ? 0x20 : $0 }
        guard let colon = line.firstIndex(of: 0x3A) else { return "a header has no colon" }
        let name = TextScanner.trimmed(line[..<colon])
        guard TextScanner.isToken(name) else { return "a header's name is not a token" }
        let value = TextScanner.trimmed(line[(colon + 1)...])
        guard value.utf8.count <= SIPLimits.valueBytes else { return "a header is too long" }
        headers.append(SIPHeaderName(name), value)
        return nil
    }

    private func body() throws(SIPParseError) -> [UInt8] {
        let rest = bytes[index...]
        switch MessageCheck.contentLength(headers) {
        case .absent: return Array(rest)
        case .malformed: throw refused(400, "Content-Length is not a number, or there are several")
        case .bytes(let count):
            guard count <= rest.count else { throw refused(400, "the body is shorter than Content-Length") }
            return Array(rest.prefix(count))
        }
    }

    /// The next line without its end; `nil` if no line end follows.
    private mutating func nextLine() -> ArraySlice<UInt8>? {
        guard let end = bytes[index...].firstIndex(of: 10) else { return nil }
        var line = bytes[index..<end]
        index = end + 1
        if line.last == 13 { line = line.dropLast() }
        return line
    }

    private func dropped(_ message: String) -> SIPParseError {
        SIPParseError(status: nil, message: message, answer: nil)
    }

    private func refused(_ status: Int, _ message: String) -> SIPParseError {
        guard isRequest, let method else { return dropped(message) }
        var answer: SIPResponse?
        if method != .ack, headers.vias != nil, headers.count("Via") > 0 {
            // The URI is no part of an answer.
            let request = SIPRequest(method: method, uri: .other(scheme: "x", rest: "x"), headers: headers)
            // The response makes no dialog, so the tag need not be unique.
            answer = SIPResponse(status, to: request, toTag: "malformed")
        }
        return SIPParseError(status: status, message: message, answer: answer)
    }
}

extension Substring {
    /// Whether it is `other`, without case.
    fileprivate func isEqual(_ other: String) -> Bool { String(self).isSame(as: other) }
}

/// Checks for the headers that every message must have (RFC 3261 §8.1.1).
enum MessageCheck {
    enum ContentLength: Equatable {
        case absent
        case malformed
        case bytes(Int)
    }

    static func contentLength(_ headers: SIPHeaders) -> ContentLength {
        let lines = headers.lines("Content-Length")
        guard let line = lines.first else { return .absent }
        // Several equal lengths are one.
        guard Set(lines).count == 1, !line.isEmpty, line.utf8.allSatisfy(TextScanner.isDigit) else { return .malformed }
        return .bytes(Int(line) ?? .max)
    }

    /// What is wrong with the headers of a request of that method, or of a response.
    static func fault(_ headers: SIPHeaders, method: SIPMethod?) -> String? {
        for name: SIPHeaderName in ["From", "To", "Call-ID", "CSeq", "Max-Forwards", "Content-Type", "Expires"]
        where headers.count(name) > 1 { return "there are several \(name) headers" }
        guard let vias = headers.vias, let via = vias.first else { return "expected a Via" }
        // The cookie promises that the rest is unique; without one, transactions could not be distinguished.
        if via.branch == Via.cookie { return "the branch of Via is empty" }
        guard headers.from != nil else { return "expected From" }
        guard headers.to != nil else { return "expected To" }
        guard headers.callID != nil else { return "expected Call-ID" }
        guard let sequence = headers.sequence else { return "expected CSeq with a number below 2^31 and a method" }
        if let method, sequence.method != method { return "CSeq has another method than the request" }
        // An answer to REGISTER lists the contacts of all the user's telephones: those of others must not hide our own.
        let listsBindings = method == nil && sequence.method == .register
        guard listsBindings || headers.contacts != nil else { return "Contact is malformed" }
        if let text = headers["Max-Forwards"], method != nil {
            guard Digits.number(text, upTo: 255) != nil else { return "expected Max-Forwards from 0 to 255" }
        }
        for name: SIPHeaderName in ["Route", "Record-Route"] where headers.addresses(name) == nil {
            return "\(name) is malformed"
        }
        return nil
    }
}

extension SIPMessage {
    /// The message as it is sent, with its `Content-Length` at the position of an earlier one, or at the end.
    ///
    /// No value can add a header or end the headers: line breaks in them become spaces.
    public var bytes: [UInt8] {
        var output: [UInt8] = []
        switch self {
        case .request(let request):
            output += Self.safe(request.method.rawValue + " " + request.uri.description) + " SIP/2.0\r\n".utf8
        case .response(let response): output += Self.safe("SIP/2.0 \(response.status) \(response.reason)") + [13, 10]
        }
        let body = body
        var hasLength = false
        for header in headers.all {
            let isLength = header.name == "Content-Length"
            if isLength, hasLength { continue }
            hasLength = hasLength || isLength
            output += Self.safe(header.name.text) + [0x3A, 0x20]
            output += isLength ? Array(String(body.count).utf8) : Self.safe(header.value)
            output += [13, 10]
        }
        if !hasLength { output += Array("Content-Length: \(body.count)\r\n".utf8) }
        output += [13, 10]
        return output + body
    }

    private static func safe(_ text: String) -> [UInt8] {
        text.utf8.map { $0 == 13 || $0 == 10 ? 0x20 : $0 }
    }
}

/// The bytes are no SIP message, or one that no element may process.
public struct SIPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The status of the answer to a request with this fault; `nil` if it was no request, so that it is dropped.
    public let status: Int?
    /// What was expected, as a sentence without a full stop.
    public let message: String
    /// The whole answer, if the request had enough to answer it: a `Via` to send it to, and not the method ACK.
    public let answer: SIPResponse?

    /// A sentence for logs.
    public var description: String { "SIP message: " + message + (status.map { " (\($0))" } ?? "") }
}
