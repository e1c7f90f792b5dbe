import CallAgent
import CallControl
import ExchangeCore
import ExchangeServer
import Foundation
import Logging
import SIP
import SignalWire
import SignalingClient
import Synchronization
import Testing
import TrunkGateway

/// Keeps what is logged.
struct KeptLines: LogHandler {
    final class Lines: Sendable {
        private let lines = Mutex<[(message: String, metadata: [String: String])]>([])
        var all: [String] { lines.withLock { $0.map(\.message) } }
        func add(_ message: String, _ metadata: [String: String]) { lines.withLock { $0.append((message, metadata)) } }
        /// What is said beside each line of this message.
        func metadata(of message: String) -> [[String: String]] {
            lines.withLock { $0.filter { $0.message == message }.map(\.metadata) }
        }
    }

    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        lines.add("\(event.message)", (event.metadata ?? [:]).mapValues { "\($0)" })
    }
}

@Suite("Calls that a trunk's device refuses", .timeLimit(.minutes(2))) struct TrunkRefusalTests {
    /// What keeps a call from being taken.
    enum Obstacle: CaseIterable, Sendable { case none, draining, caller, limit }

    /// The trunk's configuration. Its devices are made by the test.
    private func configuration() throws -> TrunkConfiguration {
        let folder = FileManager.default.temporaryDirectory.appending(path: "handset-trunk-\(UUID())").path()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = [
            "trunk.yaml":
                "exchange: exchange.yaml\nnetwork: network.yaml\nincoming: [{ number: '300', user: alice }]\n",
            "token": "secret\n",
            "exchange.yaml": "account: { kind: media_token, media_token_file: token }\n",
            "network.yaml": """
            account:
              kind: sip
              password_file: token
              allow_plain_text: true
              sip: { address: 'sip:trunk@sip.test', server: '127.0.0.1:5060' }
            media: { allow_plain_rtp: true }

            """,
        ]
        for (name, text) in files { try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8) }
        return try TrunkConfiguration.read(path: "\(folder)/trunk.yaml")
    }

    @Test("Nothing is placed on the other side for a call that is refused on this one", arguments: Obstacle.allCases)
    func refused(obstacle: Obstacle) async throws {
        let site = try await Site(users: ["alice", "desk", "line"]) { configuration in
            var trunk = Trunk(user: "desk", numbers: [NumberPattern("2??")].compactMap { $0 })
            trunk.callers = ["alice"]
            configuration.trunks = [trunk]
        }
        var answer = AnswerPolicy(manner: .ring)
        if obstacle == .caller { answer.callers = .only(["bob"]) }
        if obstacle == .limit { answer.callLimit = .calls(0) }
        let desk = try await site.device("desk", named: "trunk", answer: answer, connects: false)
        let line = try await site.device("line", named: "line", connects: false)
        let lines = KeptLines.Lines()
        let gateway = TrunkGateway(
            try configuration(), exchange: desk.device, network: line.device,
            logger: Logger(label: "trunk") { _ in KeptLines(lines: lines) })
        try await gateway.connect()
        if obstacle == .draining { await desk.device.setDraining(true) }

        let alice = try await site.device("alice", named: "mobile")
        _ = await alice.device.call("201", audio: AudioBehaviour(source: .silence))
        let record = try await alice.ended().record
        // Whatever the devices have told is heard by then.
        await gateway.shutDown()
        #expect(lines.all.contains("A call comes in"))
        // Nobody is called 201 on the other side, so that a call that is placed there fails.
        #expect(lines.all.contains("Its other half is placed") == (obstacle == .none))
        #expect(obstacle == .none || record.reason == (obstacle == .caller ? .declined : .busy))
        try await site.close(alice)
    }

    @Test("A trunk passes on how many calls led to one, both ways, with one more, and carries on none behind the fifth")
    func hops() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let site = try await Site(users: ["alice", "desk"]) { configuration in
            var trunk = Trunk(user: "desk", numbers: [NumberPattern("2??")].compactMap { $0 })
            trunk.callers = ["alice"]
            configuration.trunks = [trunk]
        }
        let desk = try await site.device("desk", named: "trunk", connects: false)
        let line = try await telephone.device(
            "media: { offers: plain, allow_plain_rtp: true }", "answer: { mode: ring, max_calls: 4 }",
            connects: false)
        let gateway = TrunkGateway(
            try configuration(), exchange: desk.device, network: line.device,
            logger: Logger(label: "trunk") { _ in SwiftLogNoOpLogHandler() })
        try await gateway.connect()

        let alice = try site.service("alice", named: "mobile")
        try await alice.connect()
        var events = alice.events.makeAsyncIterator()
        func call(_ hops: Int) async throws {
            var options = InviteOptions(to: "201", idempotencyKey: IdempotencyKey(ours: "key \(hops)"))
            options.offer = .offer(SIPTelephone.description(SIPTelephone.pcmu))
            options.hops = CallHops(hops)
            _ = try await alice.invite(options)
        }
        try await call(CallHops.most)
        var rejection: InviteRejection?
        while rejection == nil, let event = await events.next() {
            if case .inviteRejected(let answer) = event { rejection = answer.rejection }
        }
        #expect(rejection == InviteRejection(.failed, cause: .tooManyHops))
        try await call(3)
        let invite = try await telephone.request(.invite)
        #expect(invite.headers["Handset-Hops"] == "4")
        telephone.answer(486, invite)

        let offer = SIPTelephone.description(SIPTelephone.pcmu)
        try telephone.post("INVITE", 1, of: "in", to: "<sip:300@sip.test>", body: offer, ["Handset-Hops: 1"])
        var received: ReceivedInvite?
        while received == nil, let event = await events.next() {
            if case .inviteReceived(let invite) = event { received = invite }
        }
        #expect(received?.hops.count == 2)
        await gateway.shutDown()
        await alice.disconnect()
        try await site.close()
    }
}
