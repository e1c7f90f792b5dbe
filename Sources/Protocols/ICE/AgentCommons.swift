internal import Core

/// The local address that a check is sent from, as RFC 8445 defines the base.
enum Base: Hashable, Sendable {
    /// A local socket, identified by the address to which it is bound.
    case socket(SocketAddress)
    /// A relayed address, by the number of its server.
    case relay(Int)
}

/// A local candidate, and its base.
struct LocalCandidate: Equatable, Sendable {
    var candidate: Candidate
    var base: Base

    /// Whether pairs are made with it. Reflexive candidates are replaced by their base, and would be duplicates then
    /// (RFC 8445 §6.1.2.4).
    var isPaired: Bool { candidate.type == .host || candidate.type == .relayed }
}

/// A datagram that a check list wants sent.
struct Sending: Sendable {
    var bytes: [UInt8]
    var base: Base
    var remote: SocketAddress
}

/// State that all generations of an agent share.
struct AgentCommons: Sendable {
    let configuration: ICEConfiguration
    var generator: any RandomNumberGenerator & Sendable
    var isControlling: Bool
    let tieBreaker: UInt64
    var statistics = ICEStatistics()
    /// Sent at the end of the present input.
    var sendings: [Sending] = []

    init(_ configuration: ICEConfiguration, generator: some RandomNumberGenerator & Sendable) {
        self.configuration = configuration
        self.generator = generator
        isControlling = configuration.isControlling
        tieBreaker = self.generator.next()
    }

    mutating func transactionID() -> TransactionID { TransactionID(using: &generator) }

    /// A generator for a part that keeps its own.
    ///
    /// A copy of a seeded generator would repeat the numbers of the first; one that is the system's has no state.
    mutating func splitGenerator() -> any RandomNumberGenerator & Sendable {
        generator is SystemRandomNumberGenerator ? generator : SplitMix64(seed: generator.next())
    }

    /// `duration`, randomly up to a fifth longer or shorter (RFC 7675 §5.1).
    mutating func varied(_ duration: Duration) -> Duration {
        .nanoseconds(Int64(Double(duration.nanoseconds) * Double.random(in: 0.8...1.2, using: &generator)))
    }

    mutating func send(_ bytes: [UInt8], from base: Base, to remote: SocketAddress) {
        sendings.append(Sending(bytes: bytes, base: base, remote: remote))
    }
}
