/// Makes onset, confirmation and end of the odds of each hop.
///
/// An onset needs little evidence, since it only lowers a bot's voice. A confirmation needs much, since it stops the bot.
struct SpeechTracker: Sendable {
    private enum State: BitwiseCopyable {
        case quiet
        /// Since hop `start`; `strong` of its hops are like speech beyond doubt, and `weak` hops at the end are not like it.
        case possible(start: Int, strong: Int, weak: Int)
        /// The last hop like speech was `last`.
        case speaking(last: Int)
    }

    /// What the latest hop has decided; hops count from 0.
    enum Step: Equatable, BitwiseCopyable {
        case nothing
        case onset(hop: Int)
        case confirmed(start: Int)
        case retracted(start: Int)
        /// `hop` is the first that is no speech.
        case ended(hop: Int)
    }

    /// Odds of each threshold, as natural logarithms, and how many hops they have to last.
    private static var possible: Float { @_noAllocation @_noLocks get { 0 } }
    private static var strong: Float { @_noAllocation @_noLocks get { 1 } }
    private static var strongHops: Int { @_noAllocation @_noLocks get { 7 } }
    private static var weakHops: Int { @_noAllocation @_noLocks get { 8 } }
    private static var lasting: Float { @_noAllocation @_noLocks get { -1 } }
    private static var endHops: Int { @_noAllocation @_noLocks get { 30 } }

    private var state = State.quiet
    private var hop = 0

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func follow(_ odds: VoiceOdds) -> Step {
        defer { hop &+= 1 }
        switch state {
        case .quiet:
            guard odds.possible > Self.possible else { return .nothing }
            state = .possible(start: hop, strong: odds.certain > Self.strong ? 1 : 0, weak: 0)
            return .onset(hop: hop)
        case .possible(let start, var strong, var weak):
            if odds.certain > Self.strong { strong &+= 1 }
            weak = odds.possible > Self.possible ? 0 : weak &+ 1
            if strong >= Self.strongHops {
                state = .speaking(last: hop)
                return .confirmed(start: start)
            }
            guard weak < Self.weakHops else {
                state = .quiet
                return .retracted(start: start)
            }
            state = .possible(start: start, strong: strong, weak: weak)
            return .nothing
        case .speaking(let last):
            if odds.lasting > Self.lasting {
                state = .speaking(last: hop)
            } else if hop &- last >= Self.endHops {
                state = .quiet
                return .ended(hop: last &+ 1)
            }
            return .nothing
        }
    }
}
