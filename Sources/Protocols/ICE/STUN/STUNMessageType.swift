/// The class and method of a STUN message (RFC 8489 §5).
public enum STUNClass: UInt16, Sendable {
    /// Wants an answer.
    case request = 0x000
    /// Wants none.
    case indication = 0x010
    /// Answers a request that was granted.
    case success = 0x100
    /// Answers a request that was refused.
    case failure = 0x110
}

/// A STUN method: RFC 8489 §18.2 and, for TURN, RFC 8656 §17. Others can arrive.
public struct STUNMethod: RawRepresentable, Hashable, Sendable {
    /// 0…0xFFF.
    public let rawValue: UInt16

    /// Makes a method of its number, of which twelve bits count.
    public init(rawValue: UInt16) { self.rawValue = rawValue & 0xFFF }

    /// Ask for our address; also the connectivity check of ICE.
    public static let binding = STUNMethod(rawValue: 0x001)
    /// Ask for a relayed address.
    public static let allocate = STUNMethod(rawValue: 0x003)
    /// Keep the relayed address, or release it.
    public static let refresh = STUNMethod(rawValue: 0x004)
    /// Data to a peer (an indication).
    public static let send = STUNMethod(rawValue: 0x006)
    /// Data from a peer (an indication).
    public static let data = STUNMethod(rawValue: 0x007)
    /// Let these peers through.
    public static let createPermission = STUNMethod(rawValue: 0x008)
    /// Give this peer a short number.
    public static let channelBind = STUNMethod(rawValue: 0x009)

    /// The first two bytes of a message: the class' bits lie among the method's (RFC 8489 §5, figure 3).
    func typeField(_ messageClass: STUNClass) -> UInt16 {
        (rawValue & 0x00F) | (rawValue & 0x070) << 1 | (rawValue & 0xF80) << 2 | messageClass.rawValue
    }

    /// Takes the first two bytes of a message apart; the caller has seen that the top two bits are zero.
    static func split(_ field: UInt16) -> (STUNClass, STUNMethod) {
        let method = (field & 0x000F) | (field & 0x00E0) >> 1 | (field & 0x3E00) >> 2
        let messageClass: STUNClass =
            switch (field & 0x100 != 0, field & 0x010 != 0) {
            case (false, false): .request
            case (false, true): .indication
            case (true, false): .success
            case (true, true): .failure
            }
        return (messageClass, STUNMethod(rawValue: method))
    }
}
