package import Core

extension ProtocolCore {
    /// Takes an input, and returns what is to be done.
    package mutating func handle(_ input: Input, at now: Instant) -> [Output] {
        var outbox: [Output] = []
        handle(input, at: now, into: &outbox)
        return outbox
    }
}
