internal import COpenSSL

/// Signatures by Ed25519 (RFC 8032), by the system's OpenSSL.
public enum Ed25519 {
    /// Bytes in a public key, and in the seed of a private one.
    public static let keyBytes = 32
    /// Bytes in a signature.
    public static let signatureBytes = 64

    /// A private key, which signs.
    public struct PrivateKey: Sendable {
        /// The seed of the key (RFC 8032 §5.1.5), from which all else is computed: secret.
        public let seed: [UInt8]
        /// The key that verifies signatures.
        public let publicKey: [UInt8]

        /// Takes a seed of 32 random bytes.
        ///
        /// - Returns: `nil` for any other number of bytes, or if OpenSSL has no Ed25519, as in its FIPS mode.
        public init?(seed: [UInt8]) {
            guard seed.count == keyBytes else { return nil }
            // Reads `seed.count` bytes.
            guard let key = unsafe EVP_PKEY_new_raw_private_key(NID_ED25519, nil, seed, seed.count) else { return nil }
            defer { unsafe EVP_PKEY_free(key) }
            var publicKey = [UInt8](repeating: 0, count: keyBytes)
            var count = keyBytes
            // Writes at most `count` bytes.
            guard unsafe EVP_PKEY_get_raw_public_key(key, &publicKey, &count) == 1, count == keyBytes else {
                return nil
            }
            self.seed = seed
            self.publicKey = publicKey
        }

        /// Makes a key from random bytes.
        ///
        /// - Parameter generator: An unpredictable one.
        public init?(using generator: inout some RandomNumberGenerator) {
            self.init(seed: (0..<keyBytes).map { _ in UInt8.random(in: 0...255, using: &generator) })
        }

        /// The signature of `message`: 64 bytes, or none if OpenSSL refuses.
        public func sign(_ message: [UInt8]) -> [UInt8] {
            guard let key = unsafe EVP_PKEY_new_raw_private_key(NID_ED25519, nil, seed, seed.count) else { return [] }
            defer { unsafe EVP_PKEY_free(key) }
            guard let context = unsafe EVP_MD_CTX_new() else { return [] }
            defer { unsafe EVP_MD_CTX_free(context) }
            var signature = [UInt8](repeating: 0, count: signatureBytes)
            var count = signatureBytes
            // Reads `message.count` bytes, and writes at most `count`.
            guard unsafe EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
                unsafe EVP_DigestSign(context, &signature, &count, message, message.count) == 1,
                count == signatureBytes
            else { return [] }
            return signature
        }
    }

    /// The y coordinates of the eight points whose order is 8 or less, which no private key leads to (RFC 7748 §5, RFC 8032
    /// §5.1: eight is the cofactor), in little-endian order without their x coordinate's sign.
    private static let smallOrders: [[UInt8]] = [
        Array(repeating: 0x00, count: 32),
        [0x01] + Array(repeating: 0x00, count: 31),
        [
            0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF, 0x98, 0xF0,
            0xD5, 0xDF, 0xAC, 0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05,
        ],
        [
            0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10, 0x67, 0x0F,
            0x2A, 0x20, 0x53, 0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A,
        ],
        [0xEC] + Array(repeating: 0xFF, count: 30) + [0x7F],
    ]

    /// Whether bytes can be a public key: 32, whose y coordinate is below the field's prime 2^255 - 19 (RFC 8032
    /// §5.1.3), and not those of a point of small order. With such a point, anyone can sign: a signature that fits one
    /// message fits others.
    public static func isPublicKey(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == keyBytes else { return false }
        var y = bytes
        y[keyBytes - 1] &= 0x7F
        let isBelowPrime =
            y[0] < 0xED || y[keyBytes - 1] != 0x7F || y[1..<(keyBytes - 1)].contains { $0 != 0xFF }
        return isBelowPrime && !smallOrders.contains(y)
    }

    /// Whether `signature` is one of `message` by the private key that belongs to `publicKey`. What is no public key (see
    /// ``isPublicKey(_:)``) has no signatures, and neither have wrong lengths.
    public static func isSignature(_ signature: [UInt8], of message: [UInt8], by publicKey: [UInt8]) -> Bool {
        guard signature.count == signatureBytes, isPublicKey(publicKey),
            let key = unsafe EVP_PKEY_new_raw_public_key(NID_ED25519, nil, publicKey, publicKey.count)
        else { return false }
        defer { unsafe EVP_PKEY_free(key) }
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer { unsafe EVP_MD_CTX_free(context) }
        // Reads as many bytes of each as it has.
        return unsafe EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}
