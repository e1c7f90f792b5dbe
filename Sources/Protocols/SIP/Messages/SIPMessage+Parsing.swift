internal import Core

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
