// Meetings: sound of several calls mixed with each other, and who of them is heard. Pure: no thread, no socket, no clock.

/// Decides who is heard in a meeting: the three loudest, with hysteresis. Pure.
///
/// For each frame, all members with their levels go through ``consider(_:level:)``, between ``begin()`` and ``end()``. Levels are
/// ``SpeechLevel/value``s. A member who is heard stays so through pauses of 0.6 s, and gives way only to a member who is twice as loud (6 dB).
public struct SpeakerSelection: BitwiseCopyable, Sendable {
    private struct Speaker: BitwiseCopyable {
        var member: UInt64 = 0
        var level = 0
        /// Frames since the member was last loud enough; -1 if this slot is free.
        var quiet = -1
        var isSeen = false
    }

    /// Members who are heard at a time.
    public static var most: Int { @_noAllocation @_noLocks get { 3 } }
    /// The least level at which a member begins to be heard: that of a tone of -50 dBFS.
    public static var enterLevel: Int { @_noAllocation @_noLocks get { 60 } }
    /// Below this level, 3 dB lower, a member pauses.
    public static var pauseLevel: Int { @_noAllocation @_noLocks get { 42 } }
    /// Frames of 20 ms that a pause may last: 0.6 s.
    public static var longestPause: Int { @_noAllocation @_noLocks get { 30 } }

    private var first = Speaker()
    private var second = Speaker()
    private var third = Speaker()
    /// The loudest member of this frame who is not heard.
    private var candidate = Speaker()

    /// No member is heard yet.
    @_noAllocation @_noLocks
    public init() {}

    /// Begins a frame.
    @_noAllocation @_noLocks
    public mutating func begin() {
        for index in 0..<Self.most { self[index].isSeen = false }
        candidate = Speaker()
    }

    /// Takes the level of a member, each once in a frame. Member 0 does not exist.
    @_noAllocation @_noLocks
    public mutating func consider(_ member: UInt64, level: Int) {
        for index in 0..<Self.most where self[index].quiet >= 0 && self[index].member == member {
            self[index].level = level
            self[index].isSeen = true
            self[index].quiet = level >= Self.pauseLevel ? 0 : self[index].quiet &+ 1
            return
        }
        guard level >= Self.enterLevel, level > candidate.level else { return }
        candidate = Speaker(member: member, level: level, quiet: 0, isSeen: true)
    }

    /// Ends a frame: those who left or paused too long are heard no more, and one further member may be. So two who begin in the same
    /// frame are heard 20 ms apart.
    @_noAllocation @_noLocks
    public mutating func end() {
        var (slot, isFree) = (-1, false)
        for index in 0..<Self.most {
            if !self[index].isSeen || self[index].quiet > Self.longestPause { self[index] = Speaker() }
            if isFree { continue }
            if self[index].quiet < 0 {
                (slot, isFree) = (index, true)
            } else if slot < 0 || self[index].level < self[slot].level {
                slot = index
            }
        }
        guard candidate.quiet >= 0, slot >= 0 else { return }
        if isFree || candidate.level >= 2 &* self[slot].level { self[slot] = candidate }
    }

    /// Whether a member is heard.
    @_noAllocation @_noLocks
    public func isHeard(_ member: UInt64) -> Bool {
        isHere(first, member) || isHere(second, member) || isHere(third, member)
    }

    @_noAllocation @_noLocks
    private func isHere(_ speaker: Speaker, _ member: UInt64) -> Bool { speaker.quiet >= 0 && speaker.member == member }

    private subscript(index: Int) -> Speaker {
        @_noAllocation @_noLocks get { index == 0 ? first : index == 1 ? second : third }
        @_noAllocation @_noLocks set {
            if index == 0 { first = newValue } else if index == 1 { second = newValue } else { third = newValue }
        }
    }
}

/// How loud a member is: the mean magnitude of its samples, which rises at once and falls by a tenth in each frame of 20 ms.
public struct SpeechLevel: BitwiseCopyable, Sendable {
    /// 0...32,768. A sine of -50 dBFS has 66.
    public private(set) var value = 0

    /// Silence.
    @_noAllocation @_noLocks
    public init() {}

    /// Takes the next frame.
    @_noAllocation @_noLocks
    public mutating func add(_ frame: Span<Int16>) {
        var sum = 0
        for index in 0..<frame.count { sum &+= Int(frame[index].magnitude) }
        value = max(frame.count > 0 ? sum / frame.count : 0, value &* 9 / 10)
    }
}
