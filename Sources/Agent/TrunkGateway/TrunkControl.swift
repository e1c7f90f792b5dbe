internal import CallAgent
internal import CallControl
public import ControlPlane
internal import ControlWire
internal import Core
internal import Glibc
internal import HTTPTransport
public import Logging
internal import NIOCore
internal import Realtime

/// The control interface of a running trunk, with a thread of its own.
public final class TrunkControl: Sendable {
    private let host: ControlHost<TrunkPoint>

    private init(_ host: ControlHost<TrunkPoint>) { self.host = host }

    /// Accepts clients from now on, and keeps what happens at the trunk.
    ///
    /// - Parameters:
    ///   - socket: That of the configuration, opened before anything else that others would notice.
    ///   - version: The program's, for the status.
    /// - Throws: An error that says which address or file cannot be used, and what to try.
    public static func start(
        _ socket: ControlSocket, _ configuration: TrunkConfiguration, of gateway: TrunkGateway, version: String,
        logger: Logger
    ) async throws -> TrunkControl {
        let facts = TrunkFacts(configuration, version: version)
        let host = try await ControlHost.start(
            socket, configuration.control?.network, historyFolder: configuration.control?.historyFolder,
            webhooks: configuration.control?.webhooks ?? [], logger: logger
        ) { front, _ in TrunkPoint(gateway, facts, front) }
        let store = host.store
        await gateway.observe { report in
            let time = MonotonicClock.wallNanoseconds / 1_000_000
            store.add(TrunkHappening(report).line(atMilliseconds: time))
        }
        return TrunkControl(host)
    }

    /// The port on TCP; nil without TCP.
    var port: Int? { host.port }

    /// What it has counted since the start.
    package func figures() async -> ControlFigures { await host.figures() }

    /// Disconnects all clients, accepts no more, and completes the history on disk.
    public func close() async { await host.close() }
}

/// What of the process its state has.
struct TrunkFacts: Sendable {
    let version: String
    let mostCalls: Int
    let servers: [TrunkSide: String]
    private let began = MonotonicClock.now

    init(_ configuration: TrunkConfiguration, version: String) {
        self.version = version
        mostCalls = configuration.callLimit
        servers = [
            .exchange: ControlStatus.server(ofURL: configuration.exchange.account.eventsURL),
            .network: ControlStatus.server(ofURL: configuration.network.account.eventsURL),
        ]
    }

    /// Since the trunk listens, in seconds.
    var uptime: Double { (began.duration(to: MonotonicClock.now).seconds * 10).rounded() / 10 }
}

/// Carries out what an operator requests of a trunk. On the interface's event loop; the trunk is an actor.
final class TrunkPoint: ControlPoint {
    private let gateway: TrunkGateway
    private let facts: TrunkFacts
    private let front: ControlFront

    init(_ gateway: TrunkGateway, _ facts: TrunkFacts, _ front: ControlFront) {
        (self.gateway, self.facts, self.front) = (gateway, facts, front)
    }

    func close() { front.close() }

    func carryOut(_ request: HTTPRequest, _ reply: @escaping (HTTPAnswer) -> Void) {
        do throws(ControlProblem) {
            let operation = try TrunkOperation(ControlHTTPRequest(request))
            switch operation.work {
            case .description: reply(HTTPAnswer(TrunkDescription.answer))
            case .events(let subscription): front.stream(subscription, reply)
            case .request(let work): front.once(operation.idempotencyKey, request, reply) { carryOut(work, $0) }
            }
        } catch {
            reply(HTTPAnswer(error.answer))
        }
    }

    private func carryOut(_ work: TrunkRequest, _ finish: @escaping (ControlHTTPAnswer) -> Void) {
        // Before the state is taken, so that no event is missed between the two.
        let events = front.events
        let own = NIOLoopBound(finish, eventLoop: front.loop)
        Task { [gateway, facts, door = front.door] in
            let answer = await gateway.answer(work, facts, events)
            door.execute { own.value(answer) }
        }
    }
}

extension TrunkGateway {
    /// Carries out a request.
    fileprivate func answer(
        _ work: TrunkRequest, _ facts: TrunkFacts, _ events: ControlEventsState
    ) async -> ControlHTTPAnswer {
        switch work {
        case .status: return .json(await state(facts, events))
        case .accounts: return .json(TrunkWire.Accounts(await accounts(facts)))
        case .calls(let after, let limit):
            let calls = carriedCalls.filter { $0.number > after }
            let page = calls.prefix(limit).map(TrunkWire.Call.init)
            return .json(TrunkWire.Calls(page, next: calls.count > limit ? page.last?.call : nil))
        case .call(let number):
            guard let call = carriedCalls.first(where: { $0.number == number }) else { return Self.noCall(number) }
            return .json(TrunkWire.Call(call))
        case .hangUp(let number):
            return await hangUp(number) ? .json(TrunkWire.Done(call: number)) : Self.noCall(number)
        case .drain(let isDraining):
            guard await !isEnding else {
                let fault = ControlFault(.wrongState, "the trunk is about to end, and takes no more calls")
                return ControlProblem(fault).answer
            }
            await setDraining(isDraining)
            return .nothing
        }
    }

    private static func noCall(_ number: UInt64) -> ControlHTTPAnswer {
        ControlProblem(ControlFault(.noSuchCall, "there is no call \(number); GET /v1/calls lists those there are"))
            .answer
    }

    private func state(_ facts: TrunkFacts, _ events: ControlEventsState) async -> TrunkWire.Status {
        let accounts = await accounts(facts)
        let isDraining = isDraining
        let isEnding = await isEnding
        let obstacles =
            accounts.filter { $0.connection != "connected" }.map { "\($0.side): not connected (\($0.connection))" }
            + (isFull ? ["it carries \(facts.mostCalls) calls, the limit of max_calls; more are refused as busy"] : [])
            + (isDraining ? ["draining: new calls are refused as busy, until undrain"] : [])
            + (isEnding ? ["it is about to end, and takes no more calls"] : [])
        let counted = counters
        var counters = ["calls": counted.calls, "answered": counted.answered]
        for refusal in TrunkRefusal.allCases { counters["refused_\(refusal.word)"] = counted.refused[refusal] ?? 0 }
        return TrunkWire.Status(
            version: facts.version, pid: Int(getpid()), uptime: facts.uptime, draining: isDraining || isEnding,
            callCount: carriedCalls.count, mostCalls: facts.mostCalls, obstacles: obstacles, accounts: accounts,
            counters: counters, events: events)
    }

    private func accounts(_ facts: TrunkFacts) async -> [TrunkWire.Account] {
        var accounts: [TrunkWire.Account] = []
        for side in TrunkSide.allCases {
            let status = await status(of: side)
            accounts.append(
                TrunkWire.Account(
                    side: side.rawValue, connection: status.connection.rawValue, user: status.user?.text,
                    server: facts.servers[side] ?? "", callCount: status.calls.count))
        }
        return accounts
    }
}

extension TrunkRefusal {
    /// As it is called on the wire.
    fileprivate var word: String {
        switch self {
        case .notAllowed: "not_allowed"
        case .noRoute: "no_route"
        case .full: "full"
        case .draining: "draining"
        }
    }
}

extension TrunkWire.Call {
    fileprivate init(_ call: TrunkCallState) {
        self.init(
            call: call.number, side: call.origin.side.rawValue, from: call.parties.from,
            dialled: call.parties.dialled, to: call.parties.to.text)
        name = call.parties.name
        state =
            switch call.progress {
            case .calling: .calling
            case .answered: .answered
            case .talking: .talking
            case .ending: .ending
            }
        age = Int(call.age / .milliseconds(1))
        talk = call.talk.map { Int($0 / .milliseconds(1)) }
        for leg in [call.origin, call.target].compactMap({ $0 }) {
            switch leg.side {
            case .exchange: exchangeCall = leg.number
            case .network: networkCall = leg.number
            }
        }
    }
}

extension TrunkHappening {
    /// What clients learn of a report.
    init(_ report: TrunkReport) {
        switch report {
        case .connection(let side, let state):
            self.init(.connection)
            (self.side, self.state) = (side.rawValue, state)
        case .began(let number, let side, let parties):
            self.init(.call)
            (call, self.side, from) = (number, side.rawValue, parties.from)
            (dialled, to) = (parties.dialled, parties.to.text)
        case .refused(let side, let from, let dialled, let refusal):
            self.init(.callRefused)
            (self.side, self.from, self.dialled, reason) = (side.rawValue, from, dialled, refusal.word)
        case .answered(let number):
            self.init(.callAnswered)
            call = number
        case .joined(let number):
            self.init(.callStarted)
            call = number
        case .ended(let number, let side, let end):
            self.init(.callEnded)
            (call, self.side, reason) = (number, side.rawValue, end.reason.rawValue)
            endedBy = end.endedBy?.rawValue ?? "operator"
            talk = end.talk.map { Int($0 / .milliseconds(1)) }
        case .draining(let isDraining):
            self.init(.draining)
            draining = isDraining
        }
    }
}
