internal import Core

/// The value of a `crypto` attribute: `tag suite inline:key…` (RFC 4568 §4, §9.1).
public struct CryptoAttribute: Equatable, Sendable {
    /// Identifies a line of a section; the answer repeats the tag of the selected line.
    public var tag: Int
    /// The suite and its key.
    public var key: SDESKey
    /// Packets after which the key must be changed, if given.
    public var lifetimePackets: UInt64?

    /// Makes a line.
    public init(tag: Int, key: SDESKey) {
        self.tag = tag
        self.key = key
        lifetimePackets = nil
    }

    /// Why a line cannot be used; another line of the section may.
    public struct ParseError: Error, Equatable, Sendable {
        /// As a clause that follows "the peer's line".
        public let reason: String
    }

    /// Reads the value, and refuses what is not supported: other suites, keys of a wrong length, several keys, key
    /// identifiers (MKI), and session parameters that change how packets are processed.
    public init(parsing value: String) throws(ParseError) {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count >= 3 else { throw ParseError(reason: "is not a tag, a suite and a key") }
        guard fields[0].utf8.count <= 9, let tag = Digits.number(fields[0], upTo: 999_999_999) else {
            throw ParseError(reason: "has a tag that is not a number of up to nine digits")
        }
        guard let suite = SDESSuite(rawValue: String(fields[1])) else {
            throw ParseError(reason: "names a suite that we do not have")
        }
        guard !fields[2].contains(";") else { throw ParseError(reason: "has several keys") }
        self.tag = tag
        (key, lifetimePackets) = try Self.key(fields[2], suite)
        for parameter in fields.dropFirst(3) where !Self.canIgnore(parameter) {
            throw ParseError(reason: "asks for a session parameter that we do not have")
        }
    }

    /// Reads `inline:base64[|lifetime][|MKI:length]`.
    private static func key(
        _ text: Substring, _ suite: SDESSuite
    ) throws(ParseError) -> (SDESKey, lifetimePackets: UInt64?) {
        guard text.lowercased().hasPrefix("inline:") else { throw ParseError(reason: "has no inline key") }
        let fields = text.dropFirst("inline:".count).split(separator: "|", omittingEmptySubsequences: false)
        guard let first = fields.first, let material = Base64.unpaddedBytes(of: first.utf8),
            let key = SDESKey(suite: suite, material: material)
        else { throw ParseError(reason: "has a key that is not \(suite.keyMaterialSize) bytes in Base64") }

        var lifetime: UInt64?
        for field in fields.dropFirst() {
            guard !field.contains(":") else { throw ParseError(reason: "asks for a key identifier (MKI)") }
            guard lifetime == nil, let packets = packets(field) else {
                throw ParseError(reason: "has a key lifetime that is none")
            }
            lifetime = packets
        }
        return (key, lifetime)
    }

    /// A lifetime is a count or a power of two, up to 2⁴⁸ (RFC 3711 §9.2).
    private static func packets(_ text: Substring) -> UInt64? {
        let packets: UInt64?
        if text.hasPrefix("2^") {
            packets = Digits.number(text.dropFirst(2), upTo: 48).map { 1 << $0 }
        } else {
            packets = Digits.number(text, upTo: 1 << 48)
        }
        return packets.flatMap { $0 > 0 ? $0 : nil }
    }

    /// A leading dash lets the receiver ignore a parameter, a window size hint is not binding, and a key derivation
    /// rate of zero is what we use anyway (RFC 4568 §6.3).
    private static func canIgnore(_ parameter: Substring) -> Bool {
        parameter.hasPrefix("-") || parameter.hasPrefix("WSH=") || parameter == "KDR=0"
    }

    /// The value to send, with the key.
    var text: String { "\(tag) \(key.suite.rawValue) inline:\(Base64.text(key.material))" }
}

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
