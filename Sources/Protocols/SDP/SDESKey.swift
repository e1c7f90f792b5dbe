/// How media is protected (RFC 4568 §6.2, RFC 7714 §14.1).
public enum SDESSuite: String, Equatable, Hashable, Sendable, CaseIterable {
    /// AES-GCM with a key of 128 bits and a salt of 96.
    case aeadAES128GCM = "AEAD_AES_128_GCM"
    /// AES in counter mode with a key of 128 bits and a salt of 112, HMAC-SHA1 cut to 80.
    case aesCM128HMACSHA1 = "AES_CM_128_HMAC_SHA1_80"
    /// The same with HMAC-SHA1 cut to 32 bits for sound and 80 for RTCP, which is all that some telephones have.
    case aesCM128HMACSHA1Short = "AES_CM_128_HMAC_SHA1_32"

    /// Bytes of key and salt together.
    public var keyMaterialSize: Int {
        switch self {
        case .aeadAES128GCM: 16 + 12
        case .aesCM128HMACSHA1, .aesCM128HMACSHA1Short: 16 + 14
        }
    }
}

/// A master key with its salt, for one direction of one stream. Its value is not printed.
public struct SDESKey: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The suite that the key belongs to.
    public let suite: SDESSuite
    /// Key, then salt; ``SDESSuite/keyMaterialSize`` bytes.
    public let material: [UInt8]

    /// Takes key and salt; `nil` if the number of bytes does not fit the suite.
    public init?(suite: SDESSuite, material: [UInt8]) {
        guard material.count == suite.keyMaterialSize else { return nil }
        self.suite = suite
        self.material = material
    }

    /// The suite, and no more.
    public var description: String { "\(suite.rawValue) (secret)" }
    /// The suite, and no more.
    public var debugDescription: String { description }
    /// The suite, and no more.
    public var customMirror: Mirror { Mirror(self, children: ["suite": suite.rawValue]) }
}
