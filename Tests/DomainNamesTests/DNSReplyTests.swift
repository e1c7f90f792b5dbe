import DomainNames
import Testing

@Suite("Replies of name servers")
struct DNSReplyTests {
    /// A reply with one question, for `_sip._udp.sip.test`, and these records.
    private func reply(_ records: [[UInt8]]) -> [UInt8] {
        let header: [UInt8] = [0, 7, 0x81, 0x80, 0, 1, 0, UInt8(records.count), 0, 0, 0, 0]
        return header + name("_sip._udp.sip.test") + [0, 33, 0, 1] + records.flatMap { $0 }
    }

    private func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    /// A record of the question's name.
    private func record(_ type: UInt8, _ seconds: UInt32 = 60, _ data: [UInt8]) -> [UInt8] {
        let time = (0..<4).map { UInt8(truncatingIfNeeded: seconds >> (24 - 8 * $0)) }
        return [0xC0, 12, 0, type, 0, 1] + time + [UInt8(data.count >> 8), UInt8(data.count & 255)] + data
    }

    private func text(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }

    @Test("An SRV record is read, its target through a pointer and in lower case")
    func services() throws {
        let target: [UInt8] = [2] + Array("S1".utf8) + [0xC0, 22]
        let reply = try DNSReply(parsing: reply([record(33, 90, [0, 10, 0, 60, 0x13, 0xC4] + target)]))
        #expect(reply.services == [SRVRecord(priority: 10, weight: 60, port: 5_060, target: "s1.sip.test")])
        #expect(reply.lifetime == 90)
    }

    @Test("A NAPTR record is read, with its service in upper case")
    func rules() throws {
        let data: [UInt8] = [0, 20, 0, 50] + text("S") + text("sip+d2t") + text("") + name("_sip._tcp.sip.test")
        let reply = try DNSReply(parsing: reply([record(35, 5, data)]))
        #expect(
            reply.rules == [
                NAPTRRecord(
                    order: 20, preference: 50, flags: "s", service: "SIP+D2T", replacement: "_sip._tcp.sip.test")
            ])
        #expect(reply.lifetime == 5)
    }

    @Test("The shortest lifetime counts, that of an alias too, and one beyond 2^31 is 0")
    func lifetime() throws {
        let alias = record(5, 3, name("x.test"))
        let service = record(33, 90, [0, 1, 0, 1, 0, 1] + name("a.test"))
        #expect(try DNSReply(parsing: reply([alias, service])).lifetime == 3)
        #expect(try DNSReply(parsing: reply([record(33, 1 << 31, [0, 1, 0, 1, 0, 1] + name("a.test"))])).lifetime == 0)
    }

    /// A denial with one record about the zone.
    private func denial(_ record: [UInt8]) -> [UInt8] {
        let header: [UInt8] = [0, 7, 0x81, 0x83, 0, 1, 0, 0, 0, 1, 0, 0]
        return header + name("_sip._udp.sip.test") + [0, 33, 0, 1] + record
    }

    private func soa(_ minimum: [UInt8]) -> [UInt8] {
        name("ns.test") + name("root.test") + [UInt8](repeating: 1, count: 16) + minimum
    }

    @Test("That there is nothing lasts as long as the zone says, by the shorter of two numbers, and else not at all")
    func negative() throws {
        #expect(try DNSReply(parsing: denial(record(6, 900, soa([0, 0, 0, 60])))).negativeLifetime == 60)
        #expect(try DNSReply(parsing: denial(record(6, 30, soa([0, 0, 0, 60])))).negativeLifetime == 30)
        #expect(try DNSReply(parsing: denial(record(6, 30, soa([0x80, 0, 0, 0])))).negativeLifetime == 0)
        #expect(try DNSReply(parsing: denial(record(2, 900, name("ns.test")))).negativeLifetime == 0)
        #expect(try DNSReply(parsing: reply([])).negativeLifetime == 0)
    }

    @Test("A record about the zone that is cut says nothing, and takes no answer away")
    func cutZone() throws {
        let whole = denial(record(6, 900, soa([0, 0, 0, 60])))
        for length in denial([]).count..<whole.count {
            #expect(try DNSReply(parsing: Array(whole.prefix(length))).negativeLifetime == 0)
        }
        var answered = reply([record(33, [0, 1, 0, 1, 0, 1] + name("a.test"))])
        answered[9] = 1
        #expect(try DNSReply(parsing: answered).services.count == 1)
    }

    @Test("A record whose target no host may have is left out, and the others are read")
    func hostile() throws {
        let bad: [UInt8] = [0, 1, 0, 1, 0, 1] + [3, 10, 13, 0x3B, 0]
        let good: [UInt8] = [0, 2, 0, 1, 0, 1] + name("good.test")
        #expect(
            try DNSReply(parsing: reply([record(33, bad), record(33, good)])).services.map(\.target) == ["good.test"])
    }

    private func record(_ type: UInt8, _ data: [UInt8]) -> [UInt8] { record(type, 60, data) }

    @Test("A pointer that leads forward or to itself is an error, not a loop")
    func pointers() {
        for pointer: [UInt8] in [[0xC0, 53], [0xC0, 60], [0xFF, 0xFF]] {
            #expect(throws: DNSParseError.self) {
                try DNSReply(parsing: reply([record(33, [0, 1, 0, 1, 0, 1] + pointer)]))
            }
        }
    }

    @Test("A reply that is cut anywhere is an error, and random bytes do not trap")
    func truncation() {
        let whole = reply([record(33, [0, 10, 0, 60, 0x13, 0xC4] + name("s1.sip.test"))])
        for length in 0..<whole.count {
            #expect(throws: DNSParseError.self) { try DNSReply(parsing: Array(whole.prefix(length))) }
        }
        var state: UInt64 = 1
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<3 {
                state = state &* 6_364_136_223_846_793_005 &+ 1
                bytes[Int(state >> 33) % bytes.count] = UInt8(truncatingIfNeeded: state >> 24)
            }
            _ = try? DNSReply(parsing: bytes)
        }
    }
}
