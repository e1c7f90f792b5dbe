internal import Core
package import NIOHTTP1

/// A host as a `Host` header names it: a name or an address.
package enum HostName: Hashable, Sendable {
    /// In lower case, without a dot at the end.
    case name(String)
    /// 4 or 16 bytes; an IPv4 address within IPv6 counts as IPv4.
    case address([UInt8])

    /// Reads a host without a port; an IPv6 address may have brackets.
    ///
    /// - Returns: `nil` for what is neither a name nor an address.
    package init?(_ text: some StringProtocol) {
        if text.hasPrefix("["), text.hasSuffix("]") {
            guard let bytes = Self.address(text.dropFirst().dropLast()), text.contains(":") else { return nil }
            self = .address(bytes)
        } else if let bytes = Self.address(text) {
            self = .address(bytes)
        } else {
            let name = text.hasSuffix(".") ? text.dropLast() : text[...]
            let labels = name.split(separator: ".", omittingEmptySubsequences: false)
            guard name.utf8.count <= 253, labels.allSatisfy({ (1...63).contains($0.utf8.count) }),
                name.utf8.allSatisfy({ Self.nameBytes.contains($0) })
            else { return nil }
            self = .name(name.lowercased())
        }
    }

    /// Reads the value of a `Host` header: a host with or without a port (RFC 9110 §7.2).
    package init?(header: String) {
        var host = header[...]
        // The colons of an IPv6 address are within its brackets.
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            let port = host[host.index(after: colon)...]
            guard port.isEmpty || Digits.number(port, upTo: UInt16.max) != nil else {
                return nil
            }
            host = host[..<colon]
            guard host.hasSuffix("]") || !host.contains(":") else { return nil }
        }
        self.init(host)
    }

    /// - Parameter address: 4 or 16 bytes, as a certificate has them.
    package init?(address: [UInt8]) {
        guard address.count == 4 || address.count == 16 else { return nil }
        self = .address(address)
    }

    /// The host as text, an IPv6 address without brackets and in full.
    package var text: String {
        switch self {
        case .name(let name): name
        case .address(let bytes) where bytes.count == 4: bytes.map { "\($0)" }.joined(separator: ".")
        case .address(let bytes):
            stride(from: 0, to: bytes.count, by: 2)
                .map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }.joined(separator: ":")
        }
    }

    /// Whether it always means this machine: `localhost` and names that end in it (RFC 6761 §6.3), and the addresses of
    /// the loopback interface.
    package var isLoopback: Bool {
        switch self {
        case .name(let name): name == "localhost" || name.hasSuffix(".localhost")
        case .address(let bytes) where bytes.count == 4: bytes[0] == 127
        case .address(let bytes): bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
        }
    }

    /// Whether it is the address that a listener names for "all".
    package var isWildcard: Bool {
        if case .address(let bytes) = self { return bytes.allSatisfy { $0 == 0 } }
        return false
    }

    private static let nameBytes = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_".utf8)

    private static func address(_ text: some StringProtocol) -> [UInt8]? {
        SocketAddress(literal: text.prefix { $0 != "%" })?.unmappedBytes
    }
}

/// A host, or all hosts directly below one: `*.example.org`, as certificates have it (RFC 9525 §6.3).
package struct HostPattern: Hashable, Sendable {
    private let host: HostName
    private let isParent: Bool

    /// Reads a host, with or without `*` for its first label; `nil` for anything else.
    package init?(_ text: some StringProtocol) {
        let isParent = text.hasPrefix("*.")
        guard let host = HostName(isParent ? text.dropFirst(2) : text[...]) else { return nil }
        if isParent, case .address = host { return nil }
        self.host = host
        self.isParent = isParent
    }

    /// Whether `other` is this host, or directly below it.
    package func matches(_ other: HostName) -> Bool {
        guard isParent else { return other == host }
        guard case .name(let name) = other, case .name(let parent) = host, let dot = name.firstIndex(of: ".") else {
            return false
        }
        return name[name.index(after: dot)...] == parent
    }
}

/// Which names a server answers to.
///
/// A foreign page can make its own name resolve to this machine's address (DNS rebinding): the browser then takes the
/// server for the page's own, and allows the page to use it. The requested name is still the page's.
package struct HostRules: Sendable {
    private let patterns: [HostPattern]
    /// What may be asked for, for people.
    package let summary: String

    /// - Parameters:
    ///   - listen: The host that the server listens on, as configured.
    ///   - certificate: The names in its certificate.
    ///   - webSocketURL: Where clients open the WebSocket, if that is configured.
    ///   - allowed: What the configuration adds.
    package init(listen: String, certificate: [String] = [], webSocketURL: String? = nil, allowed: [String] = []) {
        let own = HostName(listen).flatMap { $0.isWildcard ? nil : listen }
        let socket = webSocketURL.flatMap(Self.host(ofURL:))
        var names: [String] = []
        for name in [own, socket].compactMap({ $0 }) + certificate + allowed where !names.contains(name) {
            names.append(name)
        }
        patterns = names.compactMap { HostPattern($0) }
        summary = (["localhost"] + names.filter { HostName($0)?.isLoopback != true }).joined(separator: ", ")
    }

    /// Whether a request names this server.
    ///
    /// - Parameter reached: The local address of the connection. DNS rebinding cannot forge it.
    package func admit(_ headers: HTTPHeaders, _ version: HTTPVersion, reached: String?) -> Bool {
        let values = headers["Host"]
        // Programs of before 1996 name no host; browsers always do.
        if values.isEmpty { return version.major < 1 || (version.major == 1 && version.minor == 0) }
        guard values.count == 1, let host = HostName(header: values[0]) else { return false }
        if host.isLoopback || patterns.contains(where: { $0.matches(host) }) { return true }
        guard case .address = host, let reached else { return false }
        return host == HostName(reached)
    }

    private static func host(ofURL url: String) -> String? {
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let authority = parts[2].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if authority.hasPrefix("[") { return authority.firstIndex(of: "]").map { String(authority[...$0]) } }
        return String(authority.prefix { $0 != ":" })
    }
}
