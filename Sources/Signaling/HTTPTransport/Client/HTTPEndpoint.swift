internal import Core

/// The address of a service over HTTP or WebSocket, taken apart.
package struct HTTPEndpoint: Hashable, Sendable {
    /// A text is no such address.
    package struct Malformed: Error, Hashable, Sendable {
        /// The text, or "…" if it has a password in it.
        package let text: String
        /// What is wrong with it; to be read after the text.
        package let cause: String
    }

    /// Whether it is spoken to with TLS.
    package let isSecure: Bool
    /// Host name or address, an IPv6 address without brackets.
    package let host: String
    package let port: Int
    /// Begins with a slash, or is empty.
    package let path: String

    /// Takes apart `scheme://host[:port][/path]`, where the scheme is one of http, https, ws and wss.
    package init(_ text: String) throws(Malformed) {
        guard let separator = text.firstRange(of: "://") else { throw Self.malformed(text, "it has no scheme") }
        switch text[..<separator.lowerBound].lowercased() {
        case "https", "wss": isSecure = true
        case "http", "ws": isSecure = false
        case let scheme: throw Self.malformed(text, "the scheme \"\(scheme)\" is none of http, https, ws, wss")
        }
        let rest = text[separator.upperBound...]
        let slash = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        let authority = rest[..<slash]
        guard !authority.contains("@") else { throw Self.malformed("…", "it carries a user name or password") }
        path = String(rest[slash...])

        let name: Substring
        let portText: Substring?
        if authority.hasPrefix("["), let bracket = authority.firstIndex(of: "]") {
            name = authority[authority.index(after: authority.startIndex)..<bracket]
            let tail = authority[authority.index(after: bracket)...]
            portText = tail.hasPrefix(":") ? tail.dropFirst() : (tail.isEmpty ? nil : tail)
        } else {
            let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            name = parts.first ?? ""
            portText = parts.count > 1 ? parts[1] : nil
        }
        guard !name.isEmpty else { throw Self.malformed(text, "it names no host") }
        host = String(name)
        guard let portText else {
            port = isSecure ? 443 : 80
            return
        }
        guard let number = UInt16(portText), number > 0 else {
            throw Self.malformed(text, "\"\(portText)\" is not a port")
        }
        port = Int(number)
    }

    /// Whether what is sent there stays on this machine: a loopback address, or the name `localhost`.
    package var isLoopback: Bool {
        if host == "::1" || host.lowercased() == "localhost" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return parts.count == 4 && parts[0] == 127 && parts.allSatisfy { $0 != nil }
    }

    /// `host:port`, as the `Host` header and people write it.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// The path in a request line, without a fragment.
    package var target: String {
        let target = path.prefix { $0 != "#" }
        return target.hasPrefix("/") ? String(target) : "/\(target)"
    }

    /// A request line ends at a space or line break, so that one in a target is written as `%20` and the like.
    static func escaped(_ target: String) -> String {
        guard target.utf8.contains(where: { !(0x21...0x7e).contains($0) }) else { return target }
        return PercentEscape.escaped(target) { (0x21...0x7e).contains($0) }
    }

    private static func malformed(_ text: String, _ cause: String) -> Malformed { Malformed(text: text, cause: cause) }
}

extension StringProtocol {
    /// The first range that contains `other`.
    fileprivate func firstRange(of other: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(other) { return start..<index(start, offsetBy: other.count) }
            start = index(after: start)
        }
        return nil
    }
}

extension HTTPEndpoint {
    /// Whether the host is an address rather than a name: TLS has no server name indication for those.
    package var isAddress: Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return host.contains(":") || (parts.count == 4 && parts.allSatisfy { $0 != nil })
    }
}
