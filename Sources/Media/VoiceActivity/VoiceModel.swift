/// How likely it is that a step of 10 ms is speech, as logarithms of odds.
struct VoiceOdds: BitwiseCopyable, Equatable {
    /// For what needs little evidence: as good as the detector knows.
    var possible: Float = -10
    /// For what must not be wrong: low whenever it may be anything else.
    var certain: Float = -10
}

/// The detector's network: what is known of now and of seven moments in the last 0.3 s, 48 hidden units, two numbers out.
/// Benchmarks/Voice/train.py fits it. It keeps its weights in place, so that no array is touched on the media path.
struct VoiceModel: Sendable {
    private static var hidden: Int { @_noAllocation @_noLocks get { 48 } }
    private static var features: Int { @_noAllocation @_noLocks get { 35 } }

    /// Hops before now.
    private let lags: InlineArray<8, Int> = [0, 2, 4, 7, 11, 16, 22, 30]
    /// For each input the weights of all units.
    private var weights = InlineArray<13440, Int8>(repeating: 0)
    private let scales = VoiceModel.scales
    private let biases = VoiceModel.biases
    private let possible = VoiceModel.possible
    private let certain = VoiceModel.certain
    private let bias = VoiceOdds(possible: VoiceModel.possibleBias, certain: VoiceModel.certainBias)
    /// Features of the latest 32 hops.
    private var history = InlineArray<1120, Float>(repeating: 0)
    private var position = 0

    init() {
        var index = 0
        var high: UInt8?
        for digit in Self.digits.utf8 {
            let value = digit < 58 ? digit &- 48 : digit &- 87
            guard let upper = high else {
                high = value
                continue
            }
            high = nil
            let (unit, input) = index.quotientAndRemainder(dividingBy: 280)
            weights[input * Self.hidden + unit] = Int8(bitPattern: upper << 4 | value)
            index += 1
        }
        precondition(index == 13_440, "The model has a weight for each input and unit")
    }

    /// Takes the features of the next hop.
    @_noAllocation @_noLocks
    mutating func judge(_ values: InlineArray<35, Float>) -> VoiceOdds {
        for index in 0..<Self.features { history[position &* Self.features &+ index] = values[index] }
        var sums = InlineArray<48, Float>(repeating: 0)
        for lag in 0..<8 {
            let from = ((position &- lags[lag]) & 31) &* Self.features
            for index in 0..<Self.features {
                let value = history[from &+ index]
                let at = (lag &* Self.features &+ index) &* Self.hidden
                for unit in 0..<48 { sums[unit] += value * Float(weights[at &+ unit]) }
            }
        }
        position = (position &+ 1) & 31
        var odds = bias
        for unit in 0..<48 {
            let value = max(0, sums[unit] * scales[unit] + biases[unit])
            odds.possible += value * possible[unit]
            odds.certain += value * certain[unit]
        }
        return odds
    }
}
