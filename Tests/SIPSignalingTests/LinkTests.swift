import Core
import SIP
@testable import SIPSignaling
import Testing

@Suite("An account's flow to its server")
struct LinkTests {
    /// A link on virtual time, with two servers.
    private struct Run {
        var link = LinkMachine(keepalive: .seconds(25), seed: 1)
        var now = Instant.zero
        var outputs: [LinkMachine.Output] = []
        let targets: [SIPTarget]
        let transport: SIPTransport

        init(_ transport: SIPTransport = .tcp, _ hosts: [String] = ["192.0.2.1", "192.0.2.2"]) {
            self.transport = transport
            targets = hosts.compactMap { SocketAddress(host: $0, port: 5_060) }
                .map { SIPTarget(transport: transport, address: $0) }
        }

        mutating func feed(_ input: LinkMachine.Input) {
            var outbox: [LinkMachine.Output] = []
            link.handle(input, at: now, into: &outbox)
            outputs += outbox
            if outbox.last == .resolve { feed(.resolved(targets)) }
        }

        mutating func run(_ duration: Duration) {
            let end = now.advanced(by: duration)
            while let next = link.nextDeadline, next <= end {
                now = max(now, next)
                feed(.timerFired)
            }
            now = end
        }

        /// Opens the flow that was asked for last.
        mutating func open(from host: String = "192.0.2.9") throws {
            let (number, target) = try #require(lastOpened)
            feed(
                .opened(
                    SIPFlow(
                        id: number, transport: target.transport, localHost: try #require(SIPHost(host)), localPort: 9)))
        }

        var lastOpened: (Int, SIPTarget)? {
            outputs.compactMap { if case .open(let number, let target) = $0 { (number, target) } else { nil } }.last
        }

        var pings: [LinkMachine.Keepalive] {
            outputs.compactMap { if case .ping(_, let kind) = $0 { kind } else { nil } }
        }
    }

    @Test("A server whose flow dies is tried after the others for two minutes, and then first again")
    func avoids() throws {
        var run = Run()
        run.feed(.begin)
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: true))
        #expect(run.lastOpened?.1 == run.targets[0])
        run.feed(.failed(1))
        run.run(.seconds(1))
        #expect(run.lastOpened?.1 == run.targets[1])
        try run.open()
        run.feed(.failed(2))
        run.run(.seconds(1))
        // Both have failed: in their order.
        #expect(run.lastOpened?.1 == run.targets[0])
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: false))
        run.run(.seconds(130))
        run.feed(.failed(3))
        run.run(.seconds(1))
        #expect(run.lastOpened?.1 == run.targets[1])
    }

    @Test("A server that does not serve us is avoided by the next flow, too")
    func refused() throws {
        var run = Run()
        run.feed(.begin)
        try run.open()
        run.feed(.notServed)
        #expect(run.lastOpened?.1 == run.targets[1])
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: false))
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        #expect(run.lastOpened?.1 == run.targets[1])
    }

    @Test("A server that serves each flow and ends it at once is asked ever more rarely; one that lasted, at once")
    func brief() throws {
        var run = Run(.tcp, ["192.0.2.1"])
        run.feed(.begin)
        var opened = 0
        // Whenever there is a flow, the server serves it and ends it.
        while run.now < .zero.advanced(by: .seconds(600)) {
            if let (number, _) = run.lastOpened, number > opened {
                opened = number
                try run.open()
                run.feed(.served(keepaliveSeconds: nil, answersPings: false))
                run.feed(.failed(number))
            }
            run.run(.milliseconds(100))
        }
        #expect(opened < 80, "\(opened)")
        while run.lastOpened?.0 == opened { run.run(.milliseconds(100)) }
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: false))
        run.run(.seconds(11))
        let last = try #require(run.lastOpened?.0)
        run.feed(.failed(last))
        run.run(.milliseconds(501))
        #expect(run.lastOpened?.0 == last + 1)
    }

    @Test(
        "The seconds between keepalives that a server asks for are 120 at most",
        arguments: [
            (604_800, 108), (60, 54), (1, 5),
        ] as [(UInt32, Int64)])
    func flowTimer(_ asked: UInt32, _ interval: Int64) throws {
        var run = Run(.udp)
        run.feed(.begin)
        try run.open()
        run.feed(.served(keepaliveSeconds: asked, answersPings: false))
        run.run(.seconds(interval) - .milliseconds(1))
        #expect(run.pings.count == 1)
        run.run(.milliseconds(1))
        #expect(run.pings.count == 2)
    }

    @Test("The reason why no address can be used is reported: there is none, it takes no flow, or it serves no client")
    func obstacles() throws {
        func last(_ run: Run) -> LinkMachine.Obstacle? {
            guard case .unreachable(_, let obstacle)? = run.outputs.last else { return nil }
            return obstacle
        }
        var nowhere = Run(.udp, [])
        nowhere.feed(.begin)
        #expect(last(nowhere) == .noAddress)
        for isSilent in [true, false] {
            var closed = Run(.tcp, ["192.0.2.1"])
            closed.feed(.begin)
            if isSilent { closed.run(LinkMachine.openTimeout) } else { closed.feed(.failed(1)) }
            #expect(last(closed) == .notOpened(closed.targets[0]))
        }
        var silent = Run(.udp, ["192.0.2.1"])
        silent.feed(.begin)
        try silent.open()
        silent.feed(.notServed)
        #expect(last(silent) == .notServed(silent.targets[0]))
    }

    @Test("A WebSocket is kept alive by its own pings, whose silence means that it is dead")
    func webSocket() throws {
        var run = Run(.wss)
        run.feed(.begin)
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: false))
        #expect(run.pings == [.webSocketPing])
        run.run(.seconds(11))
        #expect(run.outputs.contains(.close(1)))
    }

    @Test("A server with outbound over UDP gets binding requests, repeated until they are answered")
    func binding() throws {
        var run = Run(.udp)
        run.feed(.begin)
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: true))
        run.run(.milliseconds(600))
        #expect(run.pings == [.binding, .binding])
        let mapped = try #require(SocketAddress(host: "198.51.100.1", port: 7))
        run.feed(.mapped(1, mapped))
        run.run(.seconds(14))
        #expect(run.pings.count == 2)
        // From then on silence means that the flow is dead, before the interval is over.
        run.run(.seconds(11))
        #expect(run.outputs.contains(.close(1)))
    }

    @Test("Another mapped address is another flow")
    func remapped() throws {
        var run = Run(.udp)
        run.feed(.begin)
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: true))
        run.feed(.mapped(1, try #require(SocketAddress(host: "198.51.100.1", port: 7))))
        run.feed(.mapped(1, try #require(SocketAddress(host: "198.51.100.1", port: 7))))
        #expect(!run.outputs.contains(.close(1)))
        run.feed(.mapped(1, try #require(SocketAddress(host: "198.51.100.1", port: 8))))
        #expect(run.outputs.contains(.close(1)))
        // The server is not to blame.
        #expect(run.lastOpened?.1 == run.targets[0])
    }

    @Test("A server that answers no binding request gets line ends, and is not taken for dead")
    func noBinding() throws {
        var run = Run(.udp)
        run.feed(.begin)
        try run.open()
        run.feed(.served(keepaliveSeconds: nil, answersPings: true))
        run.run(.seconds(120))
        #expect(run.pings.last == .lineEnds)
        #expect(!run.outputs.contains(.close(1)))
        run.feed(.served(keepaliveSeconds: nil, answersPings: true))
        #expect(run.pings.last == .lineEnds)
    }

    @Test("Another address of ours means another flow at once; the same one a ping; none waits for a route")
    func networkChanges() throws {
        var run = Run()
        run.feed(.begin)
        try run.open(from: "192.0.2.9")
        run.feed(.served(keepaliveSeconds: nil, answersPings: true))
        run.feed(.ponged(1))
        let before = run.pings.count
        run.feed(.networkChanged(source: nil))
        #expect(run.pings.count == before)
        run.feed(.networkChanged(source: SIPHost("192.0.2.9")))
        #expect(run.pings.count == before + 1 && run.lastOpened?.0 == 1)
        let now = run.now
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        #expect(run.lastOpened?.0 == 2 && run.now == now)
        #expect(run.outputs.contains(.close(1)))
        // It had not failed.
        #expect(run.lastOpened?.1 == run.targets[0])
    }

    @Test("What waits or opens when the network changes is tried at once")
    func waits() throws {
        var run = Run(.tcp, ["192.0.2.1"])
        run.feed(.begin)
        run.feed(.networkChanged(source: SIPHost("192.0.2.9")))
        #expect(run.outputs.contains(.close(1)) && run.lastOpened?.0 == 2)
        run.feed(.failed(2))
        #expect(run.lastOpened?.0 == 2)
        run.feed(.networkChanged(source: SIPHost("192.0.2.9")))
        #expect(run.lastOpened?.0 == 3)
    }
}
