internal import Core

/// A certificate's fingerprint, which identifies an end of a DTLS association (RFC 8122 §5).
public struct Fingerprint: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The hash function's name in lower case, such as `sha-256`.
    public var algorithm: String
    /// The digest.
    public var bytes: [UInt8]

    /// Makes a fingerprint.
    public init(algorithm: String, bytes: [UInt8]) {
        self.algorithm = algorithm.lowercased()
        self.bytes = bytes
    }

    /// Bytes of a digest, for each trusted function. MD5 must not be trusted (RFC 8122 §5), and SHA-1 is not.
    private static let sizes = ["sha-224": 28, "sha-256": 32, "sha-384": 48, "sha-512": 64]

    /// Reads `sha-256 AB:CD:…`; `nil` for other functions, and for a digest that is not of the function's size.
    init?(parsing value: String) {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count == 2, let size = Self.sizes[fields[0].lowercased()] else { return nil }
        guard let bytes = Hexadecimal.bytes(ofPairs: fields[1].utf8), bytes.count == size else { return nil }
        self.init(algorithm: fields[0].lowercased(), bytes: bytes)
    }

    /// The attribute's value.
    public var description: String { "\(algorithm) \(Hexadecimal.pairs(bytes))" }
}

/// The role in the DTLS handshake (RFC 4145 §4, RFC 8842 §5).
public enum DTLSRole: String, Equatable, Hashable, Sendable {
    /// We send the first handshake message: we are the client.
    case active
    /// We wait for it: we are the server.
    case passive

    /// The other side's part.
    public var opposite: DTLSRole { self == .active ? .passive : .active }
}
