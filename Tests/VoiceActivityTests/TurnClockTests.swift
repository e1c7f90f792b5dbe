import Testing

@testable import VoiceActivity

@Suite("Response times")
struct TurnClockTests {
    private func events(_ kind: VoiceEvent.Kind, at position: Int, now: Int) -> VoiceEvents {
        var result = VoiceEvents()
        result.append(VoiceEvent(kind, at: position, decidedAt: now))
        return result
    }

    private func send(_ clock: inout TurnClock, _ samples: [Int16], from start: Int) -> [AnsweredTurn] {
        samples.enumerated().compactMap { clock.send($1, now: start + $0) }
    }

    @Test("The response time is exact to the sample, from the end of speech to the first sound that is no silence")
    func exact() {
        var clock = TurnClock(rateHz: 8_000)
        clock.setPathDelay(samples: 400)
        _ = clock.follow(events(.confirmed, at: 1_000, now: 2_000))
        #expect(clock.follow(events(.ended, at: 8_000, now: 10_400)) == nil)
        let quiet: [Int16] = [0, 32, -32, 0]
        #expect(send(&clock, quiet, from: 12_000).isEmpty)
        let turns = send(&clock, [-33, 500, 400], from: 12_004)
        #expect(turns == [AnsweredTurn(speechEnd: 8_000, answer: 12_004, response: 4_404)])
        #expect(send(&clock, [500, 500], from: 12_007).isEmpty)
        #expect(clock.times.count == 1)
    }

    @Test("An answer that begins before the end of speech is certain is measured all the same")
    func quickAnswer() {
        var clock = TurnClock(rateHz: 8_000)
        #expect(send(&clock, [900], from: 8_800).isEmpty)
        let turn = clock.follow(events(.ended, at: 8_000, now: 10_400))
        #expect(turn == AnsweredTurn(speechEnd: 8_000, answer: 8_800, response: 800))
    }

    @Test("A bot that speaks when the caller's speech ends has not answered: it is counted as an overlap")
    func overlap() {
        var clock = TurnClock(rateHz: 8_000)
        for start in stride(from: 4_000, to: 9_000, by: 100) { _ = clock.send(700, now: start) }
        #expect(clock.follow(events(.ended, at: 8_000, now: 10_400)) == nil)
        #expect(send(&clock, [800], from: 20_000).isEmpty)
        #expect(clock.overlaps == 1 && clock.times.count == 0)
    }

    @Test("A caller who continues before an answer comes starts a new turn")
    func callerContinues() {
        var clock = TurnClock(rateHz: 8_000)
        _ = clock.follow(events(.ended, at: 8_000, now: 10_400))
        _ = clock.follow(events(.confirmed, at: 12_000, now: 14_000))
        #expect(clock.unansweredTurns == 1)
        _ = clock.follow(events(.ended, at: 20_000, now: 22_400))
        #expect(send(&clock, [100], from: 24_000).map(\.response) == [4_000])
    }

    @Test("P50 and P95 are right to 3 %, for times from a millisecond to a minute")
    func percentiles() {
        for scale in [1, 20, 600] {
            var times = ResponseTimes(rateHz: 48_000)
            for value in 1...100 { times.add(value * scale * 48) }
            for percent in [50, 95, 100] {
                let error = abs(times.percentile(percent) - percent * scale * 48)
                #expect(error <= max(48, percent * scale * 48 * 3 / 100))
            }
        }
        let empty = ResponseTimes(rateHz: 8_000)
        #expect(empty.percentile(50) == 0)
    }

    @Test("Negative and endless times are kept in range")
    func extremes() {
        var times = ResponseTimes(rateHz: 8_000)
        for value in [-5, 0, Int.max / 2_000] { times.add(value) }
        #expect(times.count == 3 && times.percentile(1) == 0)
    }
}
