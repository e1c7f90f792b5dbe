/// A URI of any scheme, as addresses and request lines carry them.
public enum AnyURI: Hashable, Sendable, CustomStringConvertible {
    /// `sip:` and `sips:`.
    case sip(SIPURI)
    /// `tel:` (RFC 3966).
    case tel(TelURI)
    /// Another scheme and what follows its colon.
    case other(scheme: String, rest: String)

    /// Reads a URI that fills all of `text`.
    public init?(_ text: String) {
        guard text.utf8.count <= SIPLimits.uriBytes, let colon = text.firstIndex(of: ":"),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3C && $0 != 0x3E && $0 != 0x22 })
        else { return nil }
        let scheme = text[..<colon]
        let rest = String(text[text.index(after: colon)...])
        guard let first = scheme.utf8.first, first | 0x20 >= 0x61, first | 0x20 <= 0x7A,
            scheme.utf8.allSatisfy({
                TextScanner.isAlphanumeric($0) || $0 == 0x2B || $0 == 0x2D || $0 == 0x2E
            }), !rest.isEmpty
        else { return nil }
        switch scheme.lowercased() {
        case "sip", "sips":
            guard let uri = SIPURI(rest: rest, isSecure: scheme.utf8.count == 4) else { return nil }
            self = .sip(uri)
        case "tel":
            guard let uri = TelURI(rest: rest) else { return nil }
            self = .tel(uri)
        default: self = .other(scheme: String(scheme), rest: rest)
        }
    }

    /// The URI as `sip:` or `sips:`.
    public var sip: SIPURI? {
        guard case .sip(let uri) = self else { return nil }
        return uri
    }

    /// The URI's text.
    public var description: String {
        switch self {
        case .sip(let uri): uri.description
        case .tel(let uri): uri.description
        case .other(let scheme, let rest): scheme + ":" + rest
        }
    }

    /// Whether both name the same resource, by the rules of their scheme.
    public func isEquivalent(to other: AnyURI) -> Bool {
        switch (self, other) {
        case (.sip(let left), .sip(let right)): left.isEquivalent(to: right)
        case (.tel(let left), .tel(let right)): left.isEquivalent(to: right)
        case (.other(let left, let rest), .other(let right, let otherRest)):
            left.isSame(as: right) && rest == otherRest
        case (.sip, _), (.tel, _), (.other, _): false
        }
    }
}

/// A telephone number as a URI (RFC 3966).
public struct TelURI: Hashable, Sendable, CustomStringConvertible {
    /// The number as it was written, with its visual separators.
    public var number: String
    /// `;phone-context=…` and others.
    public var parameters = SIPParameters()

    init?(rest: String) {
        let pieces = rest.split(separator: ";", omittingEmptySubsequences: false)
        guard pieces.count <= SIPLimits.parameters + 1 else { return nil }
        number = String(pieces[0])
        let digits = number.hasPrefix("+") ? String(number.dropFirst()) : number
        let isGlobal = number.hasPrefix("+")
        guard digits.utf8.contains(where: { TextScanner.isDigit($0) || $0 == 0x2A || $0 == 0x23 }),
            digits.utf8.allSatisfy({ Self.isDigit($0, isGlobal: isGlobal) || Self.isSeparator($0) })
        else { return nil }
        for piece in pieces.dropFirst() {
            let parts = piece.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard TextScanner.isToken(parts[0]), parts.count == 1 || !parts[1].isEmpty else { return nil }
            parameters.append(.init(name: parts[0], value: parts.count == 2 ? parts[1] : nil))
        }
    }

    /// The number without visual separators.
    public var digits: String { String(decoding: number.utf8.filter { !Self.isSeparator($0) }, as: UTF8.self) }

    /// The URI's text.
    public var description: String { "tel:" + number + parameters.text }

    /// Whether both are the same number with the same parameters, in any order (RFC 3966 §4).
    public func isEquivalent(to other: TelURI) -> Bool {
        digits.isSame(as: other.digits) && parameters.all.count == other.parameters.all.count
            && parameters.all.allSatisfy { parameter in
                guard let match = other.parameters.parameter(parameter.name) else { return false }
                return (parameter.value ?? "").isSame(as: match.value ?? "")
            }
    }

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte == 0x2D || byte == 0x2E || byte == 0x28 || byte == 0x29
    }

    private static func isDigit(_ byte: UInt8, isGlobal: Bool) -> Bool {
        if TextScanner.isDigit(byte) { return true }
        let isHex = byte | 0x20 >= 0x61 && byte | 0x20 <= 0x66
        return !isGlobal && (isHex || byte == 0x2A || byte == 0x23)
    }
}
