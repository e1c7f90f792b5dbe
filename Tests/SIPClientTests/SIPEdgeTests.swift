import HTTPTransport
import NIOCore
import NIOPosix
import Core
import SIP
import SIPSignaling
import Synchronization
import TestSupport
import Testing

@testable import SIPClient

@Suite("The sockets of a SIP account", .timeLimit(.minutes(1)))
struct SIPEdgeTests {
    /// Keeps what an edge tells, and says that calls use every flow of a stranger's.
    private final class Owner: SIPEdgeOwner, Sendable {
        private struct State {
            var opened: [SIPFlow] = []
            var received: [(message: SIPMessage, flow: SIPFlow)] = []
            var failed: [Int] = []
            var misplaced: [String] = []
            var faults: [SIPParseError] = []
        }

        private let state = Mutex(State())

        func opened(_ flow: SIPFlow) { state.withLock { $0.opened.append(flow) } }
        func failed(_ number: Int, _ reason: FlowFailure) { state.withLock { $0.failed.append(number) } }
        func received(_ message: SIPMessage, _ flow: SIPFlow) { state.withLock { $0.received.append((message, flow)) } }
        func ponged(_ number: Int) {}
        func mapped(_ number: Int, _ address: PeerAddress) {}
        func misplaced(_ status: Int, from peer: PeerAddress, by number: Int) {
            state.withLock { $0.misplaced.append("\(status) \(peer.port) \(number)") }
        }
        func unreadable(_ fault: SIPParseError, from peer: PeerAddress) { state.withLock { $0.faults.append(fault) } }
        func admits(_ message: SIPMessage, by flow: SIPFlow) -> Bool { true }
        func expects(_ host: SIPHost) -> Bool { false }
        func isInUse(_ number: Int) -> Bool { number < 0 }

        var flow: SIPFlow? { state.withLock { $0.opened.first } }
        var messages: [(message: SIPMessage, flow: SIPFlow)] { state.withLock { $0.received } }
        var failures: [Int] { state.withLock { $0.failed } }
        var misplacements: [String] { state.withLock { $0.misplaced } }
        var faults: [SIPParseError] { state.withLock { $0.faults } }
    }

    private static func request(_ branch: String) throws -> SIPMessage {
        let text =
            "OPTIONS sip:alice@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;rport;branch=z9hG4bK\(branch)\r\n"
            + "From: <sip:bob@sip.test>;tag=b\r\nTo: <sip:alice@sip.test>\r\nCall-ID: \(branch)\r\n"
            + "CSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
        return try SIPMessage(parsing: Array(text.utf8))
    }

    @Test(
        "A response from the server's host but another port is dropped, counted and reported; one from its port is taken"
    )
    func misplaced() async throws {
        let server = try await ScriptedServer(.udp) { _ in nil }
        let other = try await ScriptedServer(.udp) { _ in nil }
        defer {
            server.close()
            other.close()
        }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let owner = Owner()
        let edge = try await edge(to: server, owner, loop)
        let port = try #require(owner.flow?.localPort)
        guard case .request(let request) = try Self.request("first") else { return }
        other.send(SIPMessage.response(SIPResponse(401, to: request)).bytes, to: port)
        try await until { owner.misplacements == ["401 \(other.port) 1"] }
        server.send(SIPMessage.response(SIPResponse(200, to: request)).bytes, to: port)
        try await until { owner.messages.count == 1 }
        server.send(Array("SIP/2.0 200 OK\r\nCSeq: broken\r\n\r\n".utf8), to: port)
        try await until { owner.faults.count == 1 }
        #expect(owner.faults[0].answer == nil)
        let counts = try await loop.submit { [edge.value.misplacedResponses, edge.value.droppedDatagrams] }.get()
        #expect(counts == [1, 2])
    }

    /// An edge with a flow to a server.
    private func edge(
        to server: ScriptedServer, _ owner: Owner, _ loop: any EventLoop
    ) async throws -> NIOLoopBoundBox<SIPEdge> {
        let address = try #require(PeerAddress(host: "127.0.0.1", port: server.port))
        let target = SIPTarget(transport: .udp, address: address)
        let trust = try TLSTrust(trustRootFile: nil)
        let edge = NIOLoopBoundBox.makeBoxSendingValue(
            SIPEdge(
                on: loop, trust: trust,
                server: SIPServiceConfiguration.Server(host: "127.0.0.1", port: server.port, transport: .udp),
                localPort: 0),
            eventLoop: loop)
        try await loop.submit {
            edge.value.attach(to: owner)
            edge.value.trust([target])
            edge.value.open(1, target)
        }.get()
        try await until { owner.flow != nil }
        return edge
    }

    @Test("A call with another node of the server continues by the socket whose own flow is given up")
    func retired() async throws {
        let (server, node) = (try await ScriptedServer(.udp), try await ScriptedServer(.udp) { _ in nil })
        defer {
            server.close()
            node.close()
        }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let owner = Owner()
        let edge = try await edge(to: server, owner, loop)
        let port = try #require(owner.flow?.localPort)
        node.send(try Self.request("first").bytes, to: port)
        try await until { owner.messages.count == 1 }
        let flow = try #require(owner.messages.first?.flow)
        #expect(flow.id < 0)
        try await loop.submit { edge.value.close(1) }.get()
        // The node still finds us where it knows us, and we answer.
        node.send(try Self.request("second").bytes, to: port)
        try await until { owner.messages.count == 2 }
        #expect(owner.messages.last?.flow == flow && owner.failures.isEmpty)
        let answer = try Self.request("third")
        _ = try await loop.submit { edge.value.transmit(answer, flow) }.get()
        try await until { !node.received.isEmpty }
    }
}
