internal import COpenSSL

/// Signatures by Ed25519 (RFC 8032), by the system's OpenSSL.
public enum Ed25519 {
    /// Bytes in a public key, and in the seed of a private one.
    public static let keyBytes = 32
    /// Bytes in a signature.
    public static let signatureBytes = 64

    /// A private key, which signs.
    public struct PrivateKey: Sendable {
        /// What the key is made from (RFC 8032 §5.1.5), and all there is to keep: secret.
        public let seed: [UInt8]
        /// What signatures are checked with.
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
        /// - Parameter generator: One that nobody can predict.
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

    /// Whether `signature` is one of `message` by the private key that belongs to `publicKey`. Wrong lengths are not.
    public static func isSignature(_ signature: [UInt8], of message: [UInt8], by publicKey: [UInt8]) -> Bool {
        guard signature.count == signatureBytes, publicKey.count == keyBytes,
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
