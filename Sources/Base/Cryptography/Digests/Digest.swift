// Cryptography: digests, signatures and certificates of an authority of one's own, by the system's OpenSSL.

internal import COpenSSL

/// Hashes, codes and comparisons by libcrypto. None keeps anything of what it is given.
public enum Digest {
    /// SHA-256 of `input`: 32 bytes.
    public static func sha256(_ input: [UInt8]) -> [UInt8] {
        let output = unsafe digest(input, Algorithms.sha256)
        precondition(output.count == 32, "OpenSSL has no SHA-256, or no memory for it")
        return output
    }

    /// HMAC-SHA256 (RFC 2104) of `input`: 32 bytes.
    public static func hmacSHA256(_ key: [UInt8], _ input: [UInt8]) -> [UInt8] {
        let output = unsafe hmac(key, input, Algorithms.hmacSHA256)
        precondition(output.count == 32, "OpenSSL has no HMAC-SHA256, or no memory for it")
        return output
    }

    /// HMAC-SHA1 of `input`, for protocols that have no other: 20 bytes, or none if the library refuses, as its policy
    /// may.
    public static func hmacSHA1(_ key: [UInt8], _ input: [UInt8]) -> [UInt8] {
        unsafe hmac(key, input, Algorithms.hmacSHA1)
    }

    /// MD5 of `input`, for protocols that have no other: 16 bytes, or none if the library refuses, as it may in its FIPS
    /// mode.
    public static func md5(_ input: [UInt8]) -> [UInt8] { unsafe digest(input, EVP_md5()) }

    /// SHA-512/256 of `input`: 32 bytes, or none if the library refuses.
    public static func sha512With256(_ input: [UInt8]) -> [UInt8] { unsafe digest(input, EVP_sha512_256()) }

    /// Compares two runs of bytes in a time that depends on nothing but their lengths.
    public static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        // Reads `left.count` bytes of each.
        unsafe left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }

    /// Writes at most `EVP_MAX_MD_SIZE` bytes, and returns those that were written.
    private static func digest(_ input: [UInt8], _ kind: OpaquePointer?) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var size: UInt32 = 0
        guard unsafe EVP_Digest(input, input.count, &output, &size, kind, nil) == 1 else { return [] }
        return Array(output.prefix(Int(size)))
    }

    /// Writes at most `EVP_MAX_MD_SIZE` bytes, and returns those that were written.
    ///
    /// - Parameter algorithm: An `EVP_MAC_CTX`, which is copied and given the key.
    private static func hmac(_ key: [UInt8], _ input: [UInt8], _ algorithm: OpaquePointer?) -> [UInt8] {
        guard let algorithm = unsafe algorithm, let context = unsafe EVP_MAC_CTX_dup(algorithm) else { return [] }
        defer { unsafe EVP_MAC_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var size = 0
        // An empty array may come as a null pointer, which OpenSSL takes as the previous key.
        let isMade =
            unsafe key.isEmpty
            ? EVP_MAC_init(context, [0], 0, nil) == 1 : EVP_MAC_init(context, key, key.count, nil) == 1
        guard isMade, unsafe EVP_MAC_update(context, input, input.count) == 1,
            unsafe EVP_MAC_final(context, &output, &size, output.count) == 1
        else { return [] }
        return Array(output.prefix(size))
    }

    /// What libcrypto looks up by name, once for each process: for a short input that costs more than the digest does.
    /// Nothing changes or frees it, so that all threads may use it.
    private enum Algorithms {
        nonisolated(unsafe) static let sha256 = unsafe EVP_MD_fetch(nil, "SHA256", nil)
        nonisolated(unsafe) static let hmacSHA256 = unsafe hmac("SHA256")
        nonisolated(unsafe) static let hmacSHA1 = unsafe hmac("SHA1")

        private static func hmac(_ digest: String) -> OpaquePointer? {
            guard let kind = unsafe EVP_MAC_fetch(nil, "HMAC", nil) else { return nil }
            defer { unsafe EVP_MAC_free(kind) }
            // With a key, though it is never used: a library may refuse to copy a context that never had one.
            guard let context = unsafe EVP_MAC_CTX_new(kind), unsafe handset_set_mac_digest(context, digest) == 1,
                unsafe EVP_MAC_init(context, [0], 1, nil) == 1
            else { return nil }
            return unsafe context
        }
    }
}
