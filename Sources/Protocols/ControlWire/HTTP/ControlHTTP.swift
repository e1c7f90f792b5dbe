internal import Core
internal import JSON

/// A request over HTTP, as far as the interface reads it.
public struct ControlHTTPRequest: Hashable, Sendable {
    /// The method, such as `GET`.
    public var method: String
    /// Path and query.
    public var target: String
    /// The field `Content-Type`.
    public var contentType: String?
    /// The field `Idempotency-Key`.
    public var idempotencyKey: String?
    /// The field `Last-Event-ID`.
    public var lastEventID: String?
    /// The field `Range`.
    public var range: String?
    /// The field `If-Range`.
    public var ifRange: String?
    /// The content.
    public var body: [UInt8]

    /// Makes a request.
    public init(
        _ method: String, _ target: String, contentType: String? = nil, idempotencyKey: String? = nil,
        lastEventID: String? = nil, body: [UInt8] = []
    ) {
        self.method = method
        self.target = target
        self.contentType = contentType
        self.idempotencyKey = idempotencyKey
        self.lastEventID = lastEventID
        self.body = body
    }
}

/// An answer over HTTP.
public struct ControlHTTPAnswer: Hashable, Sendable {
    /// A header field.
    public struct Field: Hashable, Sendable {
        /// Its name.
        public let name: String
        /// Its value.
        public let value: String

        init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The status, 200…599.
    public let status: Int
    /// The media type of the body.
    public let contentType: String
    /// Header fields besides the body's type and length.
    public internal(set) var fields: [Field] = []
    /// The content; empty with 204.
    public let body: [UInt8]

    init(status: Int, contentType: String = "application/json", body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// Bytes that it takes up.
    var bytes: Int { fields.reduce(body.count) { $0 + $1.name.utf8.count + $1.value.utf8.count } }
}

/// What a request over HTTP is about: pure functions from the request's value to a request of ``ControlRequest``, and from its reply to
/// an answer.
public struct ControlOperation: Sendable {
    /// What is to be done.
    public enum Work: Sendable {
        /// Carry out a request.
        case request(ControlRequest)
        /// Send the sound of a recording.
        case recording(ControlRecordingQuery)
        /// Send events from here on.
        case events(EventSubscription)
        /// Send ``ControlDescription/openAPI``.
        case description
    }

    /// What is to be done.
    public let work: Work
    /// The key under which the answer is kept; nil for none.
    public let idempotencyKey: String?
    private let route: ControlRoute

    /// Finds out what a request is about.
    ///
    /// - Throws: ``ControlProblem`` with what is wrong with it.
    public init(_ request: ControlHTTPRequest) throws(ControlProblem) {
        let target = try ControlTarget(request.target)
        let (route, names) = try ControlRoute.find(request.method, target.path, among: ControlRoute.all)
        let call = names[Substring(ControlRoute.callPart)].flatMap(Self.number)
        let record = names[Substring(ControlRoute.recordPart)].map(String.init)
        self.route = route
        let query = try target.members(route.parameters, of: route.path)
        idempotencyKey = try request.key(isFor: route.method)
        let body = try request.members(route.body, of: route.path, route.method)
        switch route.work {
        case .description: work = .description
        case .events: work = .events(try EventSubscription(query, lastEventID: request.lastEventID))
        case .recording: work = .recording(Self.recording(record ?? "", query, request))
        case .request(let name, let constants):
            var members = query.merging(constants) { _, own in own }.merging(body) { own, _ in own }
            members["request"] = .string(name.rawValue)
            if let call { members["call"] = .integer(call) }
            if let record { members["record"] = .string(record) }
            do throws(ControlFault) {
                work = .request(try ControlRequest(members))
            } catch {
                throw ControlProblem(error)
            }
        }
    }

    private static func recording(
        _ record: String, _ query: [String: JSONValue], _ request: ControlHTTPRequest
    ) -> ControlRecordingQuery {
        var (number, account) = (1, String?.none)
        if case .integer(let given)? = query["number"] { number = Int(given) }
        if case .string(let given)? = query["account"] { account = given }
        // Ranges are for GET alone (RFC 9110 §14.2).
        let range = request.method == "GET" ? request.range : nil
        return ControlRecordingQuery(
            record: record, number: number, account: account, range: range, condition: request.ifRange)
    }

    /// The problem of a request whose URL has a token, for those who must know of it before the request's sender is known.
    public static func tokenProblem(inTarget target: String) -> ControlProblem? {
        ControlTarget.hasToken(target) ? ControlTarget.tokenInURL : nil
    }

    /// The answer to a request that was carried out.
    ///
    /// - Parameter events: What the answer to `GET /v1/status` says of events.
    public func answer(_ reply: ControlReply, events: ControlEventsState) -> ControlHTTPAnswer {
        if let fault = reply.error { return ControlProblem(fault).answer }
        switch route.answer {
        case .status: return Self.json(StatusBody(status: reply.status, events: events))
        case .accounts: return Self.json(["accounts": reply.status?.allAccounts ?? []])
        case .conferences: return Self.json(["conferences": reply.conferences ?? []])
        case .queues: return Self.json(["queues": reply.queues ?? []])
        case .calls: return Self.json(CallsBody(reply))
        case .call:
            guard let call = reply.calls?.first else {
                return ControlProblem(.noSuchCall, "there is no such call").answer
            }
            return Self.json(call)
        case .history: return Self.json(HistoryBody(history: reply.history ?? [], next: reply.next))
        case .record:
            guard let record = reply.history?.first else {
                return ControlProblem(.noSuchCall, "there is no such record").answer
            }
            return Self.json(record)
        case .placed:
            var answer = Self.json(ActionBody(reply), status: 201)
            if let call = reply.call { answer.fields.append(.init("Location", "/v1/calls/\(call)")) }
            return answer
        case .done, .recording: return Self.json(ActionBody(reply))
        case .sound:
            guard let sound = reply.sound ?? reply.status?.sound else {
                return ControlProblem(.noSoundCard, "the device's calls use no sound card").answer
            }
            return Self.json(sound)
        case .nothing, .events, .file: return ControlHTTPAnswer(status: 204, body: [])
        case .description: return ControlDescription.answer
        }
    }

    private static func json(_ value: some Encodable, status: Int = 200) -> ControlHTTPAnswer {
        ControlHTTPAnswer(status: status, body: ControlCoding.line(value))
    }
}

// MARK: - Bodies

/// What `GET /v1/status` says of events.
public struct ControlEventsState: Codable, Hashable, Sendable {
    /// The cursor of the newest event.
    public var cursor: String
    /// Clients that receive events now.
    public var clients: Int
    /// Clients that were disconnected since the start because they did not read.
    public var dropped: Int
    /// What has become of events for webhooks, by server; nil without webhooks.
    public var webhooks: [WebhookFigures]?
    /// Events that were lost because too many waited for the interface's thread; of an exchange alone.
    public var lost: Int?

    /// Makes a state.
    public init(cursor: String, clients: Int, dropped: Int, webhooks: [WebhookFigures]? = nil) {
        self.cursor = cursor
        self.clients = clients
        self.dropped = dropped
        self.webhooks = webhooks
    }
}

private struct StatusBody: Encodable {
    let status: ControlStatus?
    let events: ControlEventsState

    private enum Key: String, CodingKey { case events }

    func encode(to encoder: any Encoder) throws {
        try status?.encode(to: encoder)
        var members = encoder.container(keyedBy: Key.self)
        try members.encode(events, forKey: .events)
    }
}

private struct CallsBody: Encodable {
    let calls: [ControlCall]
    let next: UInt64?

    init(_ reply: ControlReply) {
        calls = reply.calls ?? []
        next = reply.more == true ? calls.last?.call : nil
    }
}

private struct HistoryBody: Encodable {
    let history: [ControlRecord]
    let next: String?
}

private struct ActionBody: Encodable {
    let call: UInt64?
    let account: String?
    let file: String?
    let toCall: UInt64?
    let slot: Int?

    enum CodingKeys: String, CodingKey {
        case call, account, file, slot
        case toCall = "to_call"
    }

    init(_ reply: ControlReply) {
        call = reply.call
        account = reply.account
        file = reply.file
        toCall = reply.toCall
        slot = reply.slot
    }
}

extension ControlStatus {
    /// The accounts; the only one of a device without names has the name "".
    fileprivate var allAccounts: [ControlAccount] {
        if let accounts { return accounts }
        var only = ControlAccount(
            account: "", device: device, connection: connection, server: server, behaviour: behaviour)
        only.user = user
        only.isDraining = isDraining ?? false
        only.callCount = callCount
        return [only]
    }
}

// MARK: - Reading requests

extension ControlOperation {
    /// The number of a call in a path; nil if it is none.
    static func number(_ part: Substring) -> Int64? {
        Digits.number(part, upTo: Int64.max).flatMap { $0 > 0 ? $0 : nil }
    }

    /// The answer to a body with more bytes than are read.
    public static let tooLong = ControlProblem(
        .tooLong, "a body has \(ControlLimits.requestBytes) bytes at most")
}
