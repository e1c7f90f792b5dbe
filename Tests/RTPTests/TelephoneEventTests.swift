import RTP
import TestSupport
import Testing
import Core

@Suite("Telephone events")
struct TelephoneEventTests {
    @Test("Every key has its code, and every code its key", arguments: zip(Array("0123456789*#ABCD!"), 0...16))
    func keys(key: Character, code: Int) {
        #expect(TelephoneEvent(key)?.code == UInt8(code))
        #expect(TelephoneEvent(code: UInt8(code)).key == key)
        #expect(TelephoneEvent(Character(key.lowercased()))?.code == UInt8(code))
    }

    @Test("Other letters are no keys")
    func noKeys() {
        for key in ["e", "x", " ", "٣", "½", "+"] as [Character] { #expect(TelephoneEvent(key) == nil) }
        #expect(TelephoneEvent(code: 17).key == nil)
    }

    @Test("The payload of RFC 4733 §2.3 is written and read, and cut at any length it is none")
    func payload() {
        let payload = TelephoneEventPayload(event: .flash, isEnd: true, volume: 99, duration: 0x1234)
        let bytes = TelephoneEventTests.bytes(payload)
        #expect(bytes == [16, 0xBF, 0x12, 0x34])
        #expect(TelephoneEventPayload(0..<4, of: bytes) == payload)
        for length in 0..<4 { #expect(TelephoneEventPayload(0..<length, of: Array(bytes.prefix(length))) == nil) }
        #expect(TelephoneEventPayload(0..<6, of: bytes + [1, 2]) == payload)
        #expect(TelephoneEventPayload(2..<9, of: bytes) == nil)
    }

    static func bytes(_ payload: TelephoneEventPayload) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4)
        let count = bytes.write { payload.write(into: &$0) }
        return Array(bytes.prefix(count))
    }

    private func packets(_ sender: inout TelephoneEventSender, ticks: Int, limit: Int = 2_000)
        -> [(step: Int, packet: TelephoneEventSender.Packet)]
    {
        var found: [(step: Int, packet: TelephoneEventSender.Packet)] = []
        var step = 0
        while sender.isActive, step < limit {
            if let packet = sender.next(at: UInt32(truncatingIfNeeded: step * ticks)) { found.append((step, packet)) }
            step += 1
        }
        return found
    }

    @Test(
        "A key of 100 ms is five packets of growing duration and two repetitions of the last, at both clock rates",
        arguments: [
            8_000, 48_000,
        ])
    func oneKey(clockRate: Int) {
        var sender = TelephoneEventSender(.init(clockRate: clockRate))
        #expect(!sender.isActive && sender.next(at: 0) == nil)
        sender.press(TelephoneEvent(code: 5))
        let ticks = clockRate / 50
        let sent = packets(&sender, ticks: ticks).map(\.packet)
        #expect(sent.map { Int($0.payload.duration) } == [1, 2, 3, 4, 5, 5, 5].map { $0 * ticks })
        #expect(sent.map(\.payload.isEnd) == [false, false, false, false, true, true, true])
        #expect(sent.map(\.marker) == [true, false, false, false, false, false, false])
        #expect(sent.allSatisfy { $0.timestamp == 0 && $0.payload.event.code == 5 })
    }

    @Test("Keys wait for one another with a pause between, and the queue refuses the thirty-third")
    func queue() {
        var sender = TelephoneEventSender(.init(clockRate: 8_000))
        let taken = (0..<33).map { sender.press(TelephoneEvent(code: UInt8($0 % 16))) }
        #expect(taken == [Bool](repeating: true, count: 32) + [false])
        #expect(sender.dropped == 1)
        let sent = packets(&sender, ticks: 160)
        #expect(sent.count == 32 * 7)
        let starts = sent.filter(\.packet.marker)
        #expect(starts.map(\.packet.payload.event.code) == (0..<32).map { UInt8($0 % 16) })
        // 100 ms of tone and 80 ms of pause are nine packet times.
        #expect(zip(starts, starts.dropFirst()).allSatisfy { $1.step - $0.step >= 9 && $1.step - $0.step <= 10 })
    }

    @Test("A key longer than a duration can express continues in segments, and the end comes once")
    func segments() {
        var configuration = TelephoneEventSender.Configuration(clockRate: 48_000)
        configuration.toneMilliseconds = 3_000
        var sender = TelephoneEventSender(configuration)
        var receiver = TelephoneEventReceiver()
        sender.press(TelephoneEvent(code: 11))
        let sent = packets(&sender, ticks: 960)
        #expect(Set(sent.map(\.packet.timestamp)).count == 3)
        #expect(sent.filter(\.packet.marker).count == 1 && sent.filter(\.packet.payload.isEnd).count == 3)
        var began = 0
        var finished: [TelephoneEventReceiver.Finished] = []
        for (step, packet) in sent {
            let now = Instant(nanoseconds: Int64(step) * 20_000_000)
            let outcome = receiver.receive(
                packet.payload, number: Int64(step), timestamp: packet.timestamp, ssrc: 1, at: now)
            if outcome.began != nil { began += 1 }
            if let one = outcome.finished { finished.append(one) }
            #expect(outcome.lost == nil)
        }
        #expect(began == 1 && finished.count == 1)
        #expect(finished.first?.durationTicks == 144_000 && finished.first?.endWasLost == false)
    }

    @Test("A key that is cancelled ends with its next packet, and what waits is forgotten")
    func cancel() {
        var sender = TelephoneEventSender(.init(clockRate: 8_000))
        sender.press(TelephoneEvent(code: 1))
        sender.press(TelephoneEvent(code: 2))
        _ = sender.next(at: 0)
        sender.cancel()
        let sent = packets(&sender, ticks: 160).map(\.packet.payload)
        #expect(sent.map(\.isEnd) == [true, true, true] && sent.allSatisfy { $0.event.code == 1 })
        #expect(!sender.isActive)
    }

    @Test("For any lost packets, a key is reported once if any of its packets comes", arguments: 0..<128)
    func losses(mask: Int) {
        var sender = TelephoneEventSender(.init(clockRate: 8_000))
        sender.press(TelephoneEvent(code: 3))
        var receiver = TelephoneEventReceiver()
        var began = 0
        var over = 0
        for (step, packet) in packets(&sender, ticks: 160) where step < 7 && mask >> step & 1 == 1 {
            let now = Instant(nanoseconds: Int64(step) * 20_000_000)
            let outcome = receiver.receive(
                packet.payload, number: Int64(step), timestamp: packet.timestamp, ssrc: 1, at: now)
            if outcome.began != nil { began += 1 }
            if outcome.finished != nil { over += 1 }
        }
        if let deadline = receiver.nextDeadline {
            #expect(receiver.expire(at: Instant(nanoseconds: deadline.nanoseconds - 1)) == nil)
            #expect(receiver.expire(at: deadline)?.endWasLost == true)
            over += 1
        }
        #expect(began == (mask == 0 ? 0 : 1) && over == began)
        #expect(receiver.nextDeadline == nil)
    }

    /// A receiver that counts in whole packets of 20 ms at 8 000 ticks a second.
    private struct Ear {
        var receiver = TelephoneEventReceiver()
        var ssrc: UInt32 = 1
        var keys = ""
        var lengths: [Int] = []

        @discardableResult
        mutating func take(_ code: UInt8, _ duration: UInt16, _ timestamp: UInt32, number: Int64, end: Bool = false)
            -> TelephoneEventReceiver.Outcome
        {
            let now = Instant(nanoseconds: number * 20_000_000)
            if let finished = receiver.expire(at: now) { note(finished) }
            let outcome = receiver.receive(
                .init(event: TelephoneEvent(code: code), isEnd: end, volume: 10, duration: duration), number: number,
                timestamp: timestamp, ssrc: ssrc, at: now)
            if let finished = outcome.lost { note(finished) }
            if let finished = outcome.finished { note(finished) }
            return outcome
        }

        /// A key as RFC 4733 has it: five packets and two repetitions of the last.
        mutating func press(_ code: UInt8, _ timestamp: UInt32, from number: Int64) {
            for step in 0..<7 {
                take(code, UInt16(160 * min(step + 1, 5)), timestamp, number: number + Int64(step), end: step >= 4)
            }
        }

        private mutating func note(_ finished: TelephoneEventReceiver.Finished) {
            keys += finished.event.description
            lengths.append(finished.durationTicks)
        }
    }

    @Test("The next key ends one whose end was lost; late packets of the old one change nothing")
    func lostEnd() {
        var ear = Ear()
        #expect(ear.take(1, 160, 1_000, number: 1).began?.code == 1)
        let next = ear.take(2, 160, 3_000, number: 8, end: true)
        #expect(next.lost?.event.code == 1 && next.lost?.durationTicks == 160 && next.lost?.endWasLost == true)
        #expect(next.began?.code == 2 && next.finished?.event.code == 2)
        let late = [
            ear.take(1, 800, 1_000, number: 4, end: true), ear.take(2, 160, 3_000, number: 8, end: true),
            ear.take(2, 160, 3_000, number: 9, end: true), ear.take(2, 160, 3_000, number: 7),
        ]
        for outcome in late { #expect(outcome.began == nil && outcome.finished == nil && outcome.lost == nil) }
        // The same key again, soon after.
        #expect(ear.take(2, 160, 4_000, number: 12).began?.code == 2)
        #expect(ear.take(9, 320, 4_000, number: 13, end: true).finished == nil)
        #expect(ear.take(2, 160, 3_000, number: 14, end: true).finished == nil, "the end before, once more")
        #expect(ear.take(2, 320, 4_000, number: 15, end: true).finished?.durationTicks == 320)
    }

    @Test(
        "A key whose timestamp rises from packet to packet is one key, whether or not its durations and its ends rise, too",
        arguments: [true, false], [true, false])
    func risingTimestamps(durationsRise: Bool, endsRise: Bool) {
        var ear = Ear()
        for step in 0..<9 {
            let (sound, end) = (min(step, 5), endsRise ? step : min(step, 5))
            ear.take(
                2, UInt16(durationsRise ? 160 * (sound + 1) : 160), UInt32(1_000 + 160 * end),
                number: 100 + Int64(step), end: step >= 6)
        }
        #expect(ear.keys == "2")
        #expect((960...1_120).contains(ear.lengths.first ?? 0))
        #expect(ear.receiver.nextDeadline == nil)
    }

    @Test("Two packets of a key with a rising timestamp may be lost in a row, and any that are late", arguments: 0..<8)
    func risingTimestampsLost(first: Int) {
        for later in first..<9 where later - first < 2 || later > first + 2 {
            var ear = Ear()
            for step in 0..<9 where step != first && step != first + 1 && step != later {
                ear.take(2, 160, UInt32(160 * min(step, 5)), number: Int64(step), end: step >= 6)
            }
            ear.take(2, 160, UInt32(160 * min(first, 5)), number: Int64(first), end: first >= 6)
            _ = ear.take(5, 160, 90_000, number: 90, end: true)
            #expect(ear.keys == "25", "without \(first), \(first + 1) and \(later)")
        }
    }

    @Test("The same key pressed twice is two keys, with sound between the two or without")
    func twice() {
        for pause in [0, 2, 40] as [Int64] {
            var ear = Ear()
            ear.press(7, 1_000, from: 10)
            ear.press(7, 1_000 + 160 * UInt32(7 + pause), from: 17 + pause)
            #expect(ear.keys == "77")
            #expect(ear.lengths == [800, 800])
        }
    }

    @Test("Of a key that stops for 300 ms what follows is no other key, though its timestamp rises")
    func stalled() {
        for rise in [0, 160] as [UInt32] {
            var receiver = TelephoneEventReceiver()
            var over = 0
            for step in 0..<9 {
                let now = Instant(nanoseconds: Int64(step) * 20_000_000 + (step >= 4 ? 300_000_000 : 0))
                if receiver.expire(at: now) != nil { over += 1 }
                let outcome = receiver.receive(
                    .init(event: .flash, isEnd: step >= 6, volume: 10, duration: 160), number: Int64(step),
                    timestamp: UInt32(min(step, 6)) * rise, ssrc: 1, at: now)
                if outcome.finished != nil || outcome.lost != nil { over += 1 }
            }
            #expect(over == 1)
        }
    }

    /// How a stream goes on with other timestamps: its SSRC, the number and the timestamp of the next key.
    struct Change {
        var ssrc: UInt32
        var number: Int64
        var timestamp: UInt32
    }

    @Test(
        "After another SSRC, or a stream that begins again lower or higher, all keys are heard",
        arguments: [
            Change(ssrc: 2, number: 5_107, timestamp: 600_000), Change(ssrc: 2, number: 3, timestamp: 600_000),
            Change(ssrc: 2, number: 5_004, timestamp: 1_000_000), Change(ssrc: 1, number: 5_107, timestamp: 0),
            Change(ssrc: 1, number: 5_008, timestamp: 999_999), Change(ssrc: 1, number: 0, timestamp: 0),
            Change(ssrc: 1, number: 5_107, timestamp: 3_000_000_000), Change(ssrc: 1, number: 70_000, timestamp: 17),
        ])
    func otherStream(change: Change) {
        for isEndLost in [false, true] {
            var ear = Ear()
            if isEndLost { ear.take(1, 160, 1_000_000, number: 5_000) } else { ear.press(1, 1_000_000, from: 5_000) }
            ear.ssrc = change.ssrc
            ear.press(2, change.timestamp, from: change.number)
            ear.press(3, change.timestamp &+ 1_600, from: change.number + 10)
            #expect(ear.keys == "123")
        }
    }

    @Test("A stream that begins again with numbers that it has just had is not late, since it comes seconds later")
    func sameNumbers() {
        var receiver = TelephoneEventReceiver()
        var keys = ""
        for (index, code) in ([1, 2, 3] as [UInt8]).enumerated() {
            for step in 0..<7 {
                let outcome = receiver.receive(
                    .init(event: TelephoneEvent(code: code), isEnd: step >= 4, volume: 10, duration: 160),
                    number: Int64((index == 2 ? 120 : 100) + step),
                    timestamp: index == 0 ? 16_000 : UInt32(index) * 3_200,
                    ssrc: 1, at: Instant(nanoseconds: Int64(index) * 2_000_000_000 + Int64(step) * 20_000_000))
                if let finished = outcome.finished ?? outcome.lost { keys += finished.event.description }
            }
        }
        #expect(keys == "123")
    }

    @Test("Any packets in any order give no key that was not in them, and nothing traps")
    func hostile() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<300 {
            var ear = Ear()
            var sent: Set<UInt8> = []
            for _ in 0..<200 {
                let code = UInt8.random(in: 0...255, using: &random)
                sent.insert(code)
                ear.ssrc = UInt32.random(in: 0...20, using: &random) / 20
                let near = Bool.random(using: &random)
                let outcome = ear.take(
                    code, .random(in: 0...(.max), using: &random), .random(in: 0...(near ? 500 : .max), using: &random),
                    number: .random(in: near ? 0...20 : -(1 << 30)...(1 << 30), using: &random),
                    end: Bool.random(using: &random))
                for event in [outcome.lost?.event, outcome.began, outcome.finished?.event] {
                    if let event { #expect(sent.contains(event.code)) }
                }
            }
        }
    }
}
