/// Values of headers, parsed when they are read. `nil` means absent or malformed, unless noted.
extension SIPHeaders {
    /// All hops, the last one first; `nil` if one is malformed.
    public var vias: [Via]? {
        guard let elements = elements("Via") else { return nil }
        let vias = elements.compactMap(Via.init)
        return vias.count == elements.count ? vias : nil
    }

    /// The last hop.
    public var topVia: Via? {
        guard let line = self["Via"], let element = TextScanner.elements(of: line)?.first else { return nil }
        return Via(element)
    }

    /// Replaces the last hop.
    public mutating func setTopVia(_ via: Via) {
        guard let elements = elements("Via"), !elements.isEmpty else { return }
        removeAll("Via")
        for element in elements.dropFirst().reversed() { insertFirst("Via", element) }
        insertFirst("Via", via.description)
    }

    /// The sender.
    public var from: NameAddress? { self["From"].flatMap(NameAddress.init) }
    /// The addressee.
    public var to: NameAddress? { self["To"].flatMap(NameAddress.init) }

    /// The dialog's or registration's name.
    public var callID: String? {
        guard let value = self["Call-ID"], !value.isEmpty, value.utf8.allSatisfy(TextScanner.isCallID) else {
            return nil
        }
        return value
    }

    /// `CSeq`.
    public var sequence: CSeq? { self["CSeq"].flatMap(CSeq.init) }

    /// A list of addresses; empty if there is none, and `nil` if one is malformed.
    public func addresses(_ name: SIPHeaderName) -> [NameAddress]? {
        guard let elements = elements(name) else { return nil }
        var addresses: [NameAddress] = []
        // The beginning of a display name that has a comma and no quotation marks.
        var start = ""
        for element in elements {
            let text = start + element
            if let address = NameAddress(text) {
                addresses.append(address)
                start = ""
            } else {
                let mayBeginName = !element.utf8.contains(UInt8(ascii: "<")) && element != "*"
                guard mayBeginName, Self.namedAddresses.contains(name) else { return nil }
                start = text + ", "
            }
        }
        return start.isEmpty ? addresses : nil
    }

    /// Lists whose addresses have names that people choose.
    private static let namedAddresses: Set<SIPHeaderName> = ["Contact", "P-Asserted-Identity"]

    /// The contacts; empty for `*`, and `nil` if one is malformed.
    public var contacts: [NameAddress]? { isContactWildcard ? [] : addresses("Contact") }

    /// The contacts that can be read, up to ``SIPLimits/elements``.
    public var readableContacts: [NameAddress] {
        let elements = lines("Contact").flatMap { TextScanner.elements(of: $0) ?? [] }
        return elements.prefix(SIPLimits.elements).compactMap { NameAddress($0) }
    }

    /// Whether the header is `Contact: *`, which means all contacts of a user.
    public var isContactWildcard: Bool { lines("Contact") == ["*"] }

    /// `Session-Expires` (RFC 4028 §4): the interval and who refreshes.
    public var sessionExpires: SessionExpires? { self["Session-Expires"].flatMap(SessionExpires.init) }

    /// `RAck` (RFC 3262 §7.2).
    public var reliableAck: RAck? { self["RAck"].flatMap(RAck.init) }

    /// `RSeq` (RFC 3262 §7.1).
    public var reliableSequence: UInt32? { number("RSeq") }

    /// `Replaces` (RFC 3891 §6.1).
    public var replaces: Replaces? { count("Replaces") == 1 ? self["Replaces"].flatMap(Replaces.init) : nil }

    /// `Event` (RFC 6665 §8.2.1): the package and its `id`.
    public var event: TokenWithParameters? { self["Event"].flatMap(TokenWithParameters.init) }

    /// Each `Reason` (RFC 3326).
    public var reasons: [TokenWithParameters] { (elements("Reason") ?? []).compactMap(TokenWithParameters.init) }

    /// The cause in a `Reason: SIP`, such as 200 if the call was answered elsewhere.
    public var reasonCause: Int? {
        reasons.first { $0.token.isSame(as: "SIP") }?.parameters["cause"].flatMap { Int($0) }
    }

    /// `Content-Type`.
    public var contentType: MediaType? { self["Content-Type"].flatMap(MediaType.init) }

    /// Whether the list has that option tag.
    public func has(option: String, in name: SIPHeaderName) -> Bool { tokens(name).contains(option) }

    /// Seconds in `Retry-After`, bounded by ``SIPLimits/seconds``.
    public var retryAfterSeconds: UInt32? { number("Retry-After").map { min($0, SIPLimits.seconds) } }
}

/// `Session-Expires`: how long a session lives without a refresh, and who refreshes it.
public struct SessionExpires: Hashable, Sendable, CustomStringConvertible {
    /// The roles in the request that carries it or is answered by it.
    public enum Refresher: String, Sendable {
        /// The sender of the request.
        case uac
        /// The sender of the answer.
        case uas
    }

    /// Seconds.
    public var seconds: UInt32
    /// The side that refreshes; `nil` if the answer is to decide.
    public var refresher: Refresher?

    /// Makes one.
    public init(seconds: UInt32, refresher: Refresher?) {
        self.seconds = seconds
        self.refresher = refresher
    }

    init?(_ text: String) {
        var scanner = TextScanner(text)
        guard let seconds = scanner.number(), let parameters = SIPParameters(&scanner) else { return nil }
        self.seconds = min(seconds, SIPLimits.seconds)
        refresher = parameters["refresher"].flatMap { Refresher(rawValue: $0.lowercased()) }
    }

    /// The text.
    public var description: String { "\(seconds)" + (refresher.map { ";refresher=\($0.rawValue)" } ?? "") }
}

/// `RAck`: which reliable provisional response a PRACK acknowledges.
public struct RAck: Hashable, Sendable, CustomStringConvertible {
    /// The response's `RSeq`.
    public var response: UInt32
    /// The `CSeq` of what it answers.
    public var sequence: CSeq

    /// Makes one.
    public init(response: UInt32, sequence: CSeq) {
        self.response = response
        self.sequence = sequence
    }

    init?(_ text: String) {
        var scanner = TextScanner(text)
        guard let response = scanner.number() else { return nil }
        scanner.skipSpace()
        guard let sequence = CSeq(scanner.rest()) else { return nil }
        self.response = response
        self.sequence = sequence
    }

    /// The text.
    public var description: String { "\(response) \(sequence)" }
}

/// `Replaces`: a dialog that a new call replaces. The tags are as the receiver sees them: `to` is its own.
public struct Replaces: Hashable, Sendable, CustomStringConvertible {
    /// The dialog's Call-ID.
    public var callID: String
    /// The receiver's tag.
    public var toTag: String
    /// The other side's tag.
    public var fromTag: String
    /// Only a dialog that is not confirmed may be replaced.
    public var isEarlyOnly = false

    /// Makes one.
    public init(callID: String, toTag: String, fromTag: String) {
        self.callID = callID
        self.toTag = toTag
        self.fromTag = fromTag
    }

    /// Reads one.
    public init?(_ text: String) {
        var scanner = TextScanner(text)
        let callID = scanner.run(while: TextScanner.isCallID)
        guard !callID.isEmpty, let parameters = SIPParameters(&scanner), let toTag = parameters["to-tag"],
            let fromTag = parameters["from-tag"],
            // Each is there once (RFC 3891 §6.1).
            parameters.all.count(where: { $0.name.isSame(as: "to-tag") || $0.name.isSame(as: "from-tag") }) == 2
        else { return nil }
        self.init(callID: callID, toTag: toTag, fromTag: fromTag)
        isEarlyOnly = parameters.contains("early-only")
    }

    /// The text.
    public var description: String {
        "\(callID);to-tag=\(toTag);from-tag=\(fromTag)" + (isEarlyOnly ? ";early-only" : "")
    }
}

/// A token and parameters, as in `Event`, `Reason` and `Subscription-State`.
public struct TokenWithParameters: Hashable, Sendable, CustomStringConvertible {
    /// The token.
    public var token: String
    /// Its parameters.
    public var parameters: SIPParameters

    /// Makes one.
    public init(_ token: String, _ parameters: SIPParameters) {
        self.token = token
        self.parameters = parameters
    }

    /// Reads one.
    public init?(_ text: String) {
        var scanner = TextScanner(text)
        guard let token = scanner.token(), let parameters = SIPParameters(&scanner) else { return nil }
        self.token = token
        self.parameters = parameters
    }

    /// The text.
    public var description: String { token + parameters.text }
}
