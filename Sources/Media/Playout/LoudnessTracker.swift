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
