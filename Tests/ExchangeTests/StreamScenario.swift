@testable import ExchangeCore
import JSON
import SDP
import SignalSupport
import SignalWire
import TestSupport
import Core

/// Streams and the exchange that they are part of, in virtual time.
struct StreamScenario {
    private(set) var exchange = ExchangeScenario()
    private var table: StreamTable
    private(set) var replies: [TraceID: StreamReply] = [:]
    private var attached: [ConnectionID: Int] = [:]
    private var lastStream: UInt64 = 0

    init(settings: StreamTable.Settings = .init()) { table = StreamTable(settings: settings) }

    var sessions: [StreamID: StreamSession] { table.sessions }
    var lateCandidates: Int { table.lateCandidates }
    /// Requests of streams that the exchange refused.
    private(set) var refusals: [RPCError] = []

    // MARK: - Clients

    /// A client offers a stream; answers with the request's name and the session's id.
    mutating func offer(
        to callee: UserID = "bob", as caller: UserID = "alice", kind: StreamKind = .whip,
        _ text: String = StreamTexts.offer
    ) throws -> (ticket: TraceID, id: StreamID) {
        lastStream += 1
        let opening = StreamOpening(
            id: "stream\(lastStream)", kind: kind, caller: caller, callee: callee, token: SecretDigest(of: "token"),
            offer: try SessionDescription(parsing: text), connection: ConnectionID(number: 1_000 + lastStream))
        let ticket = TraceID()
        feed(.offered(opening, ticket))
        return (ticket, opening.id)
    }

    /// A client sends a fragment; answers with the request's name.
    mutating func patch(_ id: StreamID, _ fragment: ICEFragment, ifMatch: String? = "\"1\"") -> TraceID {
        let ticket = TraceID()
        feed(.patched(id, fragment, ifMatch: ifMatch.map { [$0] } ?? [], ticket))
        return ticket
    }

    /// What an offer is answered at once.
    mutating func offered(to callee: UserID = "bob", as caller: UserID = "alice") throws -> StreamReply? {
        let ticket = try offer(to: callee, as: caller).ticket
        return replies[ticket]
    }

    /// What a PATCH is answered at once.
    mutating func patched(_ id: StreamID, _ fragment: ICEFragment, ifMatch: String? = "\"1\"") -> StreamReply? {
        let ticket = patch(id, fragment, ifMatch: ifMatch)
        return replies[ticket]
    }

    mutating func delete(_ id: StreamID) -> StreamReply? {
        let ticket = TraceID()
        feed(.deleted(id, ticket))
        return replies[ticket]
    }

    mutating func feed(_ input: StreamTable.Input) {
        var outbox: [StreamTable.Output] = []
        table.handle(input, at: exchange.timeline.now, into: &outbox)
        for output in outbox {
            switch output {
            case .attach(let connection, let endpoint, let token):
                attached[connection] = 0
                exchange.feed(.attached(connection, endpoint, token: token))
            case .request(let connection, let id, let request): exchange.feed(.request(connection, id, request))
            case .detach(let connection):
                attached[connection] = nil
                exchange.feed(.request(connection, .string("end"), .sessionEnd(SessionEnd())))
                exchange.feed(.disconnected(connection))
            case .reply(let ticket, let reply): replies[ticket] = reply
            }
            deliver()
        }
    }

    /// Gives streams what the exchange has told them since.
    private mutating func deliver() {
        for (connection, read) in attached {
            let inbox = exchange.inboxes[connection] ?? []
            guard attached[connection] != nil, read < inbox.count else { continue }
            attached[connection] = inbox.count
            for received in inbox[read...] {
                switch received {
                case .response(let id, let response): feed(.delivered(connection, .response(id, response)))
                case .refusal(let id, let error):
                    refusals.append(error)
                    feed(.delivered(connection, .refusal(id, error)))
                case .event(let event): feed(.delivered(connection, .event(event.event)))
                }
            }
        }
    }

    mutating func advance(by duration: Duration) {
        let step = Duration.milliseconds(50)
        for _ in 0..<Int(duration.milliseconds / step.milliseconds) {
            exchange.advance(by: step)
            deliver()
            feed(.timer)
        }
    }

    // MARK: - Devices

    mutating func device(_ id: DeviceID, of user: UserID) -> ConnectionID { exchange.device(id, of: user) }

    mutating func request(_ request: ClientRequest, from device: ConnectionID) -> RPCErrorCode? {
        defer { deliver() }
        return exchange.refusal(of: request, from: device)
    }

    mutating func events(of device: ConnectionID) -> [ExchangeEvent] { exchange.events(of: device) }

    /// Has the exchange do something for the operator.
    mutating func order(_ order: OperatorOrder) -> OperatorResult? {
        defer { deliver() }
        return exchange.order(order)
    }

    mutating func lose(_ device: ConnectionID) { exchange.feed(.disconnected(device)) }

    /// The invite that a device hears of.
    mutating func invite(at device: ConnectionID) -> InviteReceived? {
        for event in events(of: device) { if case .inviteReceived(let invite) = event { return invite } }
        return nil
    }

    /// A device takes the invite that it heard of; answers with the invite.
    mutating func accept(at device: ConnectionID, _ answer: String = StreamTexts.answer) -> InviteID {
        guard let invite = invite(at: device) else { return "none" }
        let data: JSONValue = ["answer": ["type": "answer", "sdp": .string(answer)]]
        _ = request(.inviteAccept(InviteAccept(invite: invite.invite, data: data)), from: device)
        return invite.invite
    }

    /// A device tells a candidate of its own, or the end of them.
    mutating func trickle(_ candidate: String, _ invite: InviteID, from device: ConnectionID) {
        let data: JSONValue = ["candidate": .string(candidate), "sdpMid": "0", "sdpMLineIndex": 0]
        _ = request(.callSignal(CallSignal(invite: invite, type: "candidate", data: data)), from: device)
    }

    /// A stream that is up; answers with its id and its invite.
    mutating func stream(to device: ConnectionID) throws -> (id: StreamID, invite: InviteID) {
        let (_, id) = try offer()
        return (id, accept(at: device, StreamTexts.answer + "a=end-of-candidates\r\n"))
    }

    /// The signals that a device has heard since last asked.
    mutating func signals(at device: ConnectionID) -> [CallSignalled] {
        events(of: device).compactMap { if case .callSignal(let signal) = $0 { signal } else { nil } }
    }
}

/// Descriptions as clients and devices write them.
enum StreamTexts {
    static let fingerprint = "sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":")

    static let offer = description(
        ufrag: "clnt", pwd: "clientclientclientclient", setup: "actpass", direction: "sendonly",
        candidates: ["1 1 UDP 2130706431 127.0.0.1 50000 typ host"])
    static let answer = description(
        ufrag: "devi", pwd: "devicedevicedevicedevice", setup: "active", direction: "recvonly")

    static func description(
        ufrag: String, pwd: String, setup: String, direction: String, candidates: [String] = []
    ) -> String {
        ([
            "v=0", "o=- 7 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111",
            "c=IN IP4 0.0.0.0", "a=mid:0", "a=ice-ufrag:\(ufrag)", "a=ice-pwd:\(pwd)", "a=fingerprint:\(fingerprint)",
            "a=setup:\(setup)", "a=rtcp-mux", "a=\(direction)", "a=rtpmap:111 opus/48000/2",
        ] + candidates.map { "a=candidate:\($0)" }).map { $0 + "\r\n" }.joined()
    }
}
