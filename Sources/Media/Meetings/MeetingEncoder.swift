internal import AudioKit
internal import AudioPort
internal import Realtime

/// Encodes what a meeting hears, once for all members that hear the same and encode alike.
///
/// Its frames are those of one stream, which a call enters with a frame that refers to none before it. Such a frame sounds a little worse
/// at the same size, so one is made only if a member waits for it, and 100 ms after the last at the earliest.
struct MeetingEncoder: ~Copyable, Sendable {
    let meeting: UInt64
    let settings: EncoderSettings
    private var encoder: OpusEncoder
    /// The frame of this tick; nil if it cannot be shared.
    private(set) var frame: SharedFrame?
    /// Frames since the last independent one.
    private var dependentFrames = MeetingEncoder.mostOften
    /// Frames for which too few members were there.
    private var unneededFrames = 0
    var next: HandedValue<MeetingEncoder>?

    /// Members that encode alike, from which on they share. Of three, two listen while one speaks: sharing saves little.
    static var leastMembers: Int { @_noAllocation @_noLocks get { 4 } }
    /// Encoders of a meeting. Members that encode in further ways do so for themselves.
    static var most: Int { @_noAllocation @_noLocks get { 4 } }
    /// Encoders of all meetings: one thread runs them, each for some 0.3 ms of the 20 ms of a frame, so that half of its time is left.
    static var mostInAll: Int { @_noAllocation @_noLocks get { 32 } }
    /// Frames from one independent frame to the next: 100 ms.
    private static var mostOften: Int { @_noAllocation @_noLocks get { 5 } }
    /// Frames for which an encoder is kept that too few members need: 5 s.
    private static var longestUnneeded: Int { @_noAllocation @_noLocks get { 250 } }

    /// Makes an encoder. This alone allocates.
    init(_ settings: EncoderSettings, for meeting: UInt64) throws(OpusError) {
        self.meeting = meeting
        self.settings = settings
        encoder = try OpusEncoder(settings: settings)
    }

    /// Encodes the next frame.
    ///
    /// - Parameter isAwaited: A member waits for an independent frame.
    @_noAllocation @_noLocks
    mutating func encode(_ mix: Span<Int16>, isAwaited: Bool) {
        let isIndependent = isAwaited && dependentFrames >= Self.mostOften
        dependentFrames = isIndependent ? 0 : min(dependentFrames &+ 1, Self.mostOften)
        if isIndependent { encoder.set(isIndependent: true) }
        var bytes = InlineArray<256, UInt8>(repeating: 0)
        let count = Self.encode(mix, with: &encoder, into: &bytes)
        if isIndependent { encoder.set(isIndependent: false) }
        // A pause (DTX) is no frame to begin with.
        frame =
            count > 0
            ? SharedFrame(bytes, count: count, settings: settings, isIndependent: isIndependent && count > 2) : nil
    }

    /// Leaves out a frame that no member would send. What is encoded next is as if nothing came before.
    @_noAllocation @_noLocks
    mutating func rest() {
        guard case .some = frame else { return }
        frame = nil
        encoder.reset()
    }

    /// Notes how many members encode in this way.
    ///
    /// - Returns: Whether too few have needed the encoder for 5 s, so that it goes.
    @_noAllocation @_noLocks
    mutating func isSpare(members: Int) -> Bool {
        unneededFrames = members >= Self.leastMembers ? 0 : unneededFrames &+ 1
        return unneededFrames > Self.longestUnneeded
    }

    // A view of bytes, which unoptimised code counts as reference counting.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func encode(
        _ mix: Span<Int16>, with encoder: inout OpusEncoder, into bytes: inout InlineArray<256, UInt8>
    ) -> Int {
        var room = bytes.mutableSpan
        return encoder.encode(mix, into: &room)
    }
}
