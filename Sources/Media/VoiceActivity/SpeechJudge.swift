internal import Core
internal import Realtime

/// How likely it is that a moment is speech, as logarithms of odds.
struct VoiceOdds: BitwiseCopyable, Equatable {
    /// For what needs little evidence: as good as the detector knows.
    var possible: Float = -10
    /// For what must not be wrong: low whenever it may be anything else.
    var certain: Float = -10
    /// For whether certain speech continues: low as soon as the network hears none.
    var lasting: Float = -10
}

/// Distinguishes speech over a bot from coughs, music, effects and the bot's echo, by the outputs of the cells of
/// ``SpeechNetwork``, its odds in the last steps, and how loud the sound is above background and echo. Two weighted sums;
/// Benchmarks/Voice/fit.py fits the weights.
struct SpeechJudge: Sendable {
    static var count: Int { @_noAllocation @_noLocks get { 272 } }
    /// What has to be above the echo lately, on average over the bands, for each of the odds.
    private static var possibleAboveEcho: Float { @_noAllocation @_noLocks get { 0.5 } }
    private static var certainAboveEcho: Float { @_noAllocation @_noLocks get { 1 } }

    /// Noise is beyond what the weights were fitted to if it fills the line, or if it is always there, with −56 dBFS in its
    /// loudest band: then the network's own odds have to be at least these.
    private static var fullLevel: Float { @_noAllocation @_noLocks get { 1.2 } }
    private static var noisy: Float { @_noAllocation @_noLocks get { -18.6 } }
    private static var possibleInNoise: Float { @_noAllocation @_noLocks get { -4 } }
    private static var certainInNoise: Float { @_noAllocation @_noLocks get { -3 } }
    /// Without these odds of the network speech does not last: in noise the sum alone would take it to continue.
    private static var lastingOdds: Float { @_noAllocation @_noLocks get { -3 } }

    /// The weights of both sums, each with its bias at the end.
    private static let shared: SharedTable = {
        guard let numbers = Base64.floats(of: digits), numbers.count == 2 * (count + 1) else {
            preconditionFailure("Each value has two weights, in base 64")
        }
        return SharedTable(numbers)
    }()

    private let weights = SpeechJudge.shared
    /// What the cells put out where it is positive, and where it is negative; odds of four steps; levels of three.
    private var values = InlineArray<272, Float>(repeating: 0)
    private var odds = VoiceOdds()
    /// The latest four hops, newest first.
    private var excess = InlineArray<3, Float>(repeating: 0)
    private var sureExcess = InlineArray<3, Float>(repeating: 0)
    private var aboveEcho = InlineArray<4, Float>(repeating: 12)
    private var isEcho = false
    private var background: Float = -26

    init() { for index in 256..<260 { values[index] = -1.5 } }

    /// Takes the levels of the next 10 ms.
    @_noAllocation @_noLocks
    mutating func note(_ levels: SoundLevels) {
        for index in 0..<2 {
            excess[2 &- index] = excess[1 &- index]
            sureExcess[2 &- index] = sureExcess[1 &- index]
        }
        for index in 0..<3 { aboveEcho[3 &- index] = aboveEcho[2 &- index] }
        excess[0] = levels.excess
        sureExcess[0] = levels.sureExcess
        aboveEcho[0] = levels.aboveEcho
        isEcho = levels.isEcho
        background = levels.background
        values[270] = levels.returned
        values[271] = levels.level
    }

    /// Takes what the network finds in a step that has just ended.
    @_noAllocation @_noLocks
    mutating func judge(_ network: borrowing SpeechNetwork) {
        for cell in 0..<128 {
            let output = network.output(cell)
            values[cell] = max(0, output)
            values[128 &+ cell] = min(0, output)
        }
        for index in 0..<3 { values[259 &- index] = values[258 &- index] }
        values[256] = max(-6, min(6, network.odds)) / 4
        setLevel(260, max(excess[0], max(excess[1], excess[2])))
        setLevel(265, max(sureExcess[0], max(sureExcess[1], sureExcess[2])))
        odds = VoiceOdds(possible: weights[Self.count], certain: weights[2 &* Self.count &+ 1])
        for index in 0..<Self.count {
            odds.possible += values[index] * weights[index]
            odds.certain += values[index] * weights[Self.count &+ 1 &+ index]
        }
        odds.lasting = network.odds > Self.lastingOdds ? odds.possible : -10
        let isNoisy = background > Self.noisy
        if isNoisy, network.odds < Self.possibleInNoise { odds.possible = -10 }
        if isNoisy || values[271] > Self.fullLevel, network.odds < Self.certainInNoise { odds.certain = -10 }
    }

    /// A level now in three forms, and in the two steps before.
    @_noAllocation @_noLocks
    private mutating func setLevel(_ at: Int, _ value: Float) {
        values[at &+ 4] = values[at &+ 3]
        values[at &+ 3] = values[at]
        values[at] = min(3, value) / 2
        values[at &+ 1] = min(1, value)
        values[at &+ 2] = value > 0.3 ? 1 : 0
    }

    /// The odds of the latest 10 ms: those of the latest step, unless what we said explains the sound, by its level or by how it
    /// rises and falls.
    var latest: VoiceOdds {
        @_noAllocation @_noLocks mutating get {
            guard !isEcho else { return VoiceOdds() }
            var above: Float = 0
            for index in 0..<4 { above = max(above, aboveEcho[index]) }
            return VoiceOdds(
                possible: above > Self.possibleAboveEcho ? odds.possible : -10,
                certain: above > Self.certainAboveEcho ? odds.certain : -10,
                lasting: above > Self.possibleAboveEcho ? odds.lasting : -10)
        }
    }

    /// What the sums are made of; for Benchmarks/Voice.
    mutating func value(_ index: Int) -> Float { values[index] }
}
