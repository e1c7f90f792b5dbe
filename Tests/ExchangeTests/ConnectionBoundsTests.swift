@testable import ExchangeCore
@testable import ExchangeServer
import HTTPTransport
import Core
import SignalWire
import Testing

private func address(_ text: String) throws -> ClientAddress { try #require(ClientAddress(text)) }

@Suite struct ConnectionBoundsTests {
    @Test("Without a configured bound as many connections come as the limit on open files leaves room for")
    func defaults() {
        let usual = ConnectionBounds(total: nil, perAddress: nil, descriptors: 1_024, outgoing: 16)
        #expect(usual.total == 1_024 - ConnectionBounds.otherDescriptors - 16 && !usual.isCut)
        #expect(usual.perAddress == usual.total / 8 && usual.fromThisMachine == usual.total / 2)
        let large = ConnectionBounds(total: nil, perAddress: nil, descriptors: 1 << 30, outgoing: 0)
        #expect(large.total == 200_000 && large.perAddress == 25_000)
        let small = ConnectionBounds(total: nil, perAddress: nil, descriptors: 64, outgoing: 0)
        #expect(small.total == 32 && small.perAddress == 8 && small.fromThisMachine == 16)
    }

    @Test("By default connections fit into a quarter of the memory beyond 64 MiB, fewer over TLS, unless one is given")
    func defaultsByMemory() {
        func total(_ given: Int?, _ mebibytes: Int, isEncrypted: Bool) -> Int {
            ConnectionBounds(
                total: given, perAddress: nil, descriptors: 1 << 20, outgoing: 0, memory: mebibytes << 20,
                isEncrypted: isEncrypted
            ).total
        }
        #expect(total(nil, 128, isEncrypted: false) == 1_638 && total(nil, 128, isEncrypted: true) == 170)
        #expect(total(nil, 65_536, isEncrypted: false) == 200_000)
        #expect(total(nil, 16, isEncrypted: true) == 85, "as with the least that can be kept")
        #expect(total(5_000, 128, isEncrypted: true) == 5_000)
    }

    @Test("However low the limit on open files, one connection comes, and the bounds hold together")
    func extremes() {
        for descriptors in 0...200 {
            for wanted in [nil, 1, 5, 1_000] {
                let bounds = ConnectionBounds(
                    total: wanted, perAddress: wanted, fromThisMachine: wanted, descriptors: descriptors, outgoing: 8)
                #expect(bounds.total >= 1 && (1...bounds.total).contains(bounds.perAddress))
                #expect((1...bounds.total).contains(bounds.fromThisMachine))
                #expect(bounds.total <= max(1, descriptors - ConnectionBounds.otherDescriptors - 8))
                #expect(bounds.isCut == (wanted.map { $0 > bounds.total } ?? false))
            }
        }
    }

    @Test("One address gets its share of the connections and no more, others come in, and who leaves makes room")
    func census() throws {
        var census = ConnectionCensus<ClientAddress>(limit: 6, clientLimit: 2)
        let (one, other) = (try address("192.0.2.1"), try address("198.51.100.7"))
        try census.admit(one)
        try census.admit(one)
        #expect(throws: ConnectionRefusal.addressFull) { try census.admit(one) }
        try census.admit(other)
        census.leave(one)
        try census.admit(one)
        for _ in 0..<3 { try census.admit(nil) }
        #expect(throws: ConnectionRefusal.full) { try census.admit(nil) }
        #expect(census.total == 6 && census.connections(from: one) == 2)
    }

    @Test("One client may have a limit of its own, and all addresses of this machine are one")
    func special() throws {
        var census = ConnectionCensus<ClientAddress>(limit: 100, clientLimit: 1, special: (.thisMachine, 3))
        for _ in 0..<3 { try census.admit(.thisMachine) }
        #expect(throws: ConnectionRefusal.addressFull) { try census.admit(.thisMachine) }
        try census.admit(address("192.0.2.1"))
        #expect(throws: ConnectionRefusal.addressFull) { try census.admit(address("192.0.2.1")) }
        #expect(
            try address("127.0.0.1") == .thisMachine && address("127.9.8.7").isThisMachine
                && address("::1").isThisMachine)
    }

    @Test("All of a /64 is one address")
    func networks() throws {
        var census = ConnectionCensus<ClientAddress>(limit: 100, clientLimit: 3)
        for host in 1...3 { try census.admit(address("2001:db8:1:2::\(host)")) }
        #expect(throws: ConnectionRefusal.addressFull) { try census.admit(address("2001:db8:1:2:ffff::9")) }
        try census.admit(address("2001:db8:1:3::1"))
    }

    @Test("A proxy's connection counts for the client that it speaks for, and for the next one after it")
    func proxies() throws {
        var census = ConnectionCensus<ClientAddress>(limit: 100, clientLimit: 1)
        let (one, other) = (try address("192.0.2.1"), try address("198.51.100.7"))
        try census.admit(nil)
        try census.admit(nil)
        try census.move(from: nil, to: one)
        try census.move(from: one, to: one)
        #expect(throws: ConnectionRefusal.addressFull) { try census.move(from: nil, to: one) }
        try census.move(from: one, to: other)
        try census.move(from: nil, to: one)
        census.leave(one)
        census.leave(other)
        #expect(census.total == 0 && census.connections(from: one) == 0 && census.connections(from: other) == 0)
    }

    @Test("A lasting problem is reported when it begins and when it has ended, and counted meanwhile")
    func episodes() {
        var episode = Episode()
        var now = Instant(nanoseconds: 0)
        var begins = episode.happen(at: now)
        #expect(begins)
        for _ in 0..<1_000 {
            now = now.advanced(by: .milliseconds(29_900))
            let end = episode.end(at: now)
            begins = episode.happen(at: now)
            #expect(end == nil && !begins)
        }
        #expect(episode.nextDeadline == now.advanced(by: Episode.calm))
        now = now.advanced(by: Episode.calm)
        let (end, again) = (episode.end(at: now), episode.end(at: now))
        #expect(end == 1_001 && again == nil && episode.nextDeadline == nil)
        begins = episode.happen(at: now)
        #expect(begins)
    }

    @Test(
        "Without descriptors some clients are notified, then nothing is accepted for longer and longer, up to a second"
    )
    func backoff() {
        var backoff = AcceptBackoff()
        var (time, shed, steps) = (Duration.zero, 0, 0)
        while time < .seconds(60) {
            steps += 1
            switch backoff.failed(hasReserve: true) {
            case .shed: shed += 1
            case .pause(let pause): time += pause
            }
        }
        // A minute's failures are few, however many wait: without a pause there are 100,000 a second.
        #expect((1_800...2_200).contains(shed) && steps < 2_300)

        backoff.succeeded()
        let pauses = (0..<10).map { _ in backoff.failed(hasReserve: false) }
        #expect(pauses.first == .pause(AcceptBackoff.shortest) && pauses.last == .pause(AcceptBackoff.longest))
    }

    @Test("Memory is given back a while after a thousand connections have closed, and not sooner")
    func memory() {
        var memory = MemoryReturn()
        var now = Instant(nanoseconds: 0)
        for _ in 1..<MemoryReturn.closings { memory.closed(at: now) }
        var isDue = memory.take(at: now)
        #expect(memory.nextDeadline == nil && !isDue)
        memory.closed(at: now)
        #expect(memory.nextDeadline == now.advanced(by: MemoryReturn.delay))
        now = now.advanced(by: .seconds(5))
        for _ in 0..<5_000 { memory.closed(at: now) }
        isDue = memory.take(at: now)
        #expect(memory.nextDeadline == Instant(nanoseconds: 0).advanced(by: MemoryReturn.delay) && !isDue)
        now = now.advanced(by: .seconds(10))
        isDue = memory.take(at: now)
        #expect(isDue && memory.nextDeadline == nil)
    }
}
