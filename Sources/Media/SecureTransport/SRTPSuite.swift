// SecureTransport: encrypts and authenticates media packets (SRTP, RFC 3711 and 7714).

internal import CSRTP

/// How media packets are encrypted and authenticated.
public enum SRTPSuite: String, CaseIterable, Sendable {
    /// AES-128 in Galois counter mode with a 16-byte tag (RFC 7714): the cheaper one, preferred.
    case aeadAES128GCM = "AEAD_AES_128_GCM"
    /// AES-128 in counter mode with an 80-bit HMAC-SHA1 tag (RFC 3711).
    case aesCM128HMACSHA1 = "AES_CM_128_HMAC_SHA1_80"
    /// The same with a 32-bit tag of sound; that of RTCP has 80 (RFC 4568 §6.2.2). A forged packet gets through once in four thousand
    /// million tries, so it is the last choice.
    case aesCM128HMACSHA1Short = "AES_CM_128_HMAC_SHA1_32"

    /// Bytes of master key.
    public var keyBytes: Int { 16 }

    /// Bytes of master salt.
    public var saltBytes: Int {
        switch self {
        case .aeadAES128GCM: 12
        case .aesCM128HMACSHA1, .aesCM128HMACSHA1Short: 14
        }
    }

    /// The most bytes that protecting a packet adds: the tag, and for RTCP the index word.
    public static var maximumOverheadBytes: Int {
        @_noAllocation @_noLocks get { 20 }
    }

    var profile: srtp_profile_t {
        switch self {
        case .aeadAES128GCM: srtp_profile_aead_aes_128_gcm
        case .aesCM128HMACSHA1: srtp_profile_aes128_cm_sha1_80
        case .aesCM128HMACSHA1Short: srtp_profile_aes128_cm_sha1_32
        }
    }
}

/// A suite with its master key and salt: all that one direction of media needs.
///
/// Prints as its suite's name only.
public struct SRTPKey: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The suite that the key is for.
    public let suite: SRTPSuite
    /// Master key, then master salt: `suite.keyBytes + suite.saltBytes` bytes.
    public let keyAndSalt: [UInt8]

    /// Makes a key; nil if `keyAndSalt` has not the length that the suite asks for.
    public init?(suite: SRTPSuite, keyAndSalt: [UInt8]) {
        guard keyAndSalt.count == suite.keyBytes + suite.saltBytes else { return nil }
        self.suite = suite
        self.keyAndSalt = keyAndSalt
    }

    /// A new random key.
    public static func random(
        _ suite: SRTPSuite, using generator: inout some RandomNumberGenerator
    ) -> SRTPKey {
        SRTPKey(
            suite: suite,
            validated: (0..<(suite.keyBytes + suite.saltBytes)).map { _ in
                UInt8.random(in: .min ... .max, using: &generator)
            })
    }

    private init(suite: SRTPSuite, validated: [UInt8]) {
        self.suite = suite
        keyAndSalt = validated
    }

    /// The suite's name; never the key.
    public var description: String { "\(suite.rawValue) key" }

    /// No children: dumping a key shows nothing of it.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
