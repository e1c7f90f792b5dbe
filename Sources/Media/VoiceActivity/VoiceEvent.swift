/// Something that began or ended in what the caller says.
@frozen
public struct VoiceEvent: Equatable, Sendable, BitwiseCopyable {
    /// What has happened.
    @frozen
    public enum Kind: Equatable, Sendable, BitwiseCopyable {
        /// This may be speech.
        case onset
        /// The sound since the last onset is speech.
        case confirmed
        /// The sound since the last onset was no speech.
        case retracted
        /// The speech has ended.
        case ended
    }

    /// What has happened.
    public let kind: Kind
    /// Samples received before the sound began (`onset`, `confirmed`, `retracted`) or before its end (`ended`), to 10 ms.
    public let position: Int
    /// Samples received when this was decided.
    public let decidedAt: Int

    @_noAllocation @_noLocks
    init(_ kind: Kind, at position: Int, decidedAt: Int) {
        self.kind = kind
        self.position = position
        self.decidedAt = decidedAt
    }
}

/// The events of one frame, in order. A frame of 60 ms has at most seven steps, with one event each.
public struct VoiceEvents: Sendable {
    private var events = InlineArray<8, VoiceEvent>(repeating: VoiceEvent(.onset, at: 0, decidedAt: 0))
    /// How many there are, up to eight.
    public private(set) var count = 0

    @_noAllocation @_noLocks
    init() {}

    /// The event at `index`, which is below `count`.
    public subscript(index: Int) -> VoiceEvent { @_noAllocation @_noLocks get { events[index] } }

    /// Events beyond the eighth, of frames that are too long, are left out.
    @_noAllocation @_noLocks
    mutating func append(_ event: VoiceEvent) {
        guard count < 8 else { return }
        events[count] = event
        count &+= 1
    }
}
