internal import Core
internal import Cryptography

/// Signs what is sent to a webhook, as Standard Webhooks 1.0.0 has it, which libraries of many languages check.
package enum WebhookSignature {
    /// Bytes of a key, at least.
    package static let shortestKey = 24

    /// The key in a secret: `whsec_` and base64, or the text's own bytes; nil if it is shorter than ``shortestKey``.
    package static func key(of secret: String) -> [UInt8]? {
        let prefix = "whsec_"
        let bytes =
            secret.hasPrefix(prefix)
            ? Base64.unpaddedBytes(of: secret.utf8.dropFirst(prefix.utf8.count)) : Array(secret.utf8)
        return bytes.flatMap { $0.count >= shortestKey ? $0 : nil }
    }

    /// The fields of a request: an id that stays, the time of sending, and for each key HMAC-SHA256 over `id.time.body`.
    ///
    /// - Parameters:
    ///   - seconds: The time, since 1970.
    ///   - keys: Several while a server changes from one to another; without any there is no signature.
    package static func fields(
        _ id: String, at seconds: Int64, _ body: [UInt8], keys: [[UInt8]]
    ) -> [(name: String, value: String)] {
        var fields = [("webhook-id", id), ("webhook-timestamp", "\(seconds)")]
        let content = Array("\(id).\(seconds).".utf8) + body
        let codes = keys.map { "v1,\(Base64.text(Digest.hmacSHA256($0, content)))" }
        if !codes.isEmpty { fields.append(("webhook-signature", codes.joined(separator: " "))) }
        return fields
    }
}
