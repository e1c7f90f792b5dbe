internal import Realtime

/// Finds the delay of a sound from being handed over for playback to its return at the microphone.
///
/// It correlates both at 4 kHz, with stationary parts of their spectra reduced, and forgets with a time constant of two
/// seconds. Works in fixed memory; each frame of 10 ms costs 100 000 multiplications.
struct EchoDelayFinder: ~Copyable {
    /// 48 kHz to 4 kHz.
    static let decimation = 12
    /// Longest delay found: 600 ms, in samples at 4 kHz.
    static let lagCount = 2_400
    private static let frame = 40

    /// Frames after which what was played is moved to the front of its memory: as many as it keeps.
    private static let framesKept = lagCount / frame

    /// The last 600 ms and this frame, oldest first, from `window` on.
    private var played = FloatBuffer(capacity: Self.lagCount + Self.framesKept * Self.frame)
    private var window = -Self.frame
    /// By lag, the longest first, so that neighbours in it meet neighbours in `played`.
    private var correlation = FloatBuffer(capacity: Self.lagCount)
    private var heard = InlineArray<40, Float>(repeating: 0)
    private var lastPlayed: Float = 0
    private var lastHeard: Float = 0
    private var playedPower: Float = 0
    private var heardPower: Float = 0
    private var agreement = 0
    private var candidate = -1

    /// Takes 480 samples of each; the delay in samples at 48 kHz when it has become certain, or is again; −1 otherwise.
    @_noAllocation @_noLocks
    mutating func add(played newPlayed: Span<Int16>, heard newHeard: inout MutableSpan<Int16>) -> Int {
        var loudness: Float = 0
        moveWindow()
        for index in 0..<Self.frame {
            var (playedSum, heardSum): (Int32, Int32) = (0, 0)
            for place in index * Self.decimation..<(index + 1) * Self.decimation {
                playedSum &+= Int32(newPlayed[place])
                heardSum &+= Int32(newHeard[place])
            }
            let playedValue = Float(playedSum) / Float(Self.decimation)
            let heardValue = Float(heardSum) / Float(Self.decimation)
            // A difference flattens speech, whose long waves would make a broad hill of the peak.
            let sharpPlayed = playedValue - 0.9 * lastPlayed
            heard[index] = heardValue - 0.9 * lastHeard
            (lastPlayed, lastHeard) = (playedValue, heardValue)
            played[window &+ Self.lagCount &+ index] = sharpPlayed
            loudness += sharpPlayed * sharpPlayed
            heardPower += heard[index] * heard[index]
        }
        playedPower = playedPower * Self.memory + loudness
        heardPower *= Self.memory
        // From silence nothing can be learned.
        guard playedPower > 200 * 40 * 100 else { return -1 }
        return judge(correlate())
    }

    private static let memory: Float = 0.995

    /// Makes room for one more frame.
    @_noAllocation @_noLocks
    private mutating func moveWindow() {
        window &+= Self.frame
        guard window &+ Self.lagCount &+ Self.frame > played.capacity else { return }
        played.shift(by: window)
        window = 0
    }

    /// Adds this frame to the correlation; returns the position of its peak and how much the peak's power exceeds the
    /// rest.
    @_noAllocation @_noLocks
    private mutating func correlate() -> (lag: Int, prominence: Float) {
        correlation.scale(by: Self.memory)
        var index = 0
        while index < Self.frame {
            correlation.add(played, from: window &+ index &+ 1, times: heard[index])
            index &+= 1
        }
        var best = (place: 0, value: Float(0))
        var total: Float = 0
        var place = 0
        while place < Self.lagCount {
            let value = correlation[place].magnitude
            total += value * value
            if value > best.value { best = (place, value) }
            place &+= 1
        }
        let typical = total / Float(Self.lagCount)
        return (Self.lagCount &- 1 &- best.place, typical > 0 ? best.value * best.value / typical : 0)
    }

    /// A delay is certain once it has been the same for 300 ms with a clear peak.
    @_noAllocation @_noLocks
    private mutating func judge(_ found: (lag: Int, prominence: Float)) -> Int {
        guard found.prominence > 36 else {
            agreement = 0
            return -1
        }
        agreement = (found.lag - candidate).magnitude <= 1 ? agreement + 1 : 0
        candidate = found.lag
        return agreement >= 30 ? found.lag * Self.decimation : -1
    }
}
