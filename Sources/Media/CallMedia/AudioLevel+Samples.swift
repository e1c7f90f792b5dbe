internal import RTP

extension AudioLevel {
    /// The level of a packet without sound.
    static var silence: AudioLevel { @_noAllocation @_noLocks get { AudioLevel(attenuation: 127, isVoice: false) } }

    /// Measures a frame. Anything louder than a quiet room counts as a voice: nothing here distinguishes voices from
    /// noise.
    @_noAllocation @_noLocks
    init(of samples: borrowing Span<Int16>) {
        var sum: Int64 = 0
        for index in 0..<samples.count {
            let value = Int64(samples[index])
            sum &+= value &* value
        }
        self.init(meanSquare: Double(sum) / Double(max(1, samples.count)), isVoice: false)
        isVoice = attenuation < 60
    }
}
