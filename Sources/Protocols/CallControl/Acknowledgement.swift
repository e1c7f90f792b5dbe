public import JSON

/// The caller has received our answer. A service that confirms an accept before that reports it by a call signal of this type:
/// over SIP, when the ACK comes.
public struct Acknowledgement: Hashable, Sendable {
    /// The type of the call signal that carries it.
    public static let signal = "acknowledged"

    /// The host that it came from, if that is known: it has received what we sent to it.
    public var host: String?

    /// Makes one.
    public init(from host: String?) { self.host = host }

    /// Reads the signal's data.
    public init(data: JSONValue) { host = data["from"]?.string }

    /// The signal's data.
    public var data: JSONValue { host.map { ["from": .string($0)] } ?? [:] }
}
