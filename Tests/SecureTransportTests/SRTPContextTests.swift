import TestSupport
import Testing

@testable import SecureTransport

@Suite("SRTP")
struct SRTPContextTests {
    /// A minimal RTP packet with `payload` behind its 12-byte header.
    private func packet(sequence: UInt16, payload: [UInt8] = Array(repeating: 0x5A, count: 80)) -> [UInt8] {
        [0x80, 111, UInt8(sequence >> 8), UInt8(sequence & 0xFF), 0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78] + payload
    }

    private func key(_ suite: SRTPSuite, seed: UInt64 = 1) -> SRTPKey {
        var generator = SeededGenerator(seed: seed)
        return SRTPKey.random(suite, using: &generator)
    }

    private func protect(_ plain: [UInt8], _ context: inout SRTPContext) throws -> [UInt8] {
        var bytes = plain + Array(repeating: 0, count: SRTPSuite.maximumOverheadBytes)
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        let length = try #require(context.protect(&span, length: plain.count))
        return Array(bytes[..<length])
    }

    private func unprotect(_ wire: [UInt8], _ context: inout SRTPContext) throws -> [UInt8] {
        var bytes = wire
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        let length = try context.unprotect(&span)
        return Array(bytes[..<length])
    }

    @Test("What one side protects only the other side reads", arguments: SRTPSuite.allCases)
    func roundTrip(suite: SRTPSuite) throws {
        var sender = try SRTPContext(key(suite), .outbound)
        var receiver = try SRTPContext(key(suite), .inbound)
        var stranger = try SRTPContext(key(suite, seed: 2), .inbound)
        let plain = packet(sequence: 7)
        let wire = try protect(plain, &sender)
        #expect(wire.count > plain.count)
        #expect(!wire[12...].starts(with: plain[12...]))
        #expect(try unprotect(wire, &receiver) == plain)
        #expect(throws: SRTPContext.Failure.authentication) { _ = try unprotect(wire, &stranger) }
    }

    @Test("A replayed packet is refused, and the stream continues", arguments: SRTPSuite.allCases)
    func replay(suite: SRTPSuite) throws {
        var sender = try SRTPContext(key(suite), .outbound)
        var receiver = try SRTPContext(key(suite), .inbound)
        let first = try protect(packet(sequence: 1), &sender)
        _ = try unprotect(first, &receiver)
        #expect(throws: SRTPContext.Failure.replay) { _ = try unprotect(first, &receiver) }
        let second = try protect(packet(sequence: 2), &sender)
        #expect(try unprotect(second, &receiver) == packet(sequence: 2))
    }

    @Test("A packet changed or cut anywhere is refused", arguments: SRTPSuite.allCases)
    func tampering(suite: SRTPSuite) throws {
        var sender = try SRTPContext(key(suite), .outbound)
        var receiver = try SRTPContext(key(suite), .inbound)
        let wire = try protect(packet(sequence: 1), &sender)
        for index in 12..<wire.count {
            var changed = wire
            changed[index] ^= 1
            #expect(throws: SRTPContext.Failure.self) { _ = try unprotect(changed, &receiver) }
        }
        for length in 0..<wire.count {
            #expect(throws: SRTPContext.Failure.self) { _ = try unprotect(Array(wire[..<length]), &receiver) }
        }
        #expect(try unprotect(wire, &receiver) == packet(sequence: 1))
    }

    @Test(
        "RFC 4568 §6.2: Each suite's tag has its length, also where sound's is short",
        arguments: [(SRTPSuite.aeadAES128GCM, 16), (.aesCM128HMACSHA1, 10), (.aesCM128HMACSHA1Short, 4)])
    func tagLength(suite: SRTPSuite, bytes: Int) throws {
        var sender = try SRTPContext(key(suite), .outbound)
        let plain = packet(sequence: 1)
        #expect(try protect(plain, &sender).count == plain.count + bytes)
    }

    @Test("A packet with no room for its tag is not protected")
    func noRoom() throws {
        var sender = try SRTPContext(key(.aeadAES128GCM), .outbound)
        var bytes = packet(sequence: 1)
        let count = bytes.count
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        #expect(sender.protect(&span, length: count) == nil)
    }

    @Test("AUTH-12: A key prints as its suite and shows nothing of itself, dumped or interpolated")
    func redaction() {
        let key = key(.aeadAES128GCM)
        var dumped = ""
        dump(key, to: &dumped)
        let shown = "\(key) \(String(reflecting: key)) " + dumped
        #expect(shown.contains("AEAD_AES_128_GCM"))
        #expect(!shown.contains("\(key.keyAndSalt[0]), \(key.keyAndSalt[1])"))
        #expect(!shown.contains("keyAndSalt"))
    }

    /// Packets of as many SSRCs, each protected with the peer's key.
    private func packets(of ssrcs: Range<UInt32>, _ suite: SRTPSuite) throws -> [[UInt8]] {
        var wires: [[UInt8]] = []
        // The sender's library keeps each SSRC, too.
        for start in stride(from: ssrcs.lowerBound, to: ssrcs.upperBound, by: 64) {
            var sender = try SRTPContext(key(suite), .outbound)
            for ssrc in start..<min(start + 64, ssrcs.upperBound) {
                wires.append(try protect(packet(sequence: 1, ssrc: ssrc), &sender))
            }
        }
        return wires
    }

    private func packet(sequence: UInt16, ssrc: UInt32) -> [UInt8] {
        var bytes = packet(sequence: sequence)
        for index in 0..<4 { bytes[8 + index] = UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * index)) }
        return bytes
    }

    /// A receiver report of nothing, from an SSRC.
    private func report(ssrc: UInt32, _ context: inout SRTPContext) throws -> [UInt8] {
        let plain: [UInt8] = [0x80, 201, 0, 1] + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * $0)) }
        var bytes = plain + Array(repeating: 0, count: SRTPSuite.maximumOverheadBytes)
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        let length = try #require(context.protectControl(&span, length: plain.count))
        return Array(bytes[..<length])
    }

    private func unprotectControl(_ wire: [UInt8], _ context: inout SRTPContext) throws {
        var bytes = wire
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        _ = try context.unprotectControl(&span)
    }

    @Test("A peer that sends each packet with another SSRC has a few of them at a time", arguments: SRTPSuite.allCases)
    func manySources(suite: SRTPSuite) throws {
        var receiver = try SRTPContext(key(suite), .inbound)
        var own = try SRTPContext(key(suite), .outbound)
        var (taken, refused) = (0, 0)
        for (number, wire) in try packets(of: 100..<2_100, suite).enumerated() {
            // The peer's sound goes on meanwhile.
            let sound = try protect(packet(sequence: UInt16(number), ssrc: 7), &own)
            #expect(try unprotect(sound, &receiver) == packet(sequence: UInt16(number), ssrc: 7))
            do throws(SRTPContext.Failure) {
                try receive(wire, &receiver)
                taken += 1
            } catch {
                refused += 1
                // A peer that uses up what it may begin, or an SSRC that the filter takes for a removed one.
                #expect(error == .tooManySources || error == .replay)
            }
            let count = receiver.sourceCount
            #expect(count <= SRTPContext.mostSources)
        }
        // 16 at once, and one for each 16 packets of known ones.
        #expect((100...16 + 2_000 / 16).contains(taken), "\(taken)")
        #expect(taken + refused == 2_000)
    }

    private func receive(
        _ wire: [UInt8], _ context: inout SRTPContext, keeping heard: UInt32? = nil
    ) throws(SRTPContext.Failure) {
        var bytes = wire
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        _ = try context.unprotect(&span, keeping: heard)
    }

    @Test("SSRCs that come in RTCP alone count, too")
    func manySourcesOfControl() throws {
        var receiver = try SRTPContext(key(.aesCM128HMACSHA1), .inbound)
        var taken = 0
        for ssrc in UInt32(1)...200 {
            var sender = try SRTPContext(key(.aesCM128HMACSHA1), .outbound)
            let wire = try report(ssrc: ssrc, &sender)
            if (try? unprotectControl(wire, &receiver)) != nil { taken += 1 }
        }
        let count = receiver.sourceCount
        #expect(count == SRTPContext.mostSources && taken == 16)
    }

    @Test("An SSRC that gave way to others is refused, so that none of its packets can be replayed")
    func removedSource() throws {
        let suite = SRTPSuite.aeadAES128GCM
        var receiver = try SRTPContext(key(suite), .inbound)
        let wires = try packets(of: 1..<13, suite)
        for wire in wires { try receive(wire, &receiver) }
        // The library does not know four of them any more, and would take their packets again.
        for ssrc in UInt32(1)...12 {
            let isKnown = receiver.isInLibrary(ssrc)
            #expect(isKnown == (ssrc > 4), "\(ssrc)")
        }
        for wire in wires {
            #expect(throws: SRTPContext.Failure.replay) { try receive(wire, &receiver) }
        }
        var sender = try SRTPContext(key(suite), .outbound)
        let removed = try protect(packet(sequence: 2, ssrc: 1), &sender)
        #expect(throws: SRTPContext.Failure.replay) { try receive(removed, &receiver) }
        let kept = try protect(packet(sequence: 2, ssrc: 12), &sender)
        try receive(kept, &receiver)
    }

    @Test("However many SSRCs a peer begins between two packets of the stream that is heard, that stream stays")
    func heardSource() throws {
        let suite = SRTPSuite.aeadAES128GCM
        var receiver = try SRTPContext(key(suite), .inbound)
        var sender = try SRTPContext(key(suite), .outbound)
        try receive(try protect(packet(sequence: 1, ssrc: 7), &sender), &receiver)
        for wire in try packets(of: 100..<114, suite) { try receive(wire, &receiver, keeping: 7) }
        try receive(try protect(packet(sequence: 2, ssrc: 7), &sender), &receiver)
    }

    @Test("A stream that is sent steadily stays, also while a packet of another one is taken for what is heard")
    func steadySource() throws {
        let suite = SRTPSuite.aesCM128HMACSHA1
        var receiver = try SRTPContext(key(suite), .inbound)
        var sender = try SRTPContext(key(suite), .outbound)
        for number in UInt16(1)...16 {
            try receive(try protect(packet(sequence: number, ssrc: 7), &sender), &receiver)
        }
        for wire in try packets(of: 100..<114, suite) { try receive(wire, &receiver, keeping: 100) }
        try receive(try protect(packet(sequence: 17, ssrc: 7), &sender), &receiver)
        // Once it is silent, it gives way like all others.
        for number in UInt16(0)..<300 {
            try receive(try protect(packet(sequence: number + 2, ssrc: 100), &sender), &receiver)
        }
        for wire in try packets(of: 200..<207, suite) { try receive(wire, &receiver, keeping: 100) }
        let late = try protect(packet(sequence: 18, ssrc: 7), &sender)
        #expect(throws: SRTPContext.Failure.replay) { try receive(late, &receiver) }
    }

    @Test("Strangers' packets use up none of the SSRCs that the peer may begin")
    func strangersSources() throws {
        let suite = SRTPSuite.aesCM128HMACSHA1
        var receiver = try SRTPContext(key(suite), .inbound)
        for ssrc in UInt32(1)...500 {
            let wire = packet(sequence: 1, ssrc: ssrc) + Array(repeating: 0, count: 10)
            #expect(throws: SRTPContext.Failure.authentication) { try receive(wire, &receiver) }
        }
        #expect(receiver.sourceCount == 0)
        for wire in try packets(of: 1..<17, suite) { try receive(wire, &receiver) }
    }

    @Test("A packet costs no more after tens of thousands of SSRCs than before")
    func costOfManySources() throws {
        let suite = SRTPSuite.aesCM128HMACSHA1
        var receiver = try SRTPContext(key(suite), .inbound)
        var sender = try SRTPContext(key(suite), .outbound)
        var sequence: UInt16 = 0
        /// The shortest of several rounds, in which each packet of the peer's sound is followed by five of other SSRCs.
        func cost(_ context: inout SRTPContext, _ others: [[UInt8]]) throws -> Duration {
            var shortest = Duration.seconds(3_600)
            for round in 0..<10 {
                var time = Duration.zero
                for number in 0..<20 {
                    sequence += 1
                    let sound = try protect(packet(sequence: sequence, ssrc: 7), &sender)
                    let first = (round * 20 + number) * 5
                    time += ContinuousClock().measure {
                        try? receive(sound, &context)
                        for wire in others[first..<first + 5] { try? receive(wire, &context) }
                    }
                }
                shortest = min(shortest, time)
            }
            return shortest
        }
        let early = try packets(of: 1_000..<2_000, suite)
        let before = try cost(&receiver, early)
        for start in stride(from: UInt32(10_000), to: 40_000, by: 3_000) {
            for (number, wire) in try packets(of: start..<start + 3_000, suite).enumerated() {
                if number % 5 == 0 {
                    sequence += 1
                    let sound = try protect(packet(sequence: sequence, ssrc: 7), &sender)
                    try receive(sound, &receiver)
                }
                try? receive(wire, &receiver)
            }
        }
        let late = try packets(of: 100_000..<101_000, suite)
        let after = try cost(&receiver, late)
        #expect(after < before * 3, "\(before) before, \(after) after")
    }

    @Test("A key of the wrong length is no key", arguments: SRTPSuite.allCases)
    func keyLength(suite: SRTPSuite) {
        let right = suite.keyBytes + suite.saltBytes
        #expect(SRTPKey(suite: suite, keyAndSalt: Array(repeating: 0, count: right)) != nil)
        #expect(SRTPKey(suite: suite, keyAndSalt: Array(repeating: 0, count: right - 1)) == nil)
        #expect(SRTPKey(suite: suite, keyAndSalt: Array(repeating: 0, count: right + 1)) == nil)
    }
}
