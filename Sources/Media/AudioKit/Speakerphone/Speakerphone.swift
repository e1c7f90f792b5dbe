internal import Glibc

/// Processes the sound of a microphone near a loudspeaker for the caller: removes echo and noise, and controls the
/// gain.
///
/// Frames of 10 ms. Playback and capture may have different clocks: the reference is kept aligned with the echo for
/// differences up to about 60 ppm; larger ones should be corrected before. A delay that jumps (an underrun of the card)
/// is found again within one or two seconds of far speech; then the reference is moved and the canceller adapts again.
public struct SpeakerphoneProcessor: ~Copyable, Sendable {
    /// Samples in a frame: 10 ms at 48 kHz.
    public static let frameSamples = 480

    private var canceller: EchoCanceller
    private var finder = EchoDelayFinder()
    private var follower = ReferenceFollower()
    private var played = SampleHistory(minimumCount: 32_768)
    private var settings: SpeakerphoneSettings
    private var referenceDelay: Int
    private var powers = Powers()
    private var echoDelay = -1
    private var realignments = 0
    private var frames = 0

    /// Samples by which what comes out is later than what went in: the preprocessor's frames overlap by half, and so it
    /// gives back the frame before. With all parts off nothing is late.
    public var delaySamples: Int {
        @_noAllocation @_noLocks get { settings.hasAny ? Self.frameSamples : 0 }
    }

    /// How it goes.
    public var statistics: SpeakerphoneStatistics {
        var told = SpeakerphoneStatistics()
        if powers.isKnown {
            told.echoCouplingDB = Self.decibels(powers.captured, powers.played)
            told.echoReturnLossEnhancementDB = Self.decibels(powers.captured, powers.sent)
        }
        told.echoDelaySamples = echoDelay < 0 ? nil : echoDelay
        told.realignments = realignments
        told.driftPPM = follower.rate / Double(Self.frameSamples) * 1e6
        told.frames = frames
        return told
    }

    /// Mean squares, slowly averaged while the far end speaks.
    private struct Powers {
        var played = 0.0
        var captured = 0.0
        var sent = 0.0
        var isKnown = false
    }

    /// Takes all the memory that it will ever need.
    ///
    /// - Parameter echoDelaySamples: Estimate of the delay from here to the loudspeaker and from the microphone back to
    ///   here, 0…28 800; if it is wrong, the delay is found automatically.
    public init(_ settings: SpeakerphoneSettings = SpeakerphoneSettings(), echoDelaySamples: Int = 0)
        throws(SpeakerphoneError)
    {
        canceller = try EchoCanceller(tailMilliseconds: settings.echoTailMilliseconds)
        self.settings = settings
        referenceDelay = min(28_800, max(Self.leastDelay, echoDelaySamples - Self.lead))
        canceller.apply(settings)
    }

    /// The echo is kept this far behind the beginning of the canceller's window: it may come a little earlier, too.
    private static let lead = 240
    /// The reference must be at least this old, in samples, so that the follower can move.
    private static let leastDelay = 64

    /// Switches parts on and off; the echo's tail stays as it was made. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func apply(_ settings: SpeakerphoneSettings) {
        self.settings = settings
        canceller.apply(settings)
    }

    /// Processes a frame in place. Real-time safe.
    ///
    /// - Parameters:
    ///   - captured: 480 samples from the microphone.
    ///   - playback: The 480 samples that the loudspeaker played in the same time, or a little earlier than it did.
    @_noAllocation @_noLocks
    public mutating func process(_ captured: inout MutableSpan<Int16>, playback: Span<Int16>) {
        // Counts are taken out first: spans cannot be reached from an autoclosure on this path.
        let (count, playedCount) = (captured.count, playback.count)
        precondition(count == Self.frameSamples && playedCount == Self.frameSamples, "frames have 480 samples")
        frames += 1
        for index in 0..<Self.frameSamples { played.append(playback[index]) }
        guard settings.hasAny else { return }
        guard settings.echoCancellation else {
            canceller.preprocess(&captured)
            return
        }
        let heard = Self.power(&captured)
        let delay = finder.add(played: playback, heard: &captured)
        if delay >= 0 { align(delay) }
        let playing = canceller.setReference(played, delay: referenceDelay, following: &follower)
        follower.follow(&captured)
        follower.keep(notBefore: ReferenceFollower.leastDelay - referenceDelay)
        canceller.cancel(&captured)
        // The preprocessor reduces the remaining echo further, by its estimate of it.
        canceller.preprocess(&captured)
        let gain = settings.gainControl ? canceller.gainOfPower() : 1
        measure(playing: playing, heard: heard, sent: Self.power(&captured) / max(1e-3, gain))
    }

    /// Moves the reference when the delay is found to be another one.
    @_noAllocation @_noLocks
    private mutating func align(_ delay: Int) {
        echoDelay = delay
        // Within the first third of the window the canceller manages by itself.
        let place = delay - referenceDelay - Int(follower.shift)
        let room = settings.echoTailMilliseconds * 16
        guard place < 24 || place > room else {
            if !follower.isFollowing { follower.expect(lag: place) }
            return
        }
        let wanted = min(28_800, max(Self.leastDelay, delay - Self.lead))
        // The follower's shift is undone too.
        guard wanted != referenceDelay || follower.shift > 12 || follower.shift < -12 else { return }
        follower.forget()
        referenceDelay = wanted
        realignments += 1
        powers.isKnown = false
        canceller.reset()
    }

    /// A second.
    private static let memory = 0.99

    @_noAllocation @_noLocks
    private mutating func measure(playing: Double, heard: Double, sent: Double) {
        // −60 dBFS: below it echo does not matter.
        guard playing > 550 else { return }
        let memory = powers.isKnown ? Self.memory : 0
        powers.played = powers.played * memory + playing * (1 - memory)
        powers.captured = powers.captured * memory + heard * (1 - memory)
        powers.sent = powers.sent * memory + sent * (1 - memory)
        powers.isKnown = true
    }

    @_noAllocation @_noLocks
    private static func power(_ samples: inout MutableSpan<Int16>) -> Double {
        var sum: Int64 = 0
        for index in 0..<samples.count { sum &+= Int64(samples[index]) &* Int64(samples[index]) }
        return Double(sum) / Double(samples.count)
    }

    private static func decibels(_ power: Double, _ reference: Double) -> Double {
        10 * log10(max(1, power) / max(1, reference))
    }
}
