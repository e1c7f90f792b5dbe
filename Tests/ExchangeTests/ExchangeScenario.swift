@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Core

/// An exchange in virtual time, with devices that keep what they are sent.
struct ExchangeScenario {
    private(set) var timeline: Timeline<ExchangeCore>
    /// What each connection received, in order.
    private(set) var inboxes: [ConnectionID: [Received]] = [:]
    private(set) var closed: [ConnectionID: CloseReason] = [:]
    private(set) var notes: [ExchangeNote] = []
    /// Steps of invites, if they are traced.
    private(set) var inviteSteps: [InviteStep] = []
    /// What would be on disk, in order.
    private(set) var changes: [Change] = []
    /// Attempts at pushes that were begun, in order.
    private(set) var posts: [StoredPush] = []
    /// What became of the operator's orders.
    private(set) var results: [OrderNumber: OperatorResult] = [:]
    private var lastNumber: UInt64 = 0

    enum Received: Equatable {
        case response(RPCID, ClientResponse)
        case refusal(RPCID?, RPCError)
        case event(NumberedEvent)
    }

    static let users = [
        Account(id: "alice", publicIDs: ["alice@localhost"]),
        Account(id: "bob", publicIDs: ["bob@localhost", "+15550100"]),
        Account(id: "carol"),
    ]

    init(settings: ExchangeCore.Settings = .init(), users: [Account] = Self.users) {
        timeline = Timeline(ExchangeCore(accounts: users, settings: settings, run: 1))
        for user in users.map(\.id) {
            let grant = Grant(user: user, isAnonymous: false, application: "app")
            feed(.tokenIssued(SecretDigest(of: "token of \(user)"), grant))
        }
        feed(.tokenIssued(SecretDigest(of: "token of guest"), Grant(user: "guest", isAnonymous: true)))
    }

    /// An exchange that goes on with what is on disk.
    ///
    /// - Parameter changes: What was written before, for a test that looks at the disk again.
    init(
        restoring saved: Saved, at now: Instant, settings: ExchangeCore.Settings = .init(),
        users: [Account] = Self.users,
        after changes: [Change] = [], run: RunSeed = 2
    ) {
        self.changes = changes
        var core = ExchangeCore(accounts: users, settings: settings, run: run)
        core.restore(saved, at: now)
        timeline = Timeline(core, now: now)
    }

    var core: ExchangeCore { timeline.core }

    mutating func feed(_ input: ExchangeCore.Input) { sort(timeline.feed(input)) }

    /// Has the exchange do something for the operator.
    mutating func order(_ order: OperatorOrder) -> OperatorResult? {
        let number = OrderNumber(UInt64(results.count) + 1)
        feed(.ordered(number, order))
        return results[number]
    }

    mutating func adopt(_ settings: ExchangeCore.Settings) { timeline.core.adopt(settings) }

    mutating func advance(by duration: Duration) {
        let before = timeline.log.count
        timeline.advance(by: duration, firing: .timer)
        sort(timeline.log[before...].map(\.output))
    }

    private mutating func sort(_ outputs: [ExchangeCore.Output]) {
        for output in outputs {
            switch output {
            case .respond(let connection, let id, let response):
                inboxes[connection, default: []].append(.response(id, response))
            case .refuse(let connection, let id, let error):
                inboxes[connection, default: []].append(.refusal(id, error))
            case .event(let connections, let event):
                let numbered = NumberedEvent(sequence: event.sequence, event: event.event)
                for connection in connections { inboxes[connection, default: []].append(.event(numbered)) }
            case .close(let connection, let reason): closed[connection] = reason
            case .obeyed(let number, let result): results[number] = result
            case .note(let note): notes.append(note)
            case .traced(let step): inviteSteps.append(step)
            case .push(let push): posts.append(push)
            case .persist(let change): changes.append(change)
            }
        }
    }

    /// All that connections were sent, as the bytes that they get.
    var messages: [[UInt8]] {
        timeline.log.compactMap { entry in
            switch entry.output {
            case .respond(_, let id, let response): try? response.message(id: id)
            case .refuse(_, let id, let error): SignalCoding.failure(id: id, error)
            case .event(_, let event): event.message
            case .close, .obeyed, .note, .traced, .push, .persist: nil
            }
        }
    }

    // MARK: - Devices

    /// Opens a socket.
    mutating func connect() -> ConnectionID {
        lastNumber += 1
        let connection = ConnectionID(number: lastNumber)
        feed(.connected(connection))
        return connection
    }

    /// A device of `user` that is logged in and registered.
    mutating func device(
        _ id: DeviceID, of user: UserID, registers: Bool = true, resume: SessionStart.Resume? = nil
    ) -> ConnectionID {
        let connection = connect()
        let device = DeviceDescription(id: id, name: id.text)
        let token = Redacted("token of \(user)")
        request(.sessionStart(SessionStart(token: token, device: device, resume: resume)), from: connection)
        if registers { request(.deviceRegister(DeviceRegister(device: device)), from: connection) }
        inboxes[connection] = []
        return connection
    }

    /// Sends a request; answers with what the exchange said to it.
    @discardableResult
    mutating func request(_ request: ClientRequest, from connection: ConnectionID) -> Result<ClientResponse, RPCError> {
        let id = RPCID.number(Int64(timeline.log.count))
        let before = inboxes[connection]?.count ?? 0
        feed(.request(connection, id, request))
        for received in inboxes[connection]?.dropFirst(before) ?? [] {
            switch received {
            case .response(id, let response): return .success(response)
            case .refusal(id, let error): return .failure(error)
            case .response, .refusal, .event: continue
            }
        }
        return .failure(RPCError(.internalError, "no answer"))
    }

    /// The code with which the exchange refuses a request; `nil` if it does not.
    mutating func refusal(of request: ClientRequest, from connection: ConnectionID) -> RPCErrorCode? {
        guard case .failure(let error) = self.request(request, from: connection) else { return nil }
        return error.known
    }

    /// Sends an invite; answers with its id.
    mutating func invite(
        _ to: UserID, from connection: ConnectionID, data: JSONValue? = nil, ttl: Double = 30,
        payload: JSONValue? = nil, timeoutPayload: JSONValue? = nil, onlineOnly: Bool? = nil,
        key: IdempotencyKey = "key"
    ) -> InviteID {
        let params = InviteSend(
            to: [to], data: data, ttl: ttl, payload: payload, timeoutPayload: timeoutPayload, onlineOnly: onlineOnly,
            idempotencyKey: key)
        guard case .success(.invite(let result)) = request(.inviteSend(params), from: connection) else { return "none" }
        return result.invite
    }

    /// The session on a connection.
    func session(on connection: ConnectionID) -> Session? { core.sessions[connection] }

    /// With what a device that loses `connection` now goes on.
    func resumePoint(of connection: ConnectionID) -> SessionStart.Resume? {
        session(on: connection).map { .init(session: $0.id, after: core.streams[$0.endpoint.principal]?.sequence ?? 0) }
    }

    /// The events a connection received since last asked, in order.
    mutating func events(of connection: ConnectionID) -> [ExchangeEvent] {
        defer { inboxes[connection] = [] }
        return (inboxes[connection] ?? []).compactMap {
            if case .event(let numbered) = $0 { numbered.event } else { nil }
        }
    }
}

extension ExchangeCore {
    /// What is kept, and who pays for it.
    var quota: StorageQuota { effects.budget.quota }

    /// How many places with a user are taken by those whom it does not know.
    func strangersPlaces(with user: UserID) -> Int { invites.strangersPlaces(with: user, accounts.acquaintances) }
}

/// Tests give runs numbers.
extension RunSeed: ExpressibleByIntegerLiteral {
    /// A run with this number, which is the same again each time.
    public init(integerLiteral number: UInt64) {
        var generator = SeededGenerator(seed: number)
        self.init(using: &generator)
    }
}
