internal import Core

/// The relayed addresses at a TURN server, and when the server must be asked to keep them (RFC 8656 §7, §8).
struct TURNAllocation: Sendable {
    /// Which relayed addresses are asked for (RFC 8656 §7.1).
    enum Families: Sendable {
        /// An IPv4 address, and an IPv6 address too from a server that assigns two at once.
        case both
        /// One of IPv6.
        case ipv6
        /// The address family of a server that does not support families.
        case unsaid
    }

    /// What to ask for if an allocation of both families is refused with this error.
    private static let remedies: [STUNErrorCode: Families] = [
        .addressFamilyNotSupported: .ipv6, .badRequest: .unsaid, .unknownAttribute: .unsaid,
    ]

    private(set) var families: Families
    /// One of each family at most.
    private(set) var relays: [SocketAddress] = []
    /// The server gave an IPv4 address and did not mention IPv6: it supports no allocations of both.
    private(set) var givesOneFamily = false
    /// When to refresh; `nil` before the allocation, and while a refresh is under way.
    private(set) var refreshAt: Instant?

    init(families: Families) { self.families = families }

    /// The relayed address that reaches a peer: the one of its family.
    func relay(for peer: SocketAddress) -> SocketAddress? { relays.first { $0.isIPv6 == peer.isIPv6 } }

    /// Takes the addresses and the lifetime that the server has granted. False if there is no address that could be
    /// used.
    mutating func granted(by message: STUNMessage, at now: Instant) -> Bool {
        for address in message.addresses(.xorRelayedAddress)
        where !address.isUnusableAsPeer && relay(for: address) == nil { relays.append(address) }
        givesOneFamily = families == .both && relays.map(\.isIPv6) == [false] && !message.contains(.addressErrorCode)
        guard !relays.isEmpty else { return false }
        refreshed(by: message, at: now)
        return true
    }

    /// Asks for other families after a refusal: for IPv6 of a server without IPv4, and for none of a server that fails
    /// on the attribute. False if that cannot help.
    mutating func changeFamilies(after code: STUNErrorCode) -> Bool {
        guard families == .both, let other = Self.remedies[code] else { return false }
        families = other
        return true
    }

    /// Plans the next refresh a minute before the end, or at half of a short life.
    mutating func refreshed(by message: STUNMessage, at now: Instant) {
        let seconds = Int64(min(max(message.uint32(.lifetime) ?? 600, 10), 3_600))
        refreshAt = now.advanced(by: .seconds(max(seconds - 60, seconds / 2)))
    }

    /// The allocation still lasts for a while; the server may come back.
    mutating func refreshFailed(at now: Instant) { refreshAt = now.advanced(by: .seconds(5)) }

    /// Whether a refresh is due, which is then under way.
    mutating func takeRefresh(at now: Instant) -> Bool {
        guard let due = refreshAt, due <= now else { return false }
        refreshAt = nil
        return true
    }
}
