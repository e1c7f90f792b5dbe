internal import NIOHTTP1

/// The headers of every answer that restrict what a browser may do with it. A page's own headers, which allow more, are
/// kept.
struct SecurityHeaders {
    /// Whether the connection is encrypted.
    let isEncrypted: Bool

    /// Browsers that came over TLS once come over nothing else for a year (RFC 6797).
    private static let strictTransport = "max-age=31536000"

    func add(to headers: inout HTTPHeaders) {
        func offer(_ name: String, _ value: String) {
            if !headers.contains(name: name) { headers.add(name: name, value: value) }
        }
        offer("X-Content-Type-Options", "nosniff")
        offer("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        offer("Referrer-Policy", "no-referrer")
        if isEncrypted { offer("Strict-Transport-Security", Self.strictTransport) }
    }
}
