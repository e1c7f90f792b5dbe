public import Core

/// Chooses the stream to play when packets with different SSRCs arrive in one call.
///
/// A new stream takes over at once, so that nothing of it is lost. A stream that was replaced before takes over only
/// after five packets in a row that are newer than all its earlier ones, so that late packets after a change, or two
/// alternating streams, reset nothing. A stream that appears within a second of the last change also needs five packets
/// in a row.
public struct StreamSelector: BitwiseCopyable, Sendable {
    /// The role of a packet in the call.
    public enum Verdict: Equatable, BitwiseCopyable, Sendable {
        /// It belongs to the current stream; newest: ahead of all earlier packets of this stream.
        case current(isNewest: Bool)
        /// The first of a stream that counts from now on.
        case takesOver
        /// It belongs to another stream: drop it.
        case ignored
    }

    /// A stream, and how far it has come.
    private struct Stream: BitwiseCopyable {
        var ssrc: UInt32 = 0
        var newest: UInt16 = 0
        var newestAt = Instant(nanoseconds: .min)
        var isKnown = false

        @_noAllocation @_noLocks
        init() {}

        @_noAllocation @_noLocks
        init(_ ssrc: UInt32, _ number: UInt16, _ now: Instant) {
            (self.ssrc, newest, newestAt, isKnown) = (ssrc, number, now, true)
        }

        /// Whether a packet is ahead of all before it. One that is far behind, or follows a long silence, is of a stream that
        /// was begun again.
        @_noAllocation @_noLocks
        func isAhead(_ number: UInt16, _ now: Instant) -> Bool {
            guard isKnown, newestAt.nanoseconds(to: now) < StreamSelector.memoryNanoseconds else { return true }
            return newest &- number >= StreamSelector.lateAtMost
        }
    }

    private var current = Stream()
    /// Streams that were replaced, the last one first.
    private var former = (Stream(), Stream(), Stream(), Stream())
    /// The stream that may take over, and how many packets of it have come in a row.
    private var rival = Stream()
    private var run = 0
    private var changedAt = Instant(nanoseconds: .min)
    private var hasChanged = false

    /// Packets in a row that a stream shows to take over again: 100 ms.
    private static var proof: Int { @_noAllocation @_noLocks get { 5 } }
    /// How far behind a packet may be and still be a late one: a minute.
    private static var lateAtMost: UInt16 { @_noAllocation @_noLocks get { 3_000 } }
    /// A stream that was silent for this duration may continue with any sequence number.
    private static var memoryNanoseconds: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }
    /// Streams may replace each other this often without proof.
    private static var calmNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }

    /// Nothing has come yet.
    @_noAllocation @_noLocks
    public init() {}

    /// The stream that counts; nil before the first packet.
    public var ssrc: UInt32? {
        @_noAllocation @_noLocks get { current.isKnown ? current.ssrc : nil }
    }

    /// Records a packet, and returns whether it counts.
    @_noAllocation @_noLocks
    public mutating func receive(ssrc: UInt32, sequenceNumber: UInt16, at now: Instant) -> Verdict {
        guard current.isKnown else {
            current = Stream(ssrc, sequenceNumber, now)
            return .takesOver
        }
        guard ssrc != current.ssrc else {
            run = 0
            let isNewest = current.isAhead(sequenceNumber, now)
            if isNewest { current = Stream(ssrc, sequenceNumber, now) }
            return .current(isNewest: isNewest)
        }
        guard hasProof(ssrc, sequenceNumber, now) else { return .ignored }
        forget(ssrc)
        former = (current, former.0, former.1, former.2)
        current = Stream(ssrc, sequenceNumber, now)
        (rival, run) = (Stream(), 0)
        (changedAt, hasChanged) = (now, true)
        return .takesOver
    }

    /// Whether a packet of another stream makes that stream the one that counts.
    @_noAllocation @_noLocks
    private mutating func hasProof(_ ssrc: UInt32, _ number: UInt16, _ now: Instant) -> Bool {
        let known = stream(ssrc)
        if !known.isKnown, !hasChanged || changedAt.nanoseconds(to: now) >= Self.calmNanoseconds { return true }
        if rival.ssrc != ssrc || !rival.isKnown {
            rival = known
            rival.ssrc = ssrc
            run = 0
        }
        guard rival.isAhead(number, now) else { return false }
        rival = Stream(ssrc, number, now)
        note(rival)
        run += 1
        return run >= Self.proof
    }

    /// The former stream with this SSRC; an unknown one if there is none.
    @_noAllocation @_noLocks
    private func stream(_ ssrc: UInt32) -> Stream {
        if former.0.isKnown, former.0.ssrc == ssrc { return former.0 }
        if former.1.isKnown, former.1.ssrc == ssrc { return former.1 }
        if former.2.isKnown, former.2.ssrc == ssrc { return former.2 }
        if former.3.isKnown, former.3.ssrc == ssrc { return former.3 }
        return Stream()
    }

    /// Keeps how far a former stream has come.
    @_noAllocation @_noLocks
    private mutating func note(_ stream: Stream) {
        if former.0.isKnown, former.0.ssrc == stream.ssrc { former.0 = stream }
        if former.1.isKnown, former.1.ssrc == stream.ssrc { former.1 = stream }
        if former.2.isKnown, former.2.ssrc == stream.ssrc { former.2 = stream }
        if former.3.isKnown, former.3.ssrc == stream.ssrc { former.3 = stream }
    }

    /// Takes a stream out of the former ones.
    @_noAllocation @_noLocks
    private mutating func forget(_ ssrc: UInt32) {
        if former.0.ssrc == ssrc { former.0 = Stream() }
        if former.1.ssrc == ssrc { former.1 = Stream() }
        if former.2.ssrc == ssrc { former.2 = Stream() }
        if former.3.ssrc == ssrc { former.3 = Stream() }
    }
}
