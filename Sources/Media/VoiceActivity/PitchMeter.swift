/// How periodic the latest 35 ms are, and their period, for voices of 80 to 400 Hz. Works at 4 kHz: the harmonics that
/// tell a voice from noise are below 2.
struct PitchMeter: Sendable {
    private static var shortest: Int { @_noAllocation @_noLocks get { 10 } }
    private static var longest: Int { @_noAllocation @_noLocks get { 50 } }
    private static var span: Int { @_noAllocation @_noLocks get { 140 } }
    /// `longest` and `span`, and room for a hop.
    private static var size: Int { @_noAllocation @_noLocks get { 192 } }

    /// The latest samples at 4 kHz, the newest last.
    private var samples = InlineArray<232, Float>(repeating: 0)
    private var fresh = 192
    private var before: Float = 0
    private var last: Float = 0
    private var isOdd = false

    /// The share of the power that the signal a period before predicts, 0…1.
    private(set) var periodicity: Float = 0
    /// The logarithm to base 2 of that period, in samples.
    private(set) var period: Float = 0

    @_noAllocation @_noLocks
    init() {}

    /// Takes a sample at 8 kHz; `measure` must be called after every 80.
    @_noAllocation @_noLocks
    mutating func add(_ sample: Float) {
        if isOdd, fresh < 232 {
            samples[fresh] = 0.25 * before + 0.5 * last + 0.25 * sample
            fresh &+= 1
        }
        isOdd.toggle()
        before = last
        last = sample
    }

    @_noAllocation @_noLocks
    mutating func measure() {
        let shift = fresh &- Self.size
        for index in 0..<Self.size { samples[index] = samples[index &+ shift] }
        fresh = Self.size
        let from = Self.size &- Self.span
        var power: Float = 1e-9
        for index in from..<Self.size { power += samples[index] * samples[index] }
        var powerBefore: Float = 1e-9
        for index in (from &- Self.shortest)..<(Self.size &- Self.shortest) {
            powerBefore += samples[index] * samples[index]
        }
        periodicity = 0
        var best = Self.shortest
        for lag in Self.shortest..<(Self.longest &+ 1) {
            let product = max(0, product(from, lag))
            let likeness = product * product / (power * powerBefore)
            // A multiple of the period is as like; the shortest counts.
            if likeness > periodicity * 1.06 {
                periodicity = likeness
                best = lag
            }
            let out = samples[Self.size &- lag &- 1]
            let into = samples[from &- lag &- 1]
            powerBefore = max(1e-9, powerBefore + into * into - out * out)
        }
        periodicity = min(1, periodicity)
        period = approximateLog2(Float(best))
    }

    /// Mutating because what is not may copy all samples first.
    @_noAllocation @_noLocks
    private mutating func product(_ from: Int, _ lag: Int) -> Float {
        var sums = SIMD4<Float>.zero
        var at = from
        while at < Self.size {
            let other = at &- lag
            sums +=
                SIMD4(samples[at], samples[at &+ 1], samples[at &+ 2], samples[at &+ 3])
                * SIMD4(samples[other], samples[other &+ 1], samples[other &+ 2], samples[other &+ 3])
            at &+= 4
        }
        return sums.sum()
    }
}
