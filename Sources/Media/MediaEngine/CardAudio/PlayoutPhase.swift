internal import Realtime

/// Decides when the loudspeaker's ticks are to come earlier, because packets would wait less for them.
///
/// Such a move skips some sound on its way to the card, which must not be audible, so it waits for a pause.
struct PlayoutPhase: BitwiseCopyable, Sendable {
    private var ticks = 0
    private var quietTurns = 0
    private var nextLook = PlayoutPhase.firstLook

    /// Ticks until a move is first considered, between considerations, and after a move: 4 s, 0.5 s, 5 s.
    private static var firstLook: Int { @_noAllocation @_noLocks get { 400 } }
    private static var lookInterval: Int { @_noAllocation @_noLocks get { 50 } }
    private static var rest: Int { @_noAllocation @_noLocks get { 500 } }
    /// The sound that a move may skip is that of the last ticks.
    private static var turnsOfPause: Int { @_noAllocation @_noLocks get { 3 } }
    /// −54 dBFS, as a sample.
    private static var quietPeak: Int16 { @_noAllocation @_noLocks get { 64 } }
    /// The smallest saving that is worth a move: 1.5 ms.
    static var leastAdvance: Int64 { @_noAllocation @_noLocks get { 1_500_000 } }

    /// Ticks are begun.
    @_noAllocation @_noLocks
    mutating func begin() { self = PlayoutPhase() }

    /// Records a tick, and whether a move may be considered now.
    ///
    /// - Parameter played: What is played.
    @_noAllocation @_noLocks
    mutating func mayMove(_ played: borrowing SampleBuffer, _ count: Int) -> Bool {
        ticks &+= 1
        quietTurns = Self.isQuiet(played, count) ? quietTurns &+ 1 : 0
        guard ticks >= nextLook, quietTurns >= Self.turnsOfPause else { return false }
        nextLook = ticks &+ Self.lookInterval
        return true
    }

    /// Ticks have been moved.
    @_noAllocation @_noLocks
    mutating func noteMove() { nextLook = ticks &+ Self.rest }

    // Views of samples count as reference counting in unoptimised code, so this is not analysed.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func isQuiet(_ frame: borrowing SampleBuffer, _ count: Int) -> Bool {
        let samples = frame.samples(count)
        for index in 0..<count where samples[index] > quietPeak || samples[index] < -quietPeak { return false }
        return true
    }
}
