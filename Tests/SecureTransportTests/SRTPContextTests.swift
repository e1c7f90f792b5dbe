import SecureTransport
import TestSupport
import Testing

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

    @Test("What one side protects the other side reads, and nobody else", arguments: SRTPSuite.allCases)
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

    @Test("A replayed packet is refused, and the stream goes on", arguments: SRTPSuite.allCases)
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

    @Test("A key of the wrong length is no key", arguments: SRTPSuite.allCases)
    func keyLength(suite: SRTPSuite) {
        let right = suite.keyBytes + suite.saltBytes
        #expect(SRTPKey(suite: suite, keyAndSalt: Array(repeating: 0, count: right)) != nil)
        #expect(SRTPKey(suite: suite, keyAndSalt: Array(repeating: 0, count: right - 1)) == nil)
        #expect(SRTPKey(suite: suite, keyAndSalt: Array(repeating: 0, count: right + 1)) == nil)
    }
}
