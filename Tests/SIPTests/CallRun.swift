import SIP
import TestSupport
import Testing
import Core

/// Two user agents on virtual time, and a wire between them that tests can hold up, lose from and read.
struct CallRun {
    enum Side: Int, CaseIterable, Sendable {
        case alice
        case bob
        var other: Side { self == .alice ? .bob : .alice }
    }

    struct Packet {
        let message: SIPMessage
        let to: Side
        let due: Instant
    }

    private(set) var agents: [UserAgent]
    private(set) var now = Instant.zero
    private(set) var events: [[(call: SIPCall, event: CallEvent)]] = [[], []]
    /// Every message that was sent, in order: who sent it, when, and its method or status with the method of its `CSeq`.
    private(set) var sent: [(from: Side, at: Duration, line: String, message: SIPMessage)] = []
    private var wire: [Packet] = []
    /// One way.
    var delay: Duration = .milliseconds(10)
    /// Lines that are lost on their way from that side, as in ``sent``; each entry loses one message.
    var losses: [(from: Side, line: String)] = []
    let flow: SIPFlow

    typealias Change = (inout UserAgentConfiguration) -> Void

    init(transport: SIPTransport = .udp, alice: @escaping Change = { _ in }, bob: @escaping Change = { _ in }) {
        flow = Sample.flow(1, transport)
        agents = []
        for (name, key, change) in [("alice", UInt8(1), alice), ("bob", 2, bob)] {
            var configuration = UserAgentConfiguration(
                address: NameAddress(Sample.uri("sip:\(name)@\(name).example"), displayName: name))
            change(&configuration)
            agents.append(
                UserAgent(
                    configuration, contact: Sample.uri("sip:\(name)@192.0.2.\(key)"),
                    key: [UInt8](repeating: key, count: 16)))
        }
    }

    static func line(_ message: SIPMessage) -> String {
        switch message {
        case .request(let request): request.method.rawValue
        case .response(let response): "\(response.status) \(response.headers.sequence?.method.rawValue ?? "")"
        }
    }

    mutating func command(_ side: Side, _ call: SIPCall, _ command: CallCommand) {
        feed(.command(call, command), side)
    }

    /// Gives one side a message as if it came from the wire now.
    mutating func inject(_ message: SIPMessage, to side: Side) { feed(.received(message, flow), side) }

    mutating func register(_ side: Side, _ contact: AnyURI, _ routes: [NameAddress]) {
        feed(.registered(contact: contact, routes: routes), side)
    }

    mutating func failFlow(_ side: Side) { feed(.flowFailed(flow), side) }

    private mutating func feed(_ input: UserAgentInput, _ side: Side) {
        var outbox: [UserAgentOutput] = []
        agents[side.rawValue].handle(input, at: now, into: &outbox)
        for output in outbox {
            switch output {
            case .call(let call, let event): events[side.rawValue].append((call, event))
            // Neither has a mailbox.
            case .subscription, .mailbox: break
            case .transmit(let message, _):
                let line = Self.line(message)
                sent.append((side, Instant.zero.duration(to: now), line, message))
                if let index = losses.firstIndex(where: { $0.from == side && $0.line == line }) {
                    losses.remove(at: index)
                } else {
                    wire.append(Packet(message: message, to: side.other, due: now.advanced(by: delay)))
                }
            }
        }
    }

    /// Moves time on; messages and timers come in their order.
    mutating func run(_ duration: Duration) throws {
        let end = now.advanced(by: duration)
        while true {
            let packet = wire.indices.min { wire[$0].due < wire[$1].due }
            let timers = Side.allCases.compactMap { side in
                agents[side.rawValue].nextDeadline.map { (side, $0) }
            }
            let timer = timers.min { $0.1 < $1.1 }
            let next = [packet.map { wire[$0].due }, timer?.1].compactMap { $0 }.min()
            guard let next, next <= end else { break }
            now = max(now, next)
            if let packet, wire[packet].due <= next {
                let arrived = wire.remove(at: packet)
                // Everything passes the parser and the writer.
                feed(.received(try SIPMessage(parsing: arrived.message.bytes), flow), arrived.to)
            } else if let timer {
                feed(.timerFired, timer.0)
            }
        }
        now = end
    }

    /// The events of one call.
    func events(_ side: Side, _ call: SIPCall) -> [CallEvent] {
        events[side.rawValue].filter { $0.call == call }.map(\.event)
    }

    func ends(_ side: Side, _ call: SIPCall) -> [CallEnd] {
        events(side, call).compactMap { if case .ended(let end) = $0 { end } else { nil } }
    }

    func count(_ side: Side, _ line: String) -> Int { sent.count { $0.from == side && $0.line == line } }

    func last(_ side: Side, _ line: String) throws -> SIPMessage {
        try #require(sent.last { $0.from == side && $0.line == line }?.message)
    }

    static let a = SIPCall.outgoing(1)
    static let b = SIPCall.incoming(1)
    static let offer = Array("offer".utf8)
    static let reply = Array("answer".utf8)

    mutating func place(_ number: UInt64 = 1, to uri: String = "sip:bob@bob.example", from side: Side = .alice) {
        command(side, .outgoing(number), .place(to: Sample.uri(uri), offer: Self.offer, flow, replacing: nil))
    }

    /// A call from Alice to Bob that both have confirmed.
    mutating func connect() throws {
        place()
        try run(.milliseconds(100))
        command(.bob, Self.b, .accept(Self.reply))
        try run(.milliseconds(100))
        #expect(events(.alice, Self.a).contains(.accepted(Self.reply)))
        #expect(events(.bob, Self.b).contains(.confirmed(nil)))
    }

    /// Nothing is left at either side once all timers have run out.
    mutating func expectNothingLeft() throws {
        try run(.seconds(200))
        for agent in agents {
            #expect(agent.callsInMemory == 0)
            #expect(agent.transactionsInMemory == 0)
        }
    }
}
