/// How many calls led to a call, one because of the other: a call flow that dials for its caller, a hand-over, a transfer, a trunk.
///
/// Each device that places a call because of another one counts one more, and at ``most`` places none. So devices whose calls lead to each
/// other end by themselves. Nothing vouches for the count: a caller that sends none, or one that is too low, has what a caller of a new
/// call has, and one that is too high harms its own call alone.
public struct CallHops: Hashable, Sendable {
    /// Calls that may lead to a call.
    ///
    /// As many as a telephone network diverts a call (Q.732.2). If each of them has two calls placed, 2 + 4 + 8 + 16 + 32 = 62 follow from
    /// one call, fewer than the 64 that one device's flows and hand-overs may have at a time.
    public static let most = 5
    /// Requests may be passed on this number of times by SIP servers (RFC 3261 §8.1.1.6).
    public static let mostForwards = 70

    /// Calls that led to this one. A larger number counts as one more than ``most``.
    public let count: Int
    /// How often SIP servers might have passed on the call that came in (`Max-Forwards`); nil if no call came in by SIP.
    public let forwards: Int?

    /// Makes a count, that of a call that no other led to unless given.
    ///
    /// - Parameters:
    ///   - count: Below 0 it counts as 0.
    ///   - forwards: What the INVITE's `Max-Forwards` says; ``mostForwards`` at most counts.
    public init(_ count: Int = 0, forwards: Int? = nil) {
        self.count = min(max(count, 0), Self.most + 1)
        self.forwards = forwards.map { min(max($0, 0), Self.mostForwards) }
    }

    /// Whether too many calls led to the call.
    public var areTooMany: Bool { count > Self.most }

    /// The count of a call that is placed because of this one; nil if none may be.
    ///
    /// What SIP servers may still do shrinks by one, too, as at every user agent that passes calls on (RFC 7332 §4).
    public var next: CallHops? {
        guard obstacle == nil else { return nil }
        return CallHops(count + 1, forwards: forwards.map { $0 - 1 })
    }

    /// Why no call is placed because of this one; nil if one may be.
    public var obstacle: String? {
        if count >= Self.most {
            return "\(Self.most) calls led to the caller's, one after the other, which is the limit: "
                + "devices may call each other in a circle"
        }
        return forwards == 0 ? "the caller's INVITE has `Max-Forwards: 0`" : nil
    }
}
