/// A host and a port, as given to a listener: `127.0.0.1:8443`, `[::1]:0`, `localhost:8080`.
public struct ConfigEndpoint: Equatable, Sendable, CustomStringConvertible {
    /// A name or an address; an IPv6 address without its brackets.
    public var host: String
    /// 0 lets the system choose, where that is allowed.
    public var port: Int

    /// Names a host and a port.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads `host:port`; `nil` if `text` is not of that form. `*` is not a host: 0.0.0.0 means all addresses.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        let digits = text[text.index(after: colon)...]
        guard !host.isEmpty, host != "*", !host.contains(where: \.isWhitespace), let port = UInt16(digits),
            !digits.hasPrefix("+")
        else { return nil }
        self.init(host: String(host), port: Int(port))
    }

    /// The advice for `*`.
    public static let allAddresses = "0.0.0.0 is all addresses of IPv4, [::] those of IPv6 as well"

    /// `host:port`, an IPv6 address in brackets.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension ConfigSection {
    /// A host and a port, `host:port`.
    ///
    /// - Parameter allowingAnyPort: Whether port 0, the system's choice, is allowed.
    func endpoint(_ key: String, allowingAnyPort: Bool = true, _ problems: inout [ConfigProblem])
        -> ConfigEndpoint?
    {
        let lowest = allowingAnyPort ? 0 : 1
        let expected =
            "must be HOST:PORT with a port from \(lowest) to 65535, such as 127.0.0.1:8443 or [::1]:8443"
        guard let text = scalar(key, expected: expected, &problems) else { return nil }
        guard let endpoint = ConfigEndpoint(text), endpoint.port >= lowest else {
            let hint = text.hasPrefix("*") ? "; \(ConfigEndpoint.allAddresses)" : ""
            problems.append(problem(key, "\(expected), not \(Self.quoted(text))\(hint)"))
            return nil
        }
        return endpoint
    }
}

/// The form of an absolute URL (RFC 3986 §4.3): a scheme, a host, and a port if there is one.
public enum URLForm {
    /// What is wrong with a URL that has to begin with one of `schemes`, to be read after its name; `nil` if nothing is.
    ///
    /// The fault does not show the URL, which can contain a password.
    public static func fault(of url: String, schemes: [String]) -> String? {
        let host = schemes.lazy.compactMap { scheme -> Substring? in
            let prefix = "\(scheme)://"
            return url.lowercased().hasPrefix(prefix) ? url.dropFirst(prefix.count) : nil
        }.first
        guard let host, let first = host.first, first != "/", !url.contains(where: \.isWhitespace) else {
            return "must be a URL that begins with \(schemes.map { "\($0)://" }.joined(separator: " or "))"
        }
        let authority = host.prefix { !"/?#".contains($0) }
        // A name and a password may precede the host, with a colon between them.
        let colon = authority.lastIndex { ":]@".contains($0) }
        if let colon, authority[colon] == ":", UInt16(authority[authority.index(after: colon)...]) == nil {
            return "must have a port from 1 to 65535, if it has one"
        }
        return nil
    }
}
