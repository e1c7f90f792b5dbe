import Testing

@testable import VoiceActivity

@Suite("Turn-taking of a call")
struct TurnTakingTests {
    /// A call in virtual time: the bot says `said` until it is stopped; the caller's sound is `heard`.
    private struct Call {
        var sent: [Int16] = []
        var stop: BargeInStop?
        var decisions: [(decision: BargeInDecision, at: Int)] = []

        init(said: [Int16], heard: [Int16], interrupts: Bool = true, frame: Int = 160) {
            var turns = TurnTaking(rateHz: 8_000, interrupts: interrupts)
            var played = 0
            for start in stride(from: 0, through: heard.count - frame, by: frame) {
                let isPlaying = stop == nil && played + frame <= said.count
                var sending = isPlaying ? Array(said[played..<played + frame]) : [Int16](repeating: 0, count: frame)
                var room = sending.mutableSpan
                let report = turns.run(
                    received: heard.span.extracting(start..<start + frame), sending: &room, isPlaying: isPlaying,
                    played: played)
                sent += sending
                if isPlaying { played += frame }
                if report.bargeIn != .none { decisions.append((report.bargeIn, start + frame)) }
                if case .stopped(let stopped) = report.bargeIn {
                    stop = stopped
                    turns.clear()
                }
            }
        }
    }

    /// Ten seconds of a bot at 8 kHz that never pauses.
    private let bot = (0..<80_000).map { Int16($0 % 73 < 36 ? 2_000 : -2_000) }

    @Test("The caller's speech lowers the bot within 150 ms, P95, silences it within 400 ms, P50, and tells where")
    func bargeIn() throws {
        var lowered: [Int] = []
        var silent: [Int] = []
        for seed in 31...42 as ClosedRange<UInt64> {
            let speech = CallScene.speech(seed: seed, seconds: 2)
            let quiet = CallScene.noise(seed: seed, count: 12_000, amplitude: 8)
            let heard = CallScene.sum(
                quiet + CallScene.noise(seed: seed + 1, count: speech.count, amplitude: 8), speech, at: 12_000)
            let onset = 12_000 + (try #require(CallScene.onsets(speech).first))
            let call = Call(said: bot, heard: heard)
            lowered.append((call.decisions.first { $0.decision == .lowered }?.at ?? .max / 2) + 40 - onset)
            let stop = try #require(call.stop, "seed \(seed)")
            // A frame that is sent with a received one is heard after it.
            silent.append(stop.stoppedAt + 160 + 40 - onset)
            #expect(call.sent[(stop.stoppedAt + 41)...].allSatisfy { $0 == 0 })
            #expect(Array(call.sent[..<stop.loweredAt]) == Array(bot[..<stop.loweredAt]))
        }
        #expect(percentile(lowered, 95) <= 150 * 8, "\(lowered.sorted())")
        #expect(percentile(silent, 50) <= 400 * 8, "\(silent.sorted())")
    }

    @Test("Bursts of noise stop nothing; what is sent is the bot's sound, sample by sample, but for its level in dips")
    func nothingLost() {
        var heard = CallScene.noise(seed: 1, count: bot.count, amplitude: 8)
        for start in stride(from: 8_000, to: bot.count, by: 8_000) {
            let burst = CallScene.noise(seed: UInt64(start), count: 1_200, amplitude: 9_000)
            heard = CallScene.sum(heard, burst, at: start)
        }
        let call = Call(said: bot, heard: heard)
        #expect(call.stop == nil)
        #expect(call.sent.count == bot.count)
        let levels = zip(call.sent, bot).map { (abs(Int($0)), abs(Int($1))) }
        #expect(levels.allSatisfy { $0 <= $1 && $0 * 10 >= $1 - 10 })
        #expect(call.sent.suffix(800) == bot.suffix(800))
    }

    @Test("A call that leaves turns to its program changes no sample")
    func off() {
        let heard = CallScene.speech(seed: 1, seconds: 5)
        let call = Call(said: bot, heard: heard, interrupts: false)
        #expect(call.decisions.isEmpty && call.sent == Array(bot[..<call.sent.count]))
    }
}
