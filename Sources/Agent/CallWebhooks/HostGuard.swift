internal import HTTPTransport

/// Which hosts this device connects to because another machine, such as a bot's server, names them.
///
/// What a webhook answers, or a request says, comes from another machine, and must not make this one reach into its own network
/// (server-side request forgery). A host must be the configured URL's, or be allowed. Addresses that are not public, of loopback,
/// links and private networks, are reached only by hosts that are named in full: their names vouch for their addresses.
package struct HostGuard: Sendable {
    /// A host is not to be connected with, and why.
    package struct Refusal: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    private let section: String
    private let exact: Set<HostName>
    private let patterns: [HostPattern]

    /// - Parameters:
    ///   - own: The hosts of the configuration's own URLs.
    ///   - allowed: Names, addresses, and `*.example.org`; others are passed over.
    ///   - section: The section of the configuration with the keys `url` and `allowed_hosts`, for messages.
    package init(own: [String], allowed: [String], section: String) {
        self.section = section
        exact = Set((own + allowed.filter { !$0.hasPrefix("*.") }).compactMap { HostName($0) })
        patterns = allowed.filter { $0.hasPrefix("*.") }.compactMap { HostPattern($0) }
    }

    /// Whether a text can be one of the hosts that are allowed.
    package static func isHost(_ text: String) -> Bool { HostPattern(text) != nil }

    /// Judges a host before its name is looked up.
    package func check(_ host: String) throws(Refusal) {
        guard let name = HostName(host), exact.contains(name) || patterns.contains(where: { $0.matches(name) }) else {
            throw Refusal(
                description:
                    "the host \"\(host)\" is neither that of \(section).url nor one of \(section).allowed_hosts")
        }
    }

    /// Judges the address of a host.
    package func check(_ host: String, at address: String) throws(Refusal) {
        try check(host)
        if let name = HostName(host), exact.contains(name) { return }
        guard case .address(let bytes)? = HostName(address), Self.isPublic(bytes) else {
            throw Refusal(
                description:
                    "the host \"\(host)\" has an address that is not public; name the host itself in allowed_hosts")
        }
    }

    /// Whether everybody reaches the same machine by an address (RFC 6890).
    static func isPublic(_ bytes: [UInt8]) -> Bool { bytes.count == 4 ? isPublic4(bytes) : isPublic6(bytes) }

    private static func isPublic4(_ bytes: [UInt8]) -> Bool {
        switch (bytes[0], bytes[1]) {
        case (0, _), (10, _), (127, _), (224..., _): false
        case (100, 64...127), (169, 254), (172, 16...31), (192, 168), (198, 18...19): false
        case (192, 0): bytes[2] != 0 && bytes[2] != 2
        case (198, 51): bytes[2] != 100
        case (203, 0): bytes[2] != 113
        default: true
        }
    }

    private static func isPublic6(_ bytes: [UInt8]) -> Bool {
        // Addresses of IPv4 within those of IPv6: translated (RFC 6052), and 6to4 (RFC 3056).
        if bytes.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) { return isPublic4(Array(bytes[12...])) }
        if bytes.starts(with: [0x20, 0x02]) { return isPublic4(Array(bytes[2..<6])) }
        // Of the rest only 2000::/3 is in use, less the addresses of documentation and Teredo.
        guard bytes[0] & 0xE0 == 0x20 else { return false }
        return !bytes.starts(with: [0x20, 0x01, 0x0D, 0xB8]) && !bytes.starts(with: [0x20, 0x01, 0, 0])
    }
}
