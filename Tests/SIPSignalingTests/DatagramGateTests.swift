import Core
import SIP
@testable import SIPSignaling
import Testing

@Suite("Datagrams of peers that are not the server")
struct DatagramGateTests {
    private static let message = Array("OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP c\r\n\r\n".utf8)
    private static let rubbish = [UInt8](repeating: 0x58, count: 500)

    private func host(_ text: String, _ port: UInt16 = 5_060) throws -> SocketAddress {
        try #require(SocketAddress(host: text, port: port))
    }

    private struct Flood {
        var gate = DatagramGate(acceptsStrangers: true)
        var now = Instant.zero

        mutating func admits(_ bytes: [UInt8], _ peer: SocketAddress, isOfCall: Bool = false) -> Bool {
            gate.admits(bytes, from: peer, isOfCall: isOfCall, at: now)
        }
    }

    @Test("Rubbish mutes no peer, however much of it comes and from how many hosts")
    func rubbish() throws {
        var flood = Flood()
        var answered = 0
        for second in 0..<40 {
            for number in 0..<500 {
                let isAdmitted = flood.admits(
                    Self.rubbish, try host("198.51.\(number / 250).\(number % 250)", UInt16(1 + number)))
                #expect(!isAdmitted)
            }
            if flood.admits(Self.message, try host("203.0.113.5")) { answered += 1 }
            flood.now = Instant.zero.advanced(by: .seconds(second + 1))
        }
        #expect(answered == 40)
    }

    @Test("One host that sends messages without end, from any port of it, has its limit and mutes no other")
    func oneHost() throws {
        var flood = Flood()
        var (answered, heard) = (0, 0)
        for second in 0..<40 {
            for number in 0..<500 where flood.admits(Self.message, try host("198.51.100.1", UInt16(1 + number))) {
                heard += 1
            }
            if flood.admits(Self.message, try host("203.0.113.5")) { answered += 1 }
            flood.now = Instant.zero.advanced(by: .seconds(second + 1))
        }
        #expect(answered == 40)
        #expect(heard <= Int(Double(DatagramGate.perHost.burst) + 39 * DatagramGate.perHost.perSecond) && heard > 3_900)
        // A /64 is one host.
        var other = Flood()
        var ofNetwork = 0
        for number in 1...1_000 where other.admits(Self.message, try host("2001:db8::\(number)")) { ofNetwork += 1 }
        #expect(ofNetwork == Int(DatagramGate.perHost.burst))
    }

    @Test("A flood of messages from everywhere is bounded, and mutes no peer of a call")
    func everywhere() throws {
        var flood = Flood()
        var (answered, heard) = (0, 0)
        for second in 0..<3 {
            for number in 0..<2_500
            where flood.admits(Self.message, try host("10.\(second).\(number / 250).\(number % 250)")) {
                heard += 1
            }
            for _ in 0..<20 where flood.admits(Self.message, try host("203.0.113.5"), isOfCall: true) { answered += 1 }
            flood.now = Instant.zero.advanced(by: .seconds(second + 1))
        }
        #expect(answered == 60)
        #expect(heard == 3 * Int(DatagramGate.ofStrangers.perSecond))
        var closed = Flood(gate: DatagramGate(acceptsStrangers: false))
        var others = 0
        for number in 0..<500 where closed.admits(Self.message, try host("10.0.\(number / 250).\(number % 250)")) {
            others += 1
        }
        #expect(others == Int(DatagramGate.ofOthers.perSecond))
    }

    @Test(
        "What begins like a message is read",
        arguments: [
            ("SIP/2.0 200 OK\r\n", true), ("sip/2.0 200 OK\n", true), ("\r\n\r\nBYE sip:a SIP/2.0\r\n", true),
            ("BYE sip:a SIP/2.0\n", true), ("BYE sip:a SIP/2.0", true), ("BYE sip:a SIP/3.0\r\n", false),
            ("GET / HTTP/1.1\r\nVia: SIP/2.0\r\n", false), ("", false), ("SIP/2", false),
            ("BYE sip:" + String(repeating: "a", count: 5_000) + " SIP/2.0\r\n", false),
        ])
    func firstLine(_ text: String, _ isRead: Bool) throws {
        var flood = Flood()
        #expect(flood.admits(Array(text.utf8), try host("203.0.113.5")) == isRead)
    }
}
