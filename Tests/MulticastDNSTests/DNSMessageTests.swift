import DomainNames
import Core
import TestSupport
import Testing

@Suite("Messages of multicast DNS")
struct DNSMessageTests {
    /// An answer of three records: a pointer to a name before it, a foreign type, and an IPv6 address.
    static let answer: [UInt8] =
        [0, 0, 0x84, 0, 0, 0, 0, 3, 0, 0, 0, 0]
        + [3] + Array("Abc".utf8) + [5] + Array("local".utf8) + [0]
        + [0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, 192, 0, 2, 7]
        + [0xC0, 12, 0, 16, 0x80, 1, 0, 0, 0, 120, 0, 2, 1, 120]
        + [2] + Array("x1".utf8) + [0xC0, 16]
        + [0, 28, 0, 1, 0, 0, 0, 120, 0, 16, 0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [9]

    @Test("A question is one name of one type, without ID or flags")
    func query() throws {
        let bytes = try #require(DNSMessage.query(for: "ab.local", .aaaa))
        #expect(
            bytes == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 97, 98, 5] + Array("local".utf8) + [0, 0, 28, 0, 1])
    }

    @Test(
        "What is no name is not asked for",
        arguments: ["", ".local", "a..local", "a.local.", String(repeating: "x", count: 64) + ".local"])
    func noName(name: String) { #expect(DNSMessage.query(for: name, .a) == nil) }

    @Test("Addresses are read in order, through pointers, and other records are passed over")
    func answers() throws {
        let expected = [
            DNSMessage.Answer(name: "abc.local", address: try #require(SocketAddress(host: "192.0.2.7", port: 0))),
            DNSMessage.Answer(name: "x1.local", address: try #require(SocketAddress(host: "2001:db8::9", port: 0))),
        ]
        #expect(DNSMessage.answers(in: Self.answer) == expected)
    }

    @Test("Cut off anywhere, a message yields what was before the cut")
    func truncated() {
        let whole = DNSMessage.answers(in: Self.answer)
        for count in 0..<Self.answer.count {
            let part = DNSMessage.answers(in: Array(Self.answer.prefix(count)))
            #expect(part.count < whole.count && part == Array(whole.prefix(part.count)))
        }
    }

    @Test("A question, a failure, and a name that leads in circles say nothing")
    func nothing() {
        var bytes = Self.answer
        bytes[2] = 0
        #expect(DNSMessage.answers(in: bytes).isEmpty)
        bytes[2] = 0x84
        bytes[3] = 3
        #expect(DNSMessage.answers(in: bytes).isEmpty)
        let circle: [UInt8] = [0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 97, 0xC0, 12, 0, 1, 0, 1]
        #expect(DNSMessage.answers(in: circle).isEmpty)
        let forward: [UInt8] = [0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xC0, 14, 0, 0, 1, 0, 1]
        #expect(DNSMessage.answers(in: forward).isEmpty)
    }

    @Test("Any bytes, and any change to an answer, are read without harm")
    func noise() {
        var generator = SeededGenerator(seed: 6_762)
        for _ in 0..<5_000 {
            var bytes = Self.answer
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            #expect(DNSMessage.answers(in: bytes).count <= DNSMessage.maximumRecords)
            let noise = (0..<Int.random(in: 0..<200, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            _ = DNSMessage.answers(in: [0, 0, 0x84, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0] + noise)
        }
    }
}
