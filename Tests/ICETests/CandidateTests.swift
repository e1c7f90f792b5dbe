import ICE
import Core
import TestSupport
import Testing

@Suite("Candidates as text")
struct CandidateTests {
    @Test(
        "What peers write is read, and written again without what we do not know",
        arguments: [
            (
                "candidate:842163049 1 udp 1677729535 203.0.113.7 46154 typ srflx raddr 10.0.0.2 rport 46154 generation 0 "
                    + "ufrag EEtu network-id 3 network-cost 10",
                "842163049 1 udp 1677729535 203.0.113.7 46154 typ srflx raddr 10.0.0.2 rport 46154 ufrag EEtu"
            ),
            ("a=candidate:1 1 UDP 2130706431 10.0.1.1 8998 typ host\r\n", "1 1 udp 2130706431 10.0.1.1 8998 typ host"),
            (
                "candidate:0 1 TCP 2105524479 192.0.2.1 9 typ host tcptype active",
                "0 1 tcp 2105524479 192.0.2.1 9 typ host"
            ),
            (
                "2 1 udp 41885439 2001:db8::5 50002 typ relay raddr 0.0.0.0 rport 0",
                "2 1 udp 41885439 2001:db8::5 50002 typ relay raddr 0.0.0.0 rport 0"
            ),
            (
                "4 1 udp 2113937151 d4a1f7a2-1b2c-4c3d-8e9f-001122334455.local 51000 typ host",
                "4 1 udp 2113937151 d4a1f7a2-1b2c-4c3d-8e9f-001122334455.local 51000 typ host"
            ),
            ("x+/9 1 udp 1 192.0.2.1 1 typ prflx", "x+/9 1 udp 1 192.0.2.1 1 typ prflx"),
        ])
    func texts(text: String, value: String) throws {
        let candidate = try #require(Candidate(parsing: text))
        #expect(candidate.attributeValue == value)
        #expect(Candidate(parsing: value) == candidate)
    }

    @Test(
        "What is no candidate is refused",
        arguments: [
            "", "candidate:", "candidate:1", "1 1 udp 1 192.0.2.1 1 host", "1 1 udp 1 192.0.2.1 1 typ",
            "1 1 udp 1 192.0.2.1 1 typ relayed", "1 0 udp 1 192.0.2.1 1 typ host", "1 257 udp 1 192.0.2.1 1 typ host",
            "1 1 udp 4294967296 192.0.2.1 1 typ host", "1 1 udp -1 192.0.2.1 1 typ host",
            "1 1 udp 1 192.0.2.1 65536 typ host", "1 1 udp 1 192.0.2 1 typ host", "1 1 udp 1 a/b.local 1 typ host",
            "1_ 1 udp 1 192.0.2.1 1 typ host", "1 1 udp 1 localhost 1 typ host", "1 1 udp 1 :: x typ host",
            "2 1 \u{FFFD}dp 1 192.0.2.1 1 typ host",
            "123456789012345678901234567890123 1 udp 1 192.0.2.1 1 typ host",
        ])
    func refused(text: String) {
        #expect(Candidate(parsing: text) == nil)
    }

    @Test("A text cut short anywhere, or with any byte changed, is read or refused without harm")
    func damage() {
        let text = "842163049 1 udp 1677729535 203.0.113.7 46154 typ srflx raddr 10.0.0.2 rport 46154 ufrag EEtu"
        var generator = SeededGenerator(seed: 12)
        for length in 0...text.count { _ = Candidate(parsing: text.prefix(length)) }
        var refused = 0
        for _ in 0..<10_000 {
            var bytes = Array(text.utf8)
            for _ in 0..<2 {
                bytes[.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            guard let candidate = Candidate(parsing: String(decoding: bytes, as: UTF8.self)) else {
                refused += 1
                continue
            }
            #expect(Candidate(parsing: candidate.attributeValue) == candidate)
        }
        #expect(refused > 1_000)
        #expect(Candidate(parsing: text + String(repeating: " a b", count: 1_000)) == nil)
    }

    @Test("Credentials are drawn as ICE wants them, and refused when they are too short or have other characters")
    func credentials() {
        var generator = SeededGenerator(seed: 1)
        let drawn = ICECredentials(using: &generator)
        #expect(drawn != ICECredentials(using: &generator))
        #expect(ICECredentials(usernameFragment: drawn.usernameFragment, password: drawn.password) == drawn)
        let good = String(repeating: "p", count: 22)
        #expect(ICECredentials(usernameFragment: "abcd", password: good) != nil)
        #expect(ICECredentials(usernameFragment: "abc", password: good) == nil)
        #expect(ICECredentials(usernameFragment: "abcd", password: String(good.dropLast())) == nil)
        #expect(ICECredentials(usernameFragment: "ab:d", password: good) == nil)
        #expect(ICECredentials(usernameFragment: String(repeating: "a", count: 257), password: good) == nil)
    }
}
