/// Remembers what the decision to stretch sound depends on, and stretches it: how loud it is, how long ago it was stretched,
/// and since when the delay is off its target.
struct StretchControl {
    private var loudness = LoudnessTracker()
    private var samplesSinceStretch = 0
    /// Samples handed out since the delay was last on target.
    private(set) var samplesOffTarget = 0
    /// In this pull.
    private var hasListened = false
    private var hasStretched = false

    @_noAllocation @_noLocks
    mutating func beginPull() {
        hasStretched = false
        hasListened = false
    }

    /// Ends a pull of `count` samples.
    @_noAllocation @_noLocks
    mutating func endPull(_ count: Int) {
        samplesSinceStretch &+= count
        samplesOffTarget &+= count
    }

    /// Completes a status that says how much sound waits and how far the delay is off its target.
    @_noAllocation @_noLocks
    mutating func describe(_ samples: borrowing SyncBuffer, _ status: inout PlayoutStatus) {
        status.samplesSinceStretch = samplesSinceStretch
        status.samplesOffTarget = samplesOffTarget
        status.hasStretched = hasStretched
        if abs(status.excessSamples) < PlayoutPolicy.shortestStretch { samplesOffTarget = 0 }
        if status.waitingSamples >= status.frameSamples, !hasListened {
            hasListened = true
            loudness.listen(to: samples)
        }
        status.isQuiet = loudness.isQuiet
        status.isSilent = loudness.isSilent
    }

    /// Removes at most `most` samples.
    ///
    /// - Returns: How many were removed.
    @_noAllocation @_noLocks
    mutating func accelerate(_ samples: inout SyncBuffer, atMost most: Int) -> Int {
        noteStretch()
        let threshold: Float = loudness.isQuiet ? -1 : 0.6
        return TimeStretch.accelerate(&samples, atMost: most, threshold: threshold)
    }

    /// Inserts at least `shortest` samples, or none.
    ///
    /// - Returns: How many were inserted.
    @_noAllocation @_noLocks
    mutating func decelerate(_ samples: inout SyncBuffer, atLeast shortest: Int) -> Int {
        noteStretch()
        let threshold: Float = shortest > 0 || loudness.isQuiet ? -1 : 0.6
        return TimeStretch.decelerate(&samples, atLeast: shortest, threshold: threshold)
    }

    @_noAllocation @_noLocks
    private mutating func noteStretch() {
        hasStretched = true
        samplesSinceStretch = 0
    }
}

/// Tracks how loud the talker is, and so what counts as a pause between words.
struct LoudnessTracker {
    /// Mean square of speech: rises within a syllable, falls over seconds.
    private var speechPower: Float = 0
    /// Mean square below which sound is hardly audible: −66 dBFS.
    private static var quietPower: Float { @_noAllocation @_noLocks get { 270 } }
    /// Quiet is this much below speech: 26 dB.
    private static var quietRatio: Float { @_noAllocation @_noLocks get { 0.0025 } }
    /// Mean square below which sound is inaudible: −75 dBFS.
    private static var silentPower: Float { @_noAllocation @_noLocks get { 30 } }
    /// Silence is this much below speech: 45 dB.
    private static var silentRatio: Float { @_noAllocation @_noLocks get { 0.00003 } }

    /// Whether the last measured sound is so far below speech that it is a pause, or a closure within a word.
    private(set) var isQuiet = true
    /// Whether it is a pause without anything in it.
    private(set) var isSilent = true

    /// Listens to what waits in `buffer`, about to be played.
    @_noAllocation @_noLocks
    mutating func listen(to buffer: borrowing SyncBuffer) {
        guard buffer.count > 0 else { return }
        // Every fourth sample is enough.
        var sum: Int64 = 0
        var index = 0
        while index < buffer.count {
            let value = Int64(buffer[index])
            sum &+= value &* value
            index &+= 4
        }
        let power = 4 * Float(sum) / Float(index)
        speechPower += (power - speechPower) * (power > speechPower ? 0.2 : 0.003)
        isQuiet = power < max(Self.quietPower, speechPower * Self.quietRatio)
        isSilent = power < max(Self.silentPower, speechPower * Self.silentRatio)
    }
}
