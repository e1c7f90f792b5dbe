internal import Core

/// The text of a file that keeps a private key of Ed25519: PEM (RFC 7468) of PKCS#8 (RFC 8410), as OpenSSL writes it.
public enum KeyFile {
    /// Longer texts are no such files.
    public static let maximumBytes = 4_096

    private static let begin = "-----BEGIN PRIVATE KEY-----"
    private static let end = "-----END PRIVATE KEY-----"
    /// The bytes before the seed: version 0, the algorithm 1.3.101.112, and two octet strings (RFC 8410 §7).
    private static let prefix: [UInt8] = [
        0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]

    /// Writes a key.
    ///
    /// - Parameter seed: 32 bytes.
    public static func text(seed: [UInt8]) -> String { "\(begin)\n\(Base64.text(prefix + seed))\n\(end)\n" }

    /// The seed of the key in a file: 32 bytes, or `nil` if there is no such key in it.
    public static func seed(in text: String) -> [UInt8]? {
        guard text.utf8.count <= maximumBytes else { return nil }
        let lines = text.split(whereSeparator: \.isNewline).map { line in line.filter { !$0.isWhitespace } }
        let marks = [begin, end].map { mark in lines.firstIndex(of: mark.filter { !$0.isWhitespace }) }
        guard let first = marks[0], let last = marks[1], first < last,
            let bytes = Base64.bytes(of: lines[(first + 1)..<last].joined().utf8), bytes.starts(with: prefix),
            bytes.count == prefix.count + 32
        else { return nil }
        return Array(bytes.dropFirst(prefix.count))
    }
}
