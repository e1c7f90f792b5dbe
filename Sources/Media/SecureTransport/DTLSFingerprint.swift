internal import Core

/// The hash of a certificate, as in a session description (RFC 8122 §5).
public struct DTLSFingerprint: Equatable, Sendable, CustomStringConvertible {
    /// A hash function that we trust: SHA-256 and stronger. In order of strength.
    public enum HashFunction: String, CaseIterable, Sendable {
        /// 32 bytes.
        case sha256 = "sha-256"
        /// 48 bytes.
        case sha384 = "sha-384"
        /// 64 bytes.
        case sha512 = "sha-512"

        /// Bytes of hash.
        public var byteCount: Int {
            switch self {
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }
    }

    /// The hash function.
    public let hash: HashFunction
    /// The hash; as many bytes as its function makes.
    public let bytes: [UInt8]

    /// Makes a fingerprint; nil if the number of bytes does not fit the function.
    public init?(_ hash: HashFunction, bytes: [UInt8]) {
        guard bytes.count == hash.byteCount else { return nil }
        self.hash = hash
        self.bytes = bytes
    }

    /// Reads the value of an SDP `fingerprint` attribute, such as `sha-256 AB:CD:…`, in either case of letters.
    ///
    /// - Throws: ``DTLSError`` with ``DTLSError/Code/unsupportedHash`` for `sha-1`, `md5` and what is unknown, else
    ///   with ``DTLSError/Code/malformedFingerprint``.
    public init(parsing text: String) throws(DTLSError) {
        let parts = text.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            throw DTLSError(.malformedFingerprint, "fingerprint: expected a hash function, a space and its hash.")
        }
        let name = String(decoding: parts[0].prefix(16), as: UTF8.self).lowercased()
        guard parts[0].count <= 16, let hash = HashFunction(rawValue: name) else {
            throw DTLSError(
                .unsupportedHash,
                "fingerprint: the hash function \"\(name)\" is not accepted; the peer must offer sha-256 or stronger.")
        }
        guard let bytes = Hexadecimal.bytes(ofPairs: parts[1]), bytes.count == hash.byteCount else {
            throw DTLSError(
                .malformedFingerprint,
                "fingerprint: \(hash.rawValue) has \(hash.byteCount) pairs of hexadecimal digits with colons between.")
        }
        self.hash = hash
        self.bytes = bytes
    }

    /// Reads all `fingerprint` attributes that hold for one media section.
    ///
    /// Those of hash functions that are not accepted are passed over, as RFC 8122 §5.1 asks for.
    ///
    /// - Throws: ``DTLSError`` if none is left, with the reason for the first; or if one is malformed.
    public static func all(parsing lines: [String]) throws(DTLSError) -> [DTLSFingerprint] {
        var accepted: [DTLSFingerprint] = []
        var refusal = DTLSError(.malformedFingerprint, "the description has no fingerprint; DTLS-SRTP needs one.")
        for line in lines.reversed() {
            do throws(DTLSError) {
                accepted.append(try DTLSFingerprint(parsing: line))
            } catch {
                guard error.code == .unsupportedHash else { throw error }
                refusal = error
            }
        }
        if accepted.isEmpty { throw refusal }
        return accepted.reversed()
    }

    /// Whether hash function and hash are the same, compared in constant time.
    public static func == (left: Self, right: Self) -> Bool {
        guard left.hash == right.hash else { return false }
        var difference: UInt8 = 0
        for (a, b) in zip(left.bytes, right.bytes) { difference |= a ^ b }
        return difference == 0
    }

    /// The value of an SDP `fingerprint` attribute.
    public var description: String { "\(hash.rawValue) \(Hexadecimal.pairs(bytes))" }
}

extension [DTLSFingerprint] {
    /// Of several hash functions only the strongest counts, so that a weaker one added on the way opens nothing
    /// (RFC 8122 §5.1); of several hashes by that function any will do.
    func accept(_ certificate: (DTLSFingerprint.HashFunction) -> DTLSFingerprint?) -> Bool {
        guard
            let strongest = DTLSFingerprint.HashFunction.allCases.last(where: { hash in contains { $0.hash == hash } }),
            let actual = certificate(strongest)
        else { return false }
        return contains(actual)
    }
}
