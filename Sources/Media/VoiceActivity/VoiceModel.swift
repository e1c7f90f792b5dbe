/// The detector's network: what is known of now and of seven moments in the last 0.3 s, 24 hidden units, one number out.
/// Benchmarks/Voice/train.py fits it. It keeps its weights in place, so that no array is touched on the media path.
struct VoiceModel: Sendable {
    private static var hidden: Int { @_noAllocation @_noLocks get { 24 } }
    private static var features: Int { @_noAllocation @_noLocks get { 35 } }

    /// Hops before now.
    private let lags: InlineArray<8, Int> = [0, 2, 4, 7, 11, 16, 22, 30]
    /// For each input the weights of all units.
    private var weights = InlineArray<6720, Int8>(repeating: 0)
    private let scales = VoiceModel.scales
    private let biases = VoiceModel.biases
    private let outputs = VoiceModel.outputs
    private let outputBias = VoiceModel.outputBias
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
        precondition(index == 6_720, "The model has a weight for each input and unit")
    }

    /// Takes the features of the next hop. Returns the logarithm of the odds that it is speech.
    @_noAllocation @_noLocks
    mutating func judge(_ values: InlineArray<35, Float>) -> Float {
        for index in 0..<Self.features { history[position &* Self.features &+ index] = values[index] }
        var sums = InlineArray<24, Float>(repeating: 0)
        for lag in 0..<8 {
            let from = ((position &- lags[lag]) & 31) &* Self.features
            for index in 0..<Self.features {
                let value = history[from &+ index]
                let at = (lag &* Self.features &+ index) &* Self.hidden
                for unit in 0..<24 { sums[unit] += value * Float(weights[at &+ unit]) }
            }
        }
        position = (position &+ 1) & 31
        var odds = outputBias
        for unit in 0..<24 { odds += max(0, sums[unit] * scales[unit] + biases[unit]) * outputs[unit] }
        return odds
    }
}
