import RTP
import Testing
import Core

@Suite("Which lost packets are asked for again")
struct RetransmissionRequestTests {
    private static func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }
    private static let trip: Int64 = 30_000_000

    @Test("A packet is asked for only if it can be there in time, and never before a round trip is known")
    func inTime() {
        var requests = RetransmissionRequests()
        let unknown = requests.ask(for: 1, nanosecondsLeft: 1_000_000_000, roundTrip: nil, at: Self.at(0))
        let late = requests.ask(for: 1, nanosecondsLeft: 49_999_999, roundTrip: Self.trip, at: Self.at(0))
        let early = requests.ask(for: 1, nanosecondsLeft: 50_000_000, roundTrip: Self.trip, at: Self.at(0))
        #expect(!unknown && !late && early, "the round trip, and a frame for the peer to answer")
    }

    @Test("It is asked for once more when the answer is overdue, and then no more")
    func repeats() {
        var requests = RetransmissionRequests()
        var asked: [Int64] = []
        for time in stride(from: Int64(0), to: 400, by: 10)
        where requests.ask(for: 7, nanosecondsLeft: 500_000_000, roundTrip: Self.trip, at: Self.at(time)) {
            asked.append(time)
        }
        #expect(asked == [0, 50])
    }

    @Test("How long the peer takes is learnt from what it sends, and late packets do not count")
    func answers() {
        var requests = RetransmissionRequests()
        for number in UInt16(0)..<40 {
            let time = Int64(number) * 100
            _ = requests.ask(for: number, nanosecondsLeft: 200_000_000, roundTrip: Self.trip, at: Self.at(time))
            let isRepair = requests.received(number, roundTrip: Self.trip, at: Self.at(time + 36))
            #expect(isRepair)
            for other in UInt16(1_000)..<1_003 {
                _ = requests.received(other, roundTrip: Self.trip, at: Self.at(time + 40))
            }
        }
        let learnt = requests.answerNanoseconds(roundTrip: Self.trip) ?? 0
        #expect((36_000_000...37_000_000).contains(learnt))
        _ = requests.ask(for: 100, nanosecondsLeft: 200_000_000, roundTrip: Self.trip, at: Self.at(5_000))
        let tooSoon = requests.received(100, roundTrip: Self.trip, at: Self.at(5_010))
        let unasked = requests.received(101, roundTrip: Self.trip, at: Self.at(5_040))
        #expect(!tooSoon && !unasked)
    }

    @Test("No more than one packet is asked for with every four that come, after a burst of sixteen")
    func bounds() {
        var requests = RetransmissionRequests()
        var asked = 0
        for number in UInt16(0)..<400 {
            if requests.ask(
                for: number &* 2, nanosecondsLeft: 200_000_000, roundTrip: Self.trip, at: Self.at(Int64(number)))
            {
                asked += 1
            }
            _ = requests.received(number &* 2 + 1, roundTrip: Self.trip, at: Self.at(Int64(number)))
        }
        #expect((100...116).contains(asked))
    }

    @Test("A peer that answers nothing is not waited for, and is tried again after a while")
    func silence() {
        var requests = RetransmissionRequests()
        for number in UInt16(0)..<8 {
            _ = requests.ask(for: number, nanosecondsLeft: 200_000_000, roundTrip: Self.trip, at: Self.at(0))
        }
        #expect(!requests.isAnswered(at: Self.at(5_000)))
        #expect(requests.isAnswered(at: Self.at(10_000)))
        _ = requests.ask(for: 50, nanosecondsLeft: 200_000_000, roundTrip: Self.trip, at: Self.at(10_000))
        #expect(requests.isAnswered(at: Self.at(10_100)))
    }
}
