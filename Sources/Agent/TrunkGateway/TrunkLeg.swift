public import CallAgent

/// The two sides of a trunk.
public enum TrunkSide: String, CaseIterable, Hashable, Sendable {
    /// The account at the exchange.
    case exchange
    /// The account at the telephone network's server.
    case network

    /// The one across.
    public var other: TrunkSide { self == .exchange ? .network : .exchange }
}

/// A call on one side of a trunk.
public struct TrunkLeg: Hashable, Sendable, CustomStringConvertible {
    /// On which side.
    public let side: TrunkSide
    /// Its number there.
    public let number: UInt64

    /// Names a leg.
    public init(_ side: TrunkSide, _ number: UInt64) {
        self.side = side
        self.number = number
    }

    /// Names the leg that is a device's call.
    public init(_ side: TrunkSide, _ call: CallID) { self.init(side, call.number) }

    /// Such as "network call 3".
    public var description: String { "\(side.rawValue) call \(number)" }
}
