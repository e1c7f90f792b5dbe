internal import Glibc
internal import Realtime

/// Keeps the played sound aligned with its echo, to a small fraction of a sample, while the two clocks drift apart.
///
/// The canceller's filter must stay in phase at 48 000 samples per second: at 30 ppm it would have to adapt again every
/// second, and echo would remain. So the reference is interpolated between its samples, at a position that a slow loop
/// moves so that the peak of its correlation with the microphone stays where it was first found.
struct ReferenceFollower: ~Copyable {
    private static let frame = 480
    private static let tapCount = 16
    /// The least delay at which there are samples on both sides of the position that is read.
    static var leastDelay: Int { @_noAllocation @_noLocks get { 16 } }
    private static let phaseCount = 256
    /// Lags around the expected one that are looked at, in samples.
    private static let reach = 16
    private static let lagCount = 33

    private var table = FloatBuffer(capacity: (Self.phaseCount + 1) * Self.tapCount)
    /// The reference as it was read, with its low frequencies lowered.
    private var history = FloatBuffer(capacity: 8_192)
    private var sums = FloatBuffer(capacity: Self.lagCount)
    private var heard = FloatBuffer(capacity: Self.frame)
    private var written = 0
    private var lastReference: Float = 0
    private var lastHeard: Float = 0
    private var power: Float = 0
    private var heardPower: Float = 0

    /// Where the echo is expected in the reference, in samples; −1 before it has been found.
    private var lag = -1
    /// The peak's position when first found, relative to `lag`.
    private var home: Float = 0
    private var framesOfPeak = 0
    /// How much more the reference is delayed than at first, in samples, and how much of that is added for each frame.
    private(set) var shift = 0.0
    private(set) var rate = 0.0

    init() {
        for phase in 0...Self.phaseCount {
            for tap in 0..<Self.tapCount {
                let distance = Double(tap - Self.tapCount / 2) + Double(phase) / Double(Self.phaseCount)
                let sinc = distance == 0 ? 1 : sin(Double.pi * distance) / (Double.pi * distance)
                let window = cos(Double.pi * distance / Double(Self.tapCount + 1))
                table[phase * Self.tapCount + tap] = Float(sinc * window * window)
            }
        }
    }

    /// Sound that was played `delay` samples before the latest one, more exactly ``shift`` more than that.
    @_noAllocation @_noLocks
    func sample(_ played: borrowing SampleHistory, delay: Int) -> Float {
        let place = max(Double(Self.leastDelay), Double(delay) + shift)
        let whole = Int(place)
        let phase = Int((place - Double(whole)) * Double(Self.phaseCount) + 0.5)
        var sum: Float = 0
        var tap = 0
        while tap < Self.tapCount {
            // The tap's distance from the place: a sample that is older by one is one further.
            let age = whole + Self.tapCount / 2 - tap
            sum += table[phase * Self.tapCount + tap] * Float(played.sample(age: age))
            tap &+= 1
        }
        return sum
    }

    /// Expects the echo `lag` samples behind the reference, within a dozen; forgets what was learned.
    @_noAllocation @_noLocks
    mutating func expect(lag: Int) {
        self.lag = max(Self.reach, min(6_000, lag))
        framesOfPeak = 0
        for index in 0..<Self.lagCount { sums[index] = 0 }
        (power, heardPower) = (0, 0)
    }

    /// The learned delay is invalid: its origin has changed.
    @_noAllocation @_noLocks
    mutating func forget() {
        lag = -1
        shift = 0
    }

    /// There is nothing to be read before that: what would go there stays, and does not wind up.
    @_noAllocation @_noLocks
    mutating func keep(notBefore least: Int) {
        guard shift < Double(least) else { return }
        shift = Double(least)
        rate = max(0, rate)
    }

    var isFollowing: Bool { @_noAllocation @_noLocks get { lag >= 0 } }

    /// The next sample of the reference, as it was read.
    @_noAllocation @_noLocks
    mutating func note(_ reference: Float) {
        history[written & 8_191] = reference - 0.9 * lastReference
        lastReference = reference
        written &+= 1
    }

    /// The frame that was heard while the last 480 noted samples were played.
    @_noAllocation @_noLocks
    mutating func follow(_ captured: inout MutableSpan<Int16>) {
        shift += rate
        var loudness: Float = 0
        for index in 0..<Self.frame {
            let value = Float(captured[index])
            heard[index] = value - 0.9 * lastHeard
            lastHeard = value
            let reference = history[(written &- Self.frame &+ index) & 8_191]
            loudness += reference * reference
            heardPower += heard[index] * heard[index]
        }
        guard lag >= 0 else { return }
        power = power * Self.memory + loudness
        heardPower *= Self.memory
        let best = correlate()
        // A frame with little played sound carries little information.
        guard loudness > 480 * 100, best > 0, best < Self.lagCount - 1 else { return }
        let peak = sums[best]
        // The echo must be distinct from all other sound, above all near talkers.
        guard peak * peak > 0.02 * power * heardPower else { return }
        let bend = sums[best - 1] - 2 * peak + sums[best + 1]
        guard bend < 0 else { return }
        steer(Float(best) + max(-0.5, min(0.5, (sums[best - 1] - sums[best + 1]) / (2 * bend))))
    }

    /// Half a second.
    private static let memory: Float = 0.98

    /// Adds this frame; the lag with the strongest positive or negative correlation, whose sign is then made positive.
    @_noAllocation @_noLocks
    private mutating func correlate() -> Int {
        var best = 0
        for place in 0..<Self.lagCount {
            var sum = sums[place] * Self.memory
            let start = written &- Self.frame &- (lag - Self.reach + place)
            var index = 0
            while index < Self.frame {
                sum += heard[index] * history[(start &+ index) & 8_191]
                index &+= 1
            }
            sums[place] = sum
            if sum > sums[best] { best = place }
        }
        return best
    }

    @_noAllocation @_noLocks
    private mutating func steer(_ place: Float) {
        framesOfPeak += 1
        guard framesOfPeak > Self.settling else {
            home = place
            return
        }
        let error = Double(place - home)
        rate = max(-Self.maximumRate, min(Self.maximumRate, rate + Self.integral * error))
        shift += Self.proportional * error
    }

    /// Frames until the peak's position is trusted.
    private static let settling = 40
    private static let proportional = 0.02
    private static let integral = 1e-4
    /// 500 ppm.
    private static let maximumRate = 0.24
}
