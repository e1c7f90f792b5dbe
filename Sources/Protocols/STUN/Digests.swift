internal import COpenSSL

/// Digests by OpenSSL. Each reads its arguments, writes at most 64 bytes and keeps nothing.
enum Digests {
    static func md5(_ input: [UInt8]) -> [UInt8] { unsafe digest(input, EVP_md5()) }

    static func sha256(_ input: [UInt8]) -> [UInt8] { unsafe digest(input, EVP_sha256()) }

    static func hmacSHA1(_ key: [UInt8], _ input: [UInt8]) -> [UInt8] { unsafe hmac(key, input, EVP_sha1()) }

    static func hmacSHA256(_ key: [UInt8], _ input: [UInt8]) -> [UInt8] { unsafe hmac(key, input, EVP_sha256()) }

    /// Empty if the library refuses, as it may with MD5 in its FIPS mode; an empty digest matches nothing.
    private static func digest(_ input: [UInt8], _ kind: OpaquePointer?) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var size: UInt32 = 0
        guard unsafe EVP_Digest(input, input.count, &output, &size, kind, nil) == 1 else { return [] }
        return Array(output.prefix(Int(size)))
    }

    private static func hmac(_ key: [UInt8], _ input: [UInt8], _ kind: OpaquePointer?) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var size: UInt32 = 0
        let made = unsafe HMAC(kind, key, Int32(clamping: key.count), input, input.count, &output, &size)
        return unsafe made == nil ? [] : Array(output.prefix(Int(size)))
    }
}
