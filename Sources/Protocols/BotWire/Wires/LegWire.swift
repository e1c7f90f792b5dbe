public import Core

/// A bot at the other end of a WebRTC leg: the messages are the leg's sound, linear at 48 kHz, and there are no others.
///
/// It has no marks, and nothing to clear with: such a bot sends in real time, and is silent when it wants to be.
public struct LegWire: VoiceWire {
    private enum State: Sendable {
        case unopened
        case open
        case over
    }

    private var state = State.unopened
    private var faults = FaultLimiter()

    /// Makes one for a call.
    public init() {}

    /// A leg that is offered by HTTP.
    public var transport: WireTransport { .offer }
    /// Linear at 48 kHz.
    public var callerFormat: WireFormat { .linear(48_000) }
    /// Counts of received messages.
    public var counts: WireCounts { faults.counts }
    /// Nothing happens by time alone.
    public var nextDeadline: Instant? { nil }

    /// Takes one input.
    public mutating func handle(_ input: WireInput, at now: Instant, into outbox: inout [WireOutput]) {
        switch (state, input) {
        case (.over, _): break
        case (.unopened, .connected): state = .open
        case (.open, .sound(let bytes)): outbox.append(.send(.binary(bytes)))
        case (.open, .message(.binary(let bytes))):
            faults.countMessage()
            // The driver's own, so always of whole samples.
            guard !bytes.isEmpty else { return }
            faults.countSound(bytes.count)
            outbox.append(.play(bytes, callerFormat))
        case (_, .ended):
            outbox.append(.close)
            state = .over
        case (_, .connected), (_, .sound), (_, .message), (_, .missed), (_, .digit), (_, .markPlayed),
            (_, .markDiscarded), (_, .played), (_, .cleared):
            break
        }
    }
}
