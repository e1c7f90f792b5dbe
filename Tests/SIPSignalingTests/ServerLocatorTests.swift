import DomainNames
import Core
import SIP
@testable import SIPSignaling
import Testing

@Suite("Where a SIP server is")
struct ServerLocatorTests {
    /// A locator on virtual time, and the zone that answers it.
    private struct Run {
        var locator: ServerLocator
        var zone: [DNSQuestion: DNSAnswer]
        var now = Instant.zero
        var asked: [DNSQuestion] = []
        var located: [SIPTarget]?

        init(
            _ choice: ServerLocator.Choice, port: UInt16? = nil, host: String = "sip.test", seed: UInt8 = 1,
            zone: [DNSQuestion: DNSAnswer]
        ) {
            locator = ServerLocator(host: host, port: port, choice: choice, key: [UInt8](repeating: seed, count: 16))
            self.zone = zone
        }

        mutating func locate() -> [String] {
            located = nil
            asked = []
            feed(.locate)
            return (located ?? []).map(\.description)
        }

        private mutating func feed(_ input: ServerLocator.Input) {
            var outbox: [ServerLocator.Output] = []
            locator.handle(input, at: now, into: &outbox)
            for output in outbox {
                switch output {
                case .located(let targets): located = targets
                case .ask(let question):
                    asked.append(question)
                    feed(.answered(question, zone[question] ?? .nothing(lifetime: .seconds(3_600))))
                }
            }
        }
    }

    private static func addresses(_ hosts: String..., lifetime: Duration = .seconds(60)) -> DNSAnswer {
        .found(.addresses(hosts.compactMap { SocketAddress(host: $0, port: 0) }), lifetime: lifetime)
    }

    private static func services(
        _ records: (UInt16, UInt16, UInt16, String)..., lifetime: Duration = .seconds(60)
    ) -> DNSAnswer {
        .found(
            .services(records.map { SRVRecord(priority: $0.0, weight: $0.1, port: $0.2, target: $0.3) }),
            lifetime: lifetime)
    }

    private static func rules(_ records: (UInt16, UInt16, String, String, String)...) -> DNSAnswer {
        .found(
            .rules(
                records.map {
                    NAPTRRecord(order: $0.0, preference: $0.1, flags: $0.2, service: $0.3, replacement: $0.4)
                }), lifetime: .seconds(60))
    }

    private static let hosts: [DNSQuestion: DNSAnswer] = [
        DNSQuestion("s1.sip.test", .addresses): addresses("192.0.2.1"),
        DNSQuestion("s2.sip.test", .addresses): addresses("192.0.2.2", "2001:db8::2"),
        DNSQuestion("sip.test", .addresses): addresses("192.0.2.9"),
    ]

    @Test("An address is used directly, without a look-up")
    func literal() {
        var run = Run(.only(.tls), host: "2001:db8::7", zone: [:])
        #expect(run.locate() == ["TLS [2001:db8::7]:5061"])
        #expect(run.asked.isEmpty)
    }

    @Test("A port says that only addresses are asked for")
    func port() {
        var zone = Self.hosts
        zone[DNSQuestion("_sip._tcp.sip.test", .services)] = Self.services((1, 1, 5_070, "s1.sip.test"))
        var run = Run(.only(.tcp), port: 5_080, zone: zone)
        #expect(run.locate() == ["TCP 192.0.2.9:5080"])
        #expect(run.asked == [DNSQuestion("sip.test", .addresses)])
    }

    @Test("Servers come by priority, each with all its addresses")
    func priorities() {
        var zone = Self.hosts
        zone[DNSQuestion("_sip._tcp.sip.test", .services)] =
            Self.services((20, 9, 5_070, "s2.sip.test"), (10, 1, 5_060, "s1.sip.test"))
        var run = Run(.only(.tcp), zone: zone)
        #expect(run.locate() == ["TCP 192.0.2.1:5060", "TCP 192.0.2.2:5070", "TCP [2001:db8::2]:5070"])
    }

    @Test("Without SRV records the domain's own address is used, with the usual port")
    func noServices() {
        var run = Run(.only(.udp), zone: Self.hosts)
        #expect(run.locate() == ["UDP 192.0.2.9:5060"])
        run = Run(.only(.wss), zone: Self.hosts)
        #expect(run.locate() == ["WSS 192.0.2.9:443"])
    }

    @Test("A lone dot says that there is no such service, so that nothing is tried")
    func dot() {
        var zone = Self.hosts
        zone[DNSQuestion("_sip._udp.sip.test", .services)] = Self.services((0, 0, 0, ""))
        var run = Run(.only(.udp), zone: zone)
        #expect(run.locate().isEmpty)
    }

    @Test("NAPTR records choose the transport by order and preference; unknown services are passed over")
    func naptr() {
        var zone = Self.hosts
        zone[DNSQuestion("sip.test", .rules)] = Self.rules(
            (20, 50, "s", "SIP+D2U", "_sip._udp.sip.test"), (10, 60, "s", "SIP+D2T", "_sip._tcp.sip.test"),
            (10, 50, "s", "SIP+D2S", "_sip._sctp.sip.test"), (10, 55, "a", "SIPS+D2T", "s2.sip.test"),
            (1, 1, "u", "E2U+sip", ""))
        zone[DNSQuestion("_sip._tcp.sip.test", .services)] = Self.services((1, 1, 5_062, "s1.sip.test"))
        zone[DNSQuestion("_sip._udp.sip.test", .services)] = Self.services((1, 1, 5_063, "s1.sip.test"))
        var run = Run(.best(isSecure: false), zone: zone)
        #expect(
            run.locate() == [
                "TLS 192.0.2.2:5061", "TLS [2001:db8::2]:5061", "TCP 192.0.2.1:5062", "UDP 192.0.2.1:5063",
            ])
    }

    @Test("Where plain text is not allowed, no record leads to it")
    func secure() {
        var zone = Self.hosts
        zone[DNSQuestion("sip.test", .rules)] = Self.rules(
            (10, 50, "s", "SIP+D2U", "_sip._udp.sip.test"), (20, 50, "s", "SIPS+D2T", "_sips._tcp.sip.test"))
        zone[DNSQuestion("_sip._udp.sip.test", .services)] = Self.services((1, 1, 5_060, "s1.sip.test"))
        zone[DNSQuestion("_sips._tcp.sip.test", .services)] = Self.services((1, 1, 5_061, "s1.sip.test"))
        var run = Run(.best(isSecure: true), zone: zone)
        #expect(run.locate() == ["TLS 192.0.2.1:5061"])
        zone[DNSQuestion("sip.test", .rules)] = Self.rules((10, 50, "s", "SIP+D2U", "_sip._udp.sip.test"))
        run = Run(.best(isSecure: true), zone: zone)
        #expect(run.locate() == ["TLS 192.0.2.1:5061"])
    }

    @Test("Without NAPTR records the SRV records of all transports are asked for at once")
    func noRules() {
        var zone = Self.hosts
        zone[DNSQuestion("_sip._udp.sip.test", .services)] = Self.services((1, 1, 5_060, "s1.sip.test"))
        var run = Run(.best(isSecure: false), zone: zone)
        #expect(run.locate() == ["UDP 192.0.2.1:5060"])
        #expect(run.asked.filter { $0.kind == .services }.count == 3)
    }

    @Test("The load is shared by weight: 3 to 1 over 400 draws, and each server is second where it is not first")
    func weights() {
        let records = [("a", 75), ("b", 25), ("c", 0)].map {
            SRVRecord(priority: 1, weight: UInt16($0.1), port: 5_060, target: $0.0)
        }
        var tokens = TokenSource(key: [UInt8](repeating: 3, count: 16))
        var first: [String: Int] = [:]
        for _ in 0..<400 {
            let ordered = ServerLocator.ordered(records, &tokens)
            #expect(Set(ordered.map(\.target)) == ["a", "b", "c"])
            first[ordered[0].target, default: 0] += 1
        }
        #expect((270...330).contains(first["a"] ?? 0), "\(first)")
        #expect((70...130).contains(first["b"] ?? 0), "\(first)")
        #expect((0...20).contains(first["c"] ?? 0), "\(first)")
    }

    @Test("An answer is kept as long as it may be, and not longer")
    func lifetimes() {
        var zone = Self.hosts
        zone[DNSQuestion("_sip._tcp.sip.test", .services)] =
            Self.services((1, 1, 5_060, "s1.sip.test"), lifetime: .seconds(100))
        var run = Run(.only(.tcp), zone: zone)
        _ = run.locate()
        run.now = run.now.advanced(by: .seconds(59))
        #expect(run.locate() == ["TCP 192.0.2.1:5060"] && run.asked.isEmpty)
        run.now = run.now.advanced(by: .seconds(2))
        #expect(run.locate() == ["TCP 192.0.2.1:5060"])
        #expect(run.asked == [DNSQuestion("s1.sip.test", .addresses)])
    }

    @Test(
        "That there is nothing is kept as long as the zone says, half a minute at most, and not at all if it says nothing"
    )
    func nothing() {
        let name = DNSQuestion("sip.test", .addresses)
        for (lifetime, kept) in [(Duration.zero, 0), (.seconds(7), 7), (.seconds(10_000), 30)] {
            var run = Run(.only(.tcp), port: 5_060, zone: [name: .nothing(lifetime: lifetime)])
            #expect(run.locate().isEmpty)
            run.zone = Self.hosts
            if kept > 0 {
                run.now = run.now.advanced(by: .milliseconds(1_000 * kept - 1))
                #expect(run.locate().isEmpty && run.asked.isEmpty)
                run.now = run.now.advanced(by: .milliseconds(1))
            }
            #expect(run.locate() == ["TCP 192.0.2.9:5060"])
        }
    }

    @Test(
        "A device that starts 8 s before its name exists is at its server 16 s after its start at the latest",
        arguments: 0..<50)
    func startsBeforeName(_ seed: Int) throws {
        var run = Run(.only(.tcp), port: 5_060, zone: [DNSQuestion("sip.test", .addresses): .nothing(lifetime: .zero)])
        var link = LinkMachine(keepalive: .seconds(25), seed: UInt64(seed))
        var outbox: [LinkMachine.Output] = []
        link.handle(.begin, at: run.now, into: &outbox)
        while run.now < .zero.advanced(by: .seconds(60)) {
            if case .open? = outbox.last { break }
            if outbox.last == .resolve {
                _ = run.locate()
                link.handle(.resolved(run.located ?? []), at: run.now, into: &outbox)
                continue
            }
            run.now = try #require(link.nextDeadline)
            if run.now >= .zero.advanced(by: .seconds(8)) { run.zone = Self.hosts }
            link.handle(.timerFired, at: run.now, into: &outbox)
        }
        #expect(run.now >= .zero.advanced(by: .seconds(8)) && run.now <= .zero.advanced(by: .seconds(16)))
    }

    @Test("No lifetime keeps a device at an address that its server has left for longer than five minutes")
    func longLifetime() {
        let name = DNSQuestion("sip.test", .addresses)
        var run = Run(
            .only(.tcp), port: 5_060, zone: [name: Self.addresses("192.0.2.8", lifetime: .seconds(604_800))])
        _ = run.locate()
        run.zone = Self.hosts
        run.now = run.now.advanced(by: .seconds(299))
        #expect(run.locate() == ["TCP 192.0.2.8:5060"] && run.asked.isEmpty)
        run.now = run.now.advanced(by: .seconds(1))
        #expect(run.locate() == ["TCP 192.0.2.9:5060"])
    }

    @Test("An answer that may not be kept counts for the question it answers")
    func noLifetime() {
        var run = Run(
            .only(.tcp), zone: [DNSQuestion("sip.test", .addresses): Self.addresses("192.0.2.9", lifetime: .zero)])
        #expect(run.locate() == ["TCP 192.0.2.9:5060"])
        #expect(run.locate() == ["TCP 192.0.2.9:5060"])
        #expect(run.asked.contains(DNSQuestion("sip.test", .addresses)))
    }

    @Test("While name servers fail, the old answer counts, and they are asked each time")
    func stale() {
        var run = Run(.only(.tcp), port: 5_060, zone: Self.hosts)
        _ = run.locate()
        run.zone = [DNSQuestion("sip.test", .addresses): .failed]
        run.now = run.now.advanced(by: .seconds(4_000))
        for _ in 0..<2 {
            #expect(run.locate() == ["TCP 192.0.2.9:5060"])
            #expect(run.asked.count == 1)
        }
        run.zone = [:]
        #expect(run.locate().isEmpty)
    }

    @Test("A server is asked for again while it is being found, and found once")
    func again() {
        var locator = ServerLocator(
            host: "sip.test", port: 5_060, choice: .only(.udp), key: [UInt8](repeating: 1, count: 16))
        var outbox: [ServerLocator.Output] = []
        let question = DNSQuestion("sip.test", .addresses)
        locator.handle(.locate, at: .zero, into: &outbox)
        locator.handle(.locate, at: .zero, into: &outbox)
        #expect(outbox == [.ask(question), .ask(question)])
        for _ in 0..<2 { locator.handle(.answered(question, Self.addresses("192.0.2.9")), at: .zero, into: &outbox) }
        #expect(outbox.count == 3)
    }

    @Test("Records without number lead to as many addresses as are tried, and no more answers are kept than fit")
    func bounds() {
        var zone: [DNSQuestion: DNSAnswer] = [:]
        let records = (0..<64).map { SRVRecord(priority: UInt16($0), weight: 0, port: 5_060, target: "s\($0).test") }
        zone[DNSQuestion("_sip._udp.sip.test", .services)] = .found(.services(records), lifetime: .seconds(60))
        for number in 0..<64 {
            zone[DNSQuestion("s\(number).test", .addresses)] = .found(
                .addresses((1...16).compactMap { SocketAddress(host: "10.0.\(number).\($0)", port: 0) }),
                lifetime: .seconds(60))
        }
        var run = Run(.only(.udp), zone: zone)
        #expect(run.locate().count == ServerLocator.mostTargets)
        #expect(run.asked.count < 20)
    }
}
