import DomainNames
import Core
import Testing

@Suite("Names of the local link")
struct NameResolverTests {
    private func responder(port: UInt16 = 5_353) throws -> SocketAddress {
        try #require(SocketAddress(host: "192.0.2.7", port: port))
    }

    @Test("A name is asked for in both families, and its first answer is reported once")
    func resolved() throws {
        var resolver = NameResolver()
        var outputs: [NameResolver.Output] = []
        resolver.handle(.resolve("ABC.local"), at: .zero, into: &outputs)
        resolver.handle(.resolve("abc.LOCAL"), at: .zero, into: &outputs)
        let queries = [DNSMessage.RecordType.a, .aaaa].compactMap { DNSMessage.query(for: "abc.local", $0) }
        #expect(outputs == queries.map(NameResolver.Output.transmit))
        outputs = []
        let answer = DNSMessageTests.answer
        resolver.handle(.datagram(answer, source: try responder(port: 5_354)), at: .zero, into: &outputs)
        #expect(outputs.isEmpty && resolver.isBusy)
        resolver.handle(.datagram(answer, source: try responder()), at: .zero, into: &outputs)
        resolver.handle(.datagram(answer, source: try responder()), at: .zero, into: &outputs)
        let address = try #require(SocketAddress(host: "192.0.2.7", port: 0))
        #expect(outputs == [.resolved("abc.local", address)])
        #expect(!resolver.isBusy && resolver.nextDeadline == nil)
    }

    @Test("An unknown name is asked for three times in 5 s and given up")
    func silence() {
        var resolver = NameResolver()
        var log: [(Instant, NameResolver.Output)] = []
        var outputs: [NameResolver.Output] = []
        resolver.handle(.resolve("abc.local"), at: .zero, into: &outputs)
        log += outputs.map { (.zero, $0) }
        while let deadline = resolver.nextDeadline {
            outputs = []
            resolver.handle(.timerFired, at: deadline, into: &outputs)
            log += outputs.map { (deadline, $0) }
        }
        let times = log.map { Instant.zero.duration(to: $0.0) }
        #expect(times == [0, 0, 1, 1, 3, 3, 5].map(Duration.seconds))
        #expect(log.last?.1 == .gaveUp("abc.local"))
    }

    @Test(
        "Only names of one label and .local are asked for",
        arguments: ["printer.office.local", "example.org", "local", ".local", "a.local."])
    func others(name: String) {
        var resolver = NameResolver()
        var outputs: [NameResolver.Output] = []
        resolver.handle(.resolve(name), at: .zero, into: &outputs)
        #expect(outputs == [.gaveUp(name)])
    }

    @Test("Names beyond the limit are given up at once")
    func limit() {
        var resolver = NameResolver()
        var outputs: [NameResolver.Output] = []
        for number in 0...NameResolver.maximumNames {
            resolver.handle(.resolve("name\(number).local"), at: .zero, into: &outputs)
        }
        #expect(outputs.last == .gaveUp("name\(NameResolver.maximumNames).local"))
        #expect(outputs.count == 2 * NameResolver.maximumNames + 1)
    }
}
