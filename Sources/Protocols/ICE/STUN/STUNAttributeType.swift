/// The number of a STUN attribute. A receiver must understand numbers below 0x8000 (RFC 8489 §14).
public struct STUNAttributeType: RawRepresentable, Hashable, Sendable {
    /// The number on the wire.
    public let rawValue: UInt16

    /// Makes a type of its number.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Whether a receiver that does not know this attribute must refuse the message.
    public var isComprehensionRequired: Bool { rawValue < 0x8000 }

    /// RFC 8489 §14.1.
    public static let mappedAddress = Self(rawValue: 0x0001)
    /// RFC 8489 §14.3.
    public static let username = Self(rawValue: 0x0006)
    /// RFC 8489 §14.5: HMAC-SHA1.
    public static let messageIntegrity = Self(rawValue: 0x0008)
    /// RFC 8489 §14.8.
    public static let errorCode = Self(rawValue: 0x0009)
    /// RFC 8489 §14.13.
    public static let unknownAttributes = Self(rawValue: 0x000A)
    /// RFC 8656 §18.1.
    public static let channelNumber = Self(rawValue: 0x000C)
    /// RFC 8656 §18.2.
    public static let lifetime = Self(rawValue: 0x000D)
    /// RFC 8656 §18.3.
    public static let xorPeerAddress = Self(rawValue: 0x0012)
    /// RFC 8656 §18.4.
    public static let data = Self(rawValue: 0x0013)
    /// RFC 8489 §14.9.
    public static let realm = Self(rawValue: 0x0014)
    /// RFC 8489 §14.10.
    public static let nonce = Self(rawValue: 0x0015)
    /// RFC 8656 §18.5.
    public static let xorRelayedAddress = Self(rawValue: 0x0016)
    /// RFC 8656 §18.6.
    public static let requestedAddressFamily = Self(rawValue: 0x0017)
    /// RFC 8656 §18.7.
    public static let evenPort = Self(rawValue: 0x0018)
    /// RFC 8656 §18.8.
    public static let requestedTransport = Self(rawValue: 0x0019)
    /// RFC 8656 §18.9.
    public static let dontFragment = Self(rawValue: 0x001A)
    /// RFC 8489 §14.6: HMAC-SHA256.
    public static let messageIntegritySHA256 = Self(rawValue: 0x001C)
    /// RFC 8489 §14.12.
    public static let passwordAlgorithm = Self(rawValue: 0x001D)
    /// RFC 8489 §14.4.
    public static let userhash = Self(rawValue: 0x001E)
    /// RFC 8489 §14.2.
    public static let xorMappedAddress = Self(rawValue: 0x0020)
    /// RFC 8656 §18.10.
    public static let reservationToken = Self(rawValue: 0x0022)
    /// RFC 8445 §16.1.
    public static let priority = Self(rawValue: 0x0024)
    /// RFC 8445 §16.1.
    public static let useCandidate = Self(rawValue: 0x0025)
    /// RFC 8656 §18.11.
    public static let additionalAddressFamily = Self(rawValue: 0x8000)
    /// RFC 8656 §18.12.
    public static let addressErrorCode = Self(rawValue: 0x8001)
    /// RFC 8489 §14.11.
    public static let passwordAlgorithms = Self(rawValue: 0x8002)
    /// RFC 8489 §14.16.
    public static let alternateDomain = Self(rawValue: 0x8003)
    /// RFC 8656 §18.13.
    public static let icmp = Self(rawValue: 0x8004)
    /// RFC 8489 §14.14.
    public static let software = Self(rawValue: 0x8022)
    /// RFC 8489 §14.15.
    public static let alternateServer = Self(rawValue: 0x8023)
    /// RFC 8489 §14.7.
    public static let fingerprint = Self(rawValue: 0x8028)
    /// RFC 8445 §16.1.
    public static let iceControlled = Self(rawValue: 0x8029)
    /// RFC 8445 §16.1.
    public static let iceControlling = Self(rawValue: 0x802A)

    /// The attributes below 0x8000 that this implementation knows.
    static let understood: Set<UInt16> = Set(
        [
            mappedAddress, username, messageIntegrity, errorCode, unknownAttributes, channelNumber, lifetime,
            xorPeerAddress, data, realm, nonce, xorRelayedAddress, requestedAddressFamily, evenPort,
            requestedTransport, dontFragment, messageIntegritySHA256, passwordAlgorithm, userhash,
            xorMappedAddress, reservationToken, priority, useCandidate,
        ].map(\.rawValue))
}
