import Testing

@testable import VoiceActivity

@Suite("Barge-in")
struct BargeInTests {
    private func events(_ kinds: VoiceEvent.Kind..., at position: Int = 0, now: Int) -> VoiceEvents {
        var result = VoiceEvents()
        for kind in kinds { result.append(VoiceEvent(kind, at: position, decidedAt: now)) }
        return result
    }

    @Test("An onset lowers the bot, a confirmation stops it, and the report has both positions of its sound")
    func stop() {
        var bargeIn = BargeIn(rateHz: 8_000)
        let lowered = bargeIn.follow(events(.onset, now: 800), isPlaying: true, played: 5_000, now: 800)
        #expect(lowered == .lowered && bargeIn.gain == BargeIn.loweredGain)
        let between = bargeIn.follow(events(now: 960), isPlaying: true, played: 5_160, now: 960)
        #expect(between == .none)
        let stopped = bargeIn.follow(events(.confirmed, now: 2_400), isPlaying: true, played: 6_600, now: 2_400)
        #expect(stopped == .stopped(BargeInStop(loweredAt: 5_000, stoppedAt: 6_600)))
        #expect(bargeIn.gain == 0 && bargeIn.stops == 1 && bargeIn.dips == 1 && bargeIn.falseDips == 0)
        bargeIn.clear()
        #expect(bargeIn.gain == 1)
    }

    @Test("A retracted onset restores the bot and is counted")
    func falseDip() {
        var bargeIn = BargeIn(rateHz: 8_000)
        _ = bargeIn.follow(events(.onset, now: 800), isPlaying: true, played: 0, now: 800)
        let restored = bargeIn.follow(events(.retracted, now: 1_600), isPlaying: true, played: 800, now: 1_600)
        #expect(restored == .restored && bargeIn.gain == 1)
        #expect(bargeIn.dips == 1 && bargeIn.falseDips == 1 && bargeIn.stops == 0)
    }

    @Test("After 350 ms without certainty the bot is restored; a late confirmation still stops it")
    func patience() {
        var bargeIn = BargeIn(rateHz: 8_000)
        _ = bargeIn.follow(events(.onset, now: 800), isPlaying: true, played: 0, now: 800)
        let early = bargeIn.follow(events(now: 3_599), isPlaying: true, played: 2_799, now: 3_599)
        let due = bargeIn.follow(events(now: 3_600), isPlaying: true, played: 2_800, now: 3_600)
        #expect(early == .none && due == .restored && bargeIn.falseDips == 1)
        let late = bargeIn.follow(events(.confirmed, now: 4_000), isPlaying: true, played: 3_200, now: 4_000)
        #expect(late == .stopped(BargeInStop(loweredAt: 0, stoppedAt: 3_200)))
        #expect(bargeIn.falseDips == 0 && bargeIn.stops == 1)
    }

    @Test("Speech that began while the bot was silent neither lowers nor stops what the bot says later")
    func botSilent() {
        var bargeIn = BargeIn(rateHz: 8_000)
        let onset = bargeIn.follow(events(.onset, now: 800), isPlaying: false, played: 0, now: 800)
        let confirmed = bargeIn.follow(events(.confirmed, now: 2_400), isPlaying: true, played: 100, now: 2_400)
        #expect(onset == .none && confirmed == .none && bargeIn.dips == 0 && bargeIn.stops == 0)
    }

    @Test("A bot that ends by itself while lowered is not stopped, and its next sound has full level")
    func botEnds() {
        var bargeIn = BargeIn(rateHz: 8_000)
        _ = bargeIn.follow(events(.onset, now: 800), isPlaying: true, played: 0, now: 800)
        let confirmed = bargeIn.follow(events(.confirmed, now: 2_400), isPlaying: false, played: 900, now: 2_400)
        #expect(confirmed == .passed && bargeIn.gain == 1 && bargeIn.stops == 0 && bargeIn.falseDips == 0)
        // What was no speech is another matter: the caller has not heard the last word at its level.
        var other = BargeIn(rateHz: 8_000)
        _ = other.follow(events(.onset, now: 800), isPlaying: true, played: 0, now: 800)
        let retracted = other.follow(events(.retracted, now: 2_400), isPlaying: false, played: 900, now: 2_400)
        #expect(retracted == .restored)
    }

    @Test("Onset and retraction in one frame of 60 ms change nothing, and are counted")
    func oneFrame() {
        var bargeIn = BargeIn(rateHz: 8_000)
        let both = bargeIn.follow(events(.onset, .retracted, now: 800), isPlaying: true, played: 0, now: 800)
        #expect(both == .none && bargeIn.dips == 1 && bargeIn.falseDips == 1)
    }

    @Test("The level falls by 20 dB within 5 ms and returns within 5 ms; then every sample is as it was")
    func slope() {
        for rateHz in [8_000, 16_000, 24_000, 48_000] {
            var slope = GainSlope(rateHz: rateHz)
            let input = (0..<rateHz / 10).map { Int16(truncatingIfNeeded: $0 * 37) }
            var output: [Int16] = []
            for target in [1, 0.1, 1, 1] as [Float] {
                var frame = input
                var room = frame.mutableSpan
                slope.apply(target, to: &room)
                output += frame
            }
            let edge = rateHz / 200 + 1
            let lowered = output[input.count + edge..<2 * input.count]
            #expect(zip(lowered, input[edge...]).allSatisfy { abs(Float($0) - Float($1) / 10) <= 1 })
            #expect(Array(output[..<input.count]) == input)
            #expect(output[(2 * input.count + edge)..<3 * input.count].elementsEqual(input[edge...]))
            #expect(Array(output[(3 * input.count)...]) == input)
        }
    }
}
