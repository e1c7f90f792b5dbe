package import NIOHTTP1

/// Which web pages may open a WebSocket here (RFC 6455 §10.2, RFC 6454).
package enum WebOrigin {
    /// A browser names the origin of the page that asks; programs name none, and may.
    ///
    /// - Parameter allowed: Origins such as `https://calls.example.org`, beside the server's own.
    package static func isAllowed(_ headers: HTTPHeaders, allowed: [String]) -> Bool {
        let origins = headers["Origin"]
        guard let origin = origins.first else { return true }
        guard origins.count == 1 else { return false }
        if allowed.contains(where: { $0.lowercased() == origin.lowercased() }) { return true }
        // Behind a proxy the scheme may be another outside than inside; the host is what the page was loaded from.
        guard let host = host(of: headers)?.lowercased() else { return false }
        return ["http://", "https://"].contains { $0 + host == origin.lowercased() }
    }

    /// The `Host` header, if there is one and it is nothing but a host with or without a port.
    package static func host(of headers: HTTPHeaders) -> String? {
        headers.first(name: "Host").flatMap { isHost($0) ? $0 : nil }
    }

    /// Whether this can be a host with or without a port.
    package static func isHost(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { hostBytes.contains($0) }
    }

    private static let hostBytes = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]".utf8)
}
