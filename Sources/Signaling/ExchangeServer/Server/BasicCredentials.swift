internal import Core

/// What a `Basic` authorization header holds (RFC 7617 §2).
struct BasicCredentials {
    let name: String
    let secret: String

    /// - Parameter header: The header's value; `nil` or anything else than `Basic BASE64` gives `nil`.
    init?(_ header: String?) {
        guard let parts = header?.split(separator: " ", maxSplits: 1), parts.count == 2,
            parts[0].lowercased() == "basic", let bytes = Base64.unpaddedBytes(of: parts[1].utf8),
            let text = String(validating: bytes, as: UTF8.self), let colon = text.firstIndex(of: ":")
        else { return nil }
        name = String(text[..<colon])
        secret = String(text[text.index(after: colon)...])
    }
}
