/// Why a request was refused (RFC 8489 §14.8).
public struct STUNErrorCode: RawRepresentable, Hashable, Sendable {
    /// 300…699.
    public let rawValue: Int

    /// Makes a code of its number.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Ask another server.
    public static let tryAlternate = Self(rawValue: 300)
    /// Malformed.
    public static let badRequest = Self(rawValue: 400)
    /// Without credentials, or with wrong ones.
    public static let unauthenticated = Self(rawValue: 401)
    /// Against the server's policy.
    public static let forbidden = Self(rawValue: 403)
    /// It has attributes that were not understood.
    public static let unknownAttribute = Self(rawValue: 420)
    /// There is no such allocation, or there is one already.
    public static let allocationMismatch = Self(rawValue: 437)
    /// The nonce has aged.
    public static let staleNonce = Self(rawValue: 438)
    /// The server does not support the family of addresses.
    public static let addressFamilyNotSupported = Self(rawValue: 440)
    /// The allocation is another user's.
    public static let wrongCredentials = Self(rawValue: 441)
    /// The server does not support the transport.
    public static let unsupportedTransport = Self(rawValue: 442)
    /// The peer's address is of another family.
    public static let peerAddressFamilyMismatch = Self(rawValue: 443)
    /// The user has no allocations left.
    public static let allocationQuotaReached = Self(rawValue: 486)
    /// Both sides of ICE assume the same role (RFC 8445 §7.3.1.1).
    public static let roleConflict = Self(rawValue: 487)
    /// Something broke; try again.
    public static let serverError = Self(rawValue: 500)
    /// The server has no addresses left.
    public static let insufficientCapacity = Self(rawValue: 508)

    /// The text of a code in our answers.
    var reason: String {
        switch self {
        case .tryAlternate: "Try Alternate"
        case .badRequest: "Bad Request"
        case .unauthenticated: "Unauthenticated"
        case .forbidden: "Forbidden"
        case .unknownAttribute: "Unknown Attribute"
        case .allocationMismatch: "Allocation Mismatch"
        case .staleNonce: "Stale Nonce"
        case .addressFamilyNotSupported: "Address Family not Supported"
        case .wrongCredentials: "Wrong Credentials"
        case .peerAddressFamilyMismatch: "Peer Address Family Mismatch"
        case .roleConflict: "Role Conflict"
        case .insufficientCapacity: "Insufficient Capacity"
        default: "Error"
        }
    }
}
