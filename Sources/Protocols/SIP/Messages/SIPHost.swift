internal import Core

/// The host of a URI or a `Via`: a name, an IPv4 address, or an IPv6 address without its brackets.
public struct SIPHost: Hashable, Sendable, CustomStringConvertible {
    /// As it was written, without brackets.
    public let text: String
    /// An IPv6 address, which is written in brackets.
    public let isIPv6: Bool

    /// Reads a host without port; an IPv6 address with or without brackets.
    public init?(_ text: String) {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]") && text.utf8.count > 2
        let inner = isBracketed ? String(text.dropFirst().dropLast()) : text
        if inner.utf8.contains(UInt8(ascii: ":")) {
            guard inner.utf8.allSatisfy({ TextScanner.isAlphanumeric($0) || $0 == 0x3A || $0 == 0x2E }),
                SocketAddress(host: inner, port: 0)?.isIPv6 == true
            else { return nil }
            isIPv6 = true
        } else {
            guard !isBracketed, !inner.isEmpty, inner.utf8.count <= 255,
                // The underscore is not allowed in host names, but common in private ones.
                inner.utf8.allSatisfy({
                    TextScanner.isAlphanumeric($0) || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F
                })
            else { return nil }
            isIPv6 = false
        }
        self.text = inner
    }

    /// Whether it is an address rather than a name.
    var isAddress: Bool { isIPv6 || SocketAddress(host: text, port: 0) != nil }

    /// With brackets if it is an IPv6 address.
    public var description: String { isIPv6 ? "[\(text)]" : text }

    /// Host names are compared without case, and addresses by value.
    public func isSame(as other: SIPHost) -> Bool {
        if text.isSame(as: other.text) { return true }
        guard isIPv6, other.isIPv6, let left = SocketAddress(host: text, port: 0),
            let right = SocketAddress(host: other.text, port: 0)
        else { return false }
        return left.isSame(as: right)
    }

    /// Reads `host [":" port]` to the end of `text`.
    static func hostAndPort(_ text: String) -> (host: SIPHost, port: UInt16?)? {
        var hostEnd = text.endIndex
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            hostEnd = text.index(after: close)
        } else if let colon = text.firstIndex(of: ":") {
            hostEnd = colon
        }
        guard let host = SIPHost(String(text[..<hostEnd])) else { return nil }
        guard hostEnd < text.endIndex else { return (host, nil) }
        let digits = text[text.index(after: hostEnd)...]
        guard text[hostEnd] == ":", let port = Digits.number(digits, upTo: UInt16.max) else { return nil }
        return (host, port)
    }
}
