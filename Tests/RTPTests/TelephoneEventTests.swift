import RTP
import TestSupport
import Testing
import Timekeeping

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

    @Test("A key longer than a duration can tell goes on in segments, and the end comes once")
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
            let outcome = receiver.receive(packet.payload, timestamp: packet.timestamp, at: now)
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

    @Test("Whatever packets are lost, a key is told once if any of its packets comes", arguments: 0..<128)
    func losses(mask: Int) {
        var sender = TelephoneEventSender(.init(clockRate: 8_000))
        sender.press(TelephoneEvent(code: 3))
        var receiver = TelephoneEventReceiver()
        var began = 0
        var over = 0
        for (step, packet) in packets(&sender, ticks: 160) where step < 7 && mask >> step & 1 == 1 {
            let now = Instant(nanoseconds: Int64(step) * 20_000_000)
            let outcome = receiver.receive(packet.payload, timestamp: packet.timestamp, at: now)
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

    @Test("The next key ends one whose end was lost; late packets of the old one change nothing")
    func lostEnd() {
        var receiver = TelephoneEventReceiver()
        func take(_ code: UInt8, _ duration: UInt16, _ timestamp: UInt32, end: Bool = false)
            -> TelephoneEventReceiver.Outcome
        {
            receiver.receive(
                .init(event: TelephoneEvent(code: code), isEnd: end, volume: 10, duration: duration),
                timestamp: timestamp, at: .zero)
        }
        #expect(take(1, 160, 1_000).began?.code == 1)
        let next = take(2, 160, 3_000, end: true)
        #expect(next.lost?.event.code == 1 && next.lost?.durationTicks == 160 && next.lost?.endWasLost == true)
        #expect(next.began?.code == 2 && next.finished?.event.code == 2)
        for late in [take(1, 800, 1_000, end: true), take(2, 160, 3_000, end: true)] {
            #expect(late.began == nil && late.finished == nil && late.lost == nil)
        }
        // The same key again, soon after.
        #expect(take(2, 160, 4_000).began?.code == 2)
        #expect(take(9, 320, 4_000, end: true).finished == nil)
        #expect(take(2, 320, 4_000, end: true).finished?.durationTicks == 320)
    }

    @Test("After half a turn of the timestamp a key is new again")
    func turn() {
        var receiver = TelephoneEventReceiver()
        let payload = TelephoneEventPayload(event: .flash, isEnd: true, volume: 0, duration: 160)
        #expect(receiver.receive(payload, timestamp: 0, at: .zero).finished != nil)
        let old = UInt32(1) << 31 + 5
        #expect(receiver.receive(payload, timestamp: old, at: Instant(nanoseconds: 1)).finished == nil)
        let later = Instant(nanoseconds: 13 * 3_600 * 1_000_000_000)
        #expect(receiver.receive(payload, timestamp: old, at: later).finished != nil)
    }
}
