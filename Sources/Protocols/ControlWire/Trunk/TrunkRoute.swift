internal import JSON

/// One route of a trunk's interface. The table ``all`` both serves requests and is described in OpenAPI.
struct TrunkRoute: InterfaceRoute {
    /// What the route is about.
    enum Work: Sendable, CaseIterable {
        case status, accounts, calls, call
        case hangUp, drain, undrain
        case events, description
    }

    let method: ControlRoute.Method
    let path: String
    let name: String
    let words: String
    let work: Work
    var parameters: [ControlRoute.Member] = []
    /// No request has members.
    var body: [ControlRoute.Member] { [] }
    var isStream: Bool { work == .events }

    static let callPart = ControlRoute.callPart

    func variable(_ part: Substring) -> PathVariable? {
        part == Self.callPart ? ControlRoute.callNumber : nil
    }

    /// All routes.
    static let all: [TrunkRoute] = [
        TrunkRoute(
            method: .get, path: "/v1/status", name: "getStatus",
            words: "The trunk's state and counters, with a cursor: events after it are newer than this state.",
            work: .status),
        TrunkRoute(
            method: .get, path: "/v1/accounts", name: "listAccounts",
            words: "The trunk's two accounts, at the exchange and in the network, and whether they are connected.",
            work: .accounts),
        TrunkRoute(
            method: .get, path: "/v1/calls", name: "listCalls",
            words:
                "The calls that it carries, the oldest first; `next` is the `after` of the next page, if there is one.",
            work: .calls,
            parameters: [
                ControlRoute.Member(name: "after", kind: .callNumber, words: "Calls with higher numbers only"),
                ControlRoute.Member(
                    name: "limit", kind: .integer(1...Int64(TrunkRequest.mostEntries)), words: "Calls in the answer"),
            ]),
        TrunkRoute(
            method: .get, path: "/v1/calls/\(callPart)", name: "getCall", words: "One call.", work: .call),
        TrunkRoute(
            method: .post, path: "/v1/calls/\(callPart)/hangup", name: "hangUp",
            words: "Ends a call, on both sides.", work: .hangUp),
        TrunkRoute(
            method: .post, path: "/v1/drain", name: "drain",
            words: "Refuses new calls as busy; existing calls continue.", work: .drain),
        TrunkRoute(
            method: .post, path: "/v1/undrain", name: "undrain", words: "Takes new calls again.", work: .undrain),
        TrunkRoute(
            method: .get, path: "/v1/events", name: "streamEvents",
            words: "Events as server-sent events. Without a cursor the stream begins now.", work: .events,
            parameters: [
                ControlRoute.Member(
                    name: "after", kind: .cursor,
                    words: "Begin after this cursor, or with `oldest`; `Last-Event-ID` has precedence")
            ]),
        TrunkRoute(
            method: .get, path: "/v1/openapi.json", name: "getDescription", words: "This description.",
            work: .description),
    ]
}

/// What an operator requests of a trunk.
public enum TrunkRequest: Hashable, Sendable {
    case status
    case accounts
    /// Calls with higher numbers than `after`.
    case calls(after: UInt64, limit: Int)
    case call(UInt64)
    case hangUp(UInt64)
    case drain(Bool)

    /// Calls in one page.
    public static let mostEntries = 100
}

/// What a request over HTTP to a trunk is about.
public struct TrunkOperation: Sendable {
    /// What is to be done.
    public enum Work: Sendable {
        case request(TrunkRequest)
        /// Send events from here on.
        case events(EventSubscription)
        /// Send ``TrunkDescription/openAPI``.
        case description
    }

    /// What is to be done.
    public let work: Work
    /// The key under which the answer is kept; nil for none.
    public let idempotencyKey: String?

    /// Finds out what a request is about.
    ///
    /// - Throws: ``ControlProblem`` with what is wrong with it.
    public init(_ request: ControlHTTPRequest) throws(ControlProblem) {
        let target = try ControlTarget(request.target)
        let (route, names) = try TrunkRoute.find(request.method, target.path, among: TrunkRoute.all)
        let query = try target.members(route.parameters, of: route.path)
        idempotencyKey = try request.key(isFor: route.method)
        _ = try request.members(route.body, of: route.path, route.method)
        // A path without such a number has no route.
        let call = names[Substring(TrunkRoute.callPart)].flatMap(ControlOperation.number).map { UInt64($0) } ?? 0
        switch route.work {
        case .status: work = .request(.status)
        case .accounts: work = .request(.accounts)
        case .calls:
            let (after, limit) = (query["after"]?.integer ?? 0, query["limit"]?.integer)
            work = .request(.calls(after: UInt64(after), limit: limit.map { Int($0) } ?? TrunkRequest.mostEntries))
        case .call: work = .request(.call(call))
        case .hangUp: work = .request(.hangUp(call))
        case .drain: work = .request(.drain(true))
        case .undrain: work = .request(.drain(false))
        case .events: work = .events(try EventSubscription(query, lastEventID: request.lastEventID))
        case .description: work = .description
        }
    }
}
