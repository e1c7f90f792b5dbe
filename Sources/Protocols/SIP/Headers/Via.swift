/// One hop of a request's route (RFC 3261 §20.42).
public struct Via: Hashable, Sendable, CustomStringConvertible {
    /// The beginning of every branch that follows RFC 3261.
    public static let cookie = "z9hG4bK"

    /// `UDP`, `TCP`, `TLS`, `WS`, `WSS` or another, in upper case.
    public var transport: String
    /// The sender's own address, as the sender gives it.
    public var host: SIPHost
    /// Its port, if one is given.
    public var port: UInt16?
    /// `branch`, `received`, `rport` and others.
    public var parameters = SIPParameters()

    /// Makes our own hop, which asks for the port that the request comes from (RFC 3581).
    public init(transport: String, host: SIPHost, port: UInt16?, branch: String) {
        self.transport = transport.uppercased()
        self.host = host
        self.port = port
        parameters.insertFlag("rport")
        parameters["branch"] = branch
    }

    /// Reads one element of a `Via` header.
    public init?(_ text: String) {
        var scanner = TextScanner(text)
        scanner.skipSpace()
        // Any version: a request of another version is answered with 505, by this hop.
        guard let name = scanner.token(), name.isSame(as: "SIP"), scanner.separator(UInt8(ascii: "/")),
            scanner.token() != nil, scanner.separator(UInt8(ascii: "/")), let transport = scanner.token()
        else { return nil }
        self.transport = transport.uppercased()
        scanner.skipSpace()
        var sentBy = scanner.run { TextScanner.isAlphanumeric($0) || Self.isHostMark($0) }
        if scanner.separator(UInt8(ascii: ":")) { sentBy += ":" + scanner.run(while: TextScanner.isDigit) }
        guard let (host, port) = SIPHost.hostAndPort(sentBy) else { return nil }
        self.host = host
        self.port = port
        guard let parameters = SIPParameters(&scanner) else { return nil }
        self.parameters = parameters
        if let received = parameters["received"], SIPHost(received) == nil { return nil }
    }

    private static func isHostMark(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x2D, 0x2E, 0x5F, 0x3A, 0x5B, 0x5D: true
        default: false
        }
    }

    /// The branch.
    public var branch: String? { parameters["branch"] }

    /// The branch, if it follows the rules of RFC 3261, so that it names a transaction.
    public var transactionBranch: String? {
        guard let branch, branch.utf8.count > Self.cookie.utf8.count, branch.prefix(7).lowercased() == "z9hg4bk" else {
            return nil
        }
        return branch
    }

    /// Records the source of the request (RFC 3261 §18.2.1, RFC 3581 §4). The receiver does so before all else.
    public mutating func stamp(sourceHost: String, sourcePort: UInt16) {
        let wantsPort = parameters.contains("rport")
        // The sender's own text about its source is ignored.
        while parameters.contains("received") { parameters["received"] = nil }
        guard let source = SIPHost(sourceHost) else { return }
        if wantsPort || !host.isSame(as: source) { parameters["received"] = sourceHost }
        if wantsPort {
            parameters["rport"] = nil
            parameters["rport"] = String(sourcePort)
        }
    }

    /// The source of the request, as ``stamp(sourceHost:sourcePort:)`` recorded it.
    public var source: SIPHost { parameters["received"].flatMap { SIPHost($0) } ?? host }

    /// The text.
    public var description: String {
        "SIP/2.0/\(transport) \(host)" + (port.map { ":\($0)" } ?? "") + parameters.text
    }
}

/// `CSeq`: a request's number in its dialog, and its method.
public struct CSeq: Hashable, Sendable, CustomStringConvertible {
    /// Below 2³¹.
    public var number: UInt32
    /// The request's method.
    public var method: SIPMethod

    /// Makes one.
    public init(_ number: UInt32, _ method: SIPMethod) {
        self.number = number
        self.method = method
    }

    /// Reads one.
    public init?(_ text: String) {
        var scanner = TextScanner(text)
        scanner.skipSpace()
        guard let number = scanner.number(), number <= SIPLimits.sequence else { return nil }
        scanner.skipSpace()
        guard let token = scanner.token(), let method = SIPMethod(rawValue: token), scanner.isAtEnd else { return nil }
        self.number = number
        self.method = method
    }

    /// The text.
    public var description: String { "\(number) \(method)" }
}
