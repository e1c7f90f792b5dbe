internal import Core
internal import JSON

/// One route of an exchange's interface. The table ``all`` both serves requests and is described in OpenAPI.
struct ExchangeRoute: InterfaceRoute {
    /// What the route is about.
    enum Work: Sendable, CaseIterable {
        case status, users, invites, calls, rooms, groups
        case logOut, endInvite, endCall, removeFromRoom, removeFromGroup, move
        case events, description
    }

    let method: ControlRoute.Method
    /// With ``userPart``, ``invitePart``, ``roomPart`` or ``groupPart`` in the place of a name.
    let path: String
    /// The name in OpenAPI.
    let name: String
    /// What it does, for people.
    let words: String
    let work: Work
    /// The codes of errors that routes do not share.
    var faults: [ControlFault.Code] = []
    var query: [ControlRoute.Member] = []
    var body: [ControlRoute.Member] = []

    var parameters: [ControlRoute.Member] { query }
    var isStream: Bool { work == .events }

    func variable(_ part: Substring) -> PathVariable? {
        let words: String? =
            switch part {
            case Self.userPart[...]: "The user's id"
            case Self.invitePart[...]: "The invite's id"
            case Self.roomPart[...]: "The room's name"
            case Self.groupPart[...]: "The group's id"
            default: nil
            }
        return words.map { PathVariable(words: $0, schema: Self.nameSchema, admits: { !$0.isEmpty }) }
    }

    private static let nameSchema: JSONValue = [
        "type": "string", "minLength": 1, "maxLength": .integer(Int64(ControlLimits.nameBytes)),
    ]
    static let userPart = "{user}"
    static let invitePart = "{invite}"
    static let roomPart = "{room}"
    static let groupPart = "{group}"
}

extension ExchangeRoute {
    /// All routes.
    static let all: [ExchangeRoute] = reports + actions + interface

    private static let reports: [ExchangeRoute] = [
        ExchangeRoute(
            method: .get, path: "/v1/status", name: "getStatus",
            words: "The exchange's state and counters, with a cursor: every event that this state lacks is after it.",
            work: .status),
        list("users", .users, "listUsers", "Users in the order of their ids, with their devices that have a session."),
        list("invites", .invites, "listInvites", "Open invites, in the order of those who sent them."),
        list("calls", .calls, "listCalls", "Running calls, in the order of those who called."),
        list("rooms", .rooms, "listRooms", "Rooms in the order of their names, and who is in them."),
        list("groups", .groups, "listGroups", "Groups in the order of their owners, and their members."),
    ]

    private static let actions: [ExchangeRoute] = [
        ExchangeRoute(
            method: .post, path: "/v1/users/\(userPart)/logout", name: "logOut",
            words:
                "Ends all logins of a user, with its sessions and calls; with `device` only the session of that device.",
            work: .logOut, faults: [.noSuchUser, .noSuchDevice],
            body: [
                ControlRoute.Member(
                    name: "device", kind: .text(maximumBytes: ControlLimits.nameBytes),
                    words: "The device whose session ends; its login remains")
            ]),
        ExchangeRoute(
            method: .post, path: "/v1/invites/\(invitePart)/cancel", name: "cancelInvite",
            words:
                "Ends an open invite as if its time had run out: devices stop ringing, and the inviter has no answer.",
            work: .endInvite, faults: [.noSuchInvite, .wrongState]),
        ExchangeRoute(
            method: .post, path: "/v1/calls/\(invitePart)/hangup", name: "hangUp",
            words: "Ends a running call, which is named by its invite.", work: .endCall,
            faults: [.noSuchCall, .severalCalls],
            body: [
                ControlRoute.Member(
                    name: "with", kind: .text(maximumBytes: ControlLimits.nameBytes),
                    words: "Who accepted, if several did")
            ]),
        ExchangeRoute(
            method: .post, path: "/v1/rooms/\(roomPart)/remove", name: "removeFromRoom",
            words:
                "Takes a user out of a room. All in the room are notified, the user included, which stays connected and may join again.",
            work: .removeFromRoom, faults: [.noSuchRoom, .noSuchMember],
            body: [
                member("user", "The user", isRequired: true),
                member("connection", "Only this connection of the user, as the list of rooms names it"),
            ]),
        ExchangeRoute(
            method: .post, path: "/v1/groups/\(groupPart)/remove", name: "removeFromGroup",
            words: "Takes a member out of a group, as if it had left. The owner stays.", work: .removeFromGroup,
            faults: [.noSuchGroup, .noSuchMember, .wrongState], body: [member("user", "The member", isRequired: true)]),
        ExchangeRoute(
            method: .post, path: "/v1/users/\(userPart)/move", name: "move",
            words: "Asks the connected devices of a user, or one of them, to connect again. Calls continue.",
            work: .move, faults: [.noSuchUser, .noSuchDevice],
            body: [
                member("device", "Only this device"),
                ControlRoute.Member(
                    name: "within_s", kind: .integer(ExchangeRequest.Move.seconds),
                    words: "How long the devices have, in seconds; 30 unless given"),
                ControlRoute.Member(
                    name: "url", kind: .webSocketURL,
                    words: "The WebSocket's address to connect to; unless given, where they find this exchange"),
            ]),
    ]

    private static func member(_ name: String, _ words: String, isRequired: Bool = false) -> ControlRoute.Member {
        ControlRoute.Member(
            name: name, kind: .text(maximumBytes: ControlLimits.nameBytes), isRequired: isRequired, words: words)
    }

    private static let interface: [ExchangeRoute] = [
        ExchangeRoute(
            method: .get, path: "/v1/events", name: "streamEvents",
            words: "Events as server-sent events. Without a cursor the stream begins now.", work: .events,
            query: [
                ControlRoute.Member(
                    name: "after", kind: .cursor,
                    words: "Begin after this cursor, or with `oldest`; `Last-Event-ID` has precedence")
            ]),
        ExchangeRoute(
            method: .get, path: "/v1/openapi.json", name: "getDescription", words: "This description.",
            work: .description),
    ]

    private static func list(_ path: String, _ work: Work, _ name: String, _ words: String) -> ExchangeRoute {
        ExchangeRoute(
            method: .get, path: "/v1/\(path)", name: name,
            words: "\(words) `next` is the `after` of the next page, if there is one.", work: work,
            query: [
                ControlRoute.Member(
                    name: "after", kind: .text(maximumBytes: ExchangeRequest.cursorBytes),
                    words: "The `next` of the page before"),
                ControlRoute.Member(
                    name: "limit", kind: .integer(1...Int64(ExchangeRequest.mostEntries)), words: "Entries in the page"),
            ])
    }
}

/// What an operator requests of an exchange.
public enum ExchangeRequest: Hashable, Sendable {
    /// Which page of a list.
    public struct Page: Hashable, Sendable {
        /// The `next` of the page before; nil for the first.
        public let after: String?
        /// How many entries at most.
        public let limit: Int
    }

    case status
    case users(Page)
    case invites(Page)
    case calls(Page)
    case rooms(Page)
    case groups(Page)
    /// End a user's logins, or the session of a device.
    case logOut(user: String, device: String?)
    case endInvite(String)
    /// End a call; `with` names who accepted.
    case endCall(String, with: String?)
    /// Take a user out of a room, or one of its connections.
    case removeFromRoom(String, user: String, connection: String?)
    /// Take a member out of a group.
    case removeFromGroup(String, user: String)
    /// Ask devices to connect again.
    case move(Move)

    /// Which devices are to connect again, when and where.
    public struct Move: Hashable, Sendable {
        /// Whose devices.
        public let user: String
        /// Nil for all.
        public let device: String?
        /// How long they have.
        public let withinSeconds: Int
        /// The WebSocket's address; nil for where they find this exchange.
        public let url: String?

        static let seconds: ClosedRange<Int64> = 0...3_600
        static let usualSeconds = 30
    }

    /// Entries in one page.
    public static let mostEntries = 100
    /// Bytes in a cursor: two names and a number, in Base64.
    static let cursorBytes = 1_024
}

/// What a request over HTTP to an exchange is about.
public struct ExchangeOperation: Sendable {
    /// What is to be done.
    public enum Work: Sendable {
        case request(ExchangeRequest)
        /// Send events from here on.
        case events(EventSubscription)
        /// Send ``ExchangeDescription/openAPI``.
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
        let (route, name) = try Self.route(request.method, target.path)
        let query = try target.members(route.query, of: route.path)
        idempotencyKey = try request.key(isFor: route.method)
        let body = try request.members(route.body, of: route.path, route.method)
        switch route.work {
        case .description: work = .description
        case .events: work = .events(try EventSubscription(query, lastEventID: request.lastEventID))
        case .status: work = .request(.status)
        case .users: work = .request(.users(ExchangeRequest.Page(query)))
        case .invites: work = .request(.invites(ExchangeRequest.Page(query)))
        case .calls: work = .request(.calls(ExchangeRequest.Page(query)))
        case .rooms: work = .request(.rooms(ExchangeRequest.Page(query)))
        case .groups: work = .request(.groups(ExchangeRequest.Page(query)))
        case .logOut: work = .request(.logOut(user: name, device: try Self.text("device", in: body)))
        case .endInvite: work = .request(.endInvite(name))
        case .endCall: work = .request(.endCall(name, with: try Self.text("with", in: body)))
        case .removeFromRoom:
            work = .request(
                .removeFromRoom(
                    name, user: try Self.requiredText("user", in: body),
                    connection: try Self.text("connection", in: body)))
        case .removeFromGroup:
            work = .request(.removeFromGroup(name, user: try Self.requiredText("user", in: body)))
        case .move: work = .request(.move(try ExchangeRequest.Move(user: name, body)))
        }
    }

    fileprivate static func text(_ name: String, in body: [String: JSONValue]) throws(ControlProblem) -> String? {
        switch body[name] {
        case nil, .null?: return nil
        case .string(let text)? where (1...ControlLimits.nameBytes).contains(text.utf8.count): return text
        case _?:
            throw ControlProblem(
                .wrongValue, "\(name) must be a text of 1 to \(ControlLimits.nameBytes) bytes, or be left out")
        }
    }

    private static func requiredText(_ name: String, in body: [String: JSONValue]) throws(ControlProblem) -> String {
        guard let text = try text(name, in: body) else { throw ControlProblem(.wrongValue, "\(name) is missing") }
        return text
    }

    /// The route of a request, and the name in its path.
    private static func route(_ method: String, _ path: Substring) throws(ControlProblem) -> (ExchangeRoute, String) {
        let (route, names) = try ExchangeRoute.find(method, path, among: ExchangeRoute.all)
        let name = names.first?.value ?? ""
        guard let text = PercentEscape.unescaped(name.utf8), text.utf8.count <= ControlLimits.nameBytes else {
            throw ControlProblem(
                .wrongValue,
                "the name in the path must be percent-encoded UTF-8 of \(ControlLimits.nameBytes) bytes at most")
        }
        return (route, text)
    }
}

extension ExchangeRequest.Page {
    fileprivate init(_ query: [String: JSONValue]) {
        after = query["after"]?.string
        if case .integer(let given)? = query["limit"] {
            limit = Int(given)
        } else {
            limit = ExchangeRequest.mostEntries
        }
    }
}

extension ExchangeRequest.Move {
    fileprivate init(user: String, _ body: [String: JSONValue]) throws(ControlProblem) {
        self.user = user
        device = try ExchangeOperation.text("device", in: body)
        switch body["within_s"] {
        case nil, .null?: withinSeconds = Self.usualSeconds
        case .integer(let seconds)? where Self.seconds.contains(seconds): withinSeconds = Int(seconds)
        case _?:
            throw ControlProblem(
                .wrongValue,
                "within_s must be a whole number of \(Self.seconds.lowerBound) to \(Self.seconds.upperBound)")
        }
        switch body["url"] {
        case nil, .null?: url = nil
        case .string(let text)? where Self.isAddress(text): url = text
        case _?:
            throw ControlProblem(
                .wrongValue, "url must be the address of a WebSocket, such as wss://calls.example.org/v1/rtc")
        }
    }

    private static func isAddress(_ text: String) -> Bool {
        guard let scheme = ["wss://", "ws://"].first(where: { text.hasPrefix($0) }) else { return false }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        return (1...ControlLimits.nameBytes).contains(rest.count) && rest.allSatisfy { (0x21...0x7e).contains($0) }
    }
}

extension ControlHTTPAnswer {
    /// The answer to a request that was carried out.
    public static func json(_ value: some Encodable) -> ControlHTTPAnswer {
        ControlHTTPAnswer(status: 200, body: ControlCoding.line(value))
    }

    /// The answer to a request that was carried out, and about which there is nothing to say.
    public static let nothing = ControlHTTPAnswer(status: 204, body: [])
}
