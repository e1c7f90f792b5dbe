internal import JSON

/// The description of an exchange's interface in OpenAPI 3.1, made from ``ExchangeRoute/all``.
public enum ExchangeDescription {
    /// The version of the interface, which grows with each addition.
    static let version = "1.0"

    /// The description in JSON.
    public static let openAPI: [UInt8] = ControlCoding.line(document)

    /// The answer to a request for the description.
    public static var answer: ControlHTTPAnswer { ControlHTTPAnswer(status: 200, body: openAPI) }

    static let document = InterfaceDescription.document(
        title: "Handset: control of a running exchange", version: version, ExchangeRoute.all, schemas: schemas
    ) { InterfaceDescription.operation($0, ["200": success(of: $0.work)], problems: problems(of: $0)) }

    /// The kinds of problems of an exchange.
    static let kinds: [ControlProblem.Kind] = {
        let codes = Set(ExchangeRoute.all.flatMap { problems(of: $0).map(\.code) })
        return (ControlProblem.kinds + ControlProblem.exchangeKinds).filter { codes.contains($0.code) }
    }()

    /// The problems that a route may answer with.
    static func problems(of route: ExchangeRoute) -> [ControlProblem.Kind] {
        var codes = InterfaceDescription.sharedCodes
        switch route.work {
        case .status, .users, .invites, .calls, .rooms, .groups: codes.append(.unavailable)
        case .logOut, .endInvite, .endCall, .removeFromRoom, .removeFromGroup, .move:
            codes += [.unavailable, .unconfirmed] + InterfaceDescription.bodyCodes
        case .events, .description: break
        }
        codes += route.faults
        return (ControlProblem.kinds + ControlProblem.exchangeKinds).filter { codes.contains($0.code) }
    }

    private static func success(of work: ExchangeRoute.Work) -> JSONValue {
        typealias Shared = InterfaceDescription
        func page(_ name: String, of entry: String) -> JSONValue {
            Shared.page(name, of: entry, next: Shared.text, "A page of \(name)")
        }
        switch work {
        case .status: return Shared.json(Shared.reference("Status"), "The state")
        case .users: return page("users", of: "User")
        case .invites: return page("invites", of: "Invite")
        case .calls: return page("calls", of: "Call")
        case .rooms: return page("rooms", of: "Room")
        case .groups: return page("groups", of: "Group")
        case .logOut, .endInvite, .endCall, .removeFromRoom, .removeFromGroup:
            return Shared.json(
                Shared.object(["ended": Shared.integer], required: ["ended"]),
                "It is done, and on disk: how many sessions, invitees, calls or memberships have ended")
        case .move:
            return Shared.json(
                Shared.object(["asked": Shared.integer], required: ["asked"]),
                "It is done: how many devices were asked to move")
        case .events: return Shared.events
        case .description: return Shared.json(["type": "object"], "The description")
        }
    }

    /// The schemas of answers.
    static let schemas: [String: JSONValue] = {
        let (text, integer, flag) = (InterfaceDescription.text, InterfaceDescription.integer, InterfaceDescription.flag)
        func list(_ items: JSONValue) -> JSONValue { ["type": "array", "items": items] }
        func object(_ required: [String: JSONValue], _ optional: [String: JSONValue] = [:]) -> JSONValue {
            InterfaceDescription.object(
                required.merging(optional) { first, _ in first }, required: required.keys.sorted())
        }
        return [
            "Problem": InterfaceDescription.problem(kinds),
            "Status": object([
                "version": text, "pid": integer, "uptime_s": InterfaceDescription.number, "url": text,
                "obstacles": list(text), "users": integer, "sessions": integer, "invites": integer, "calls": integer,
                "streams": integer, "counters": ["type": "object", "additionalProperties": integer],
                "events": InterfaceDescription.eventsState,
            ]),
            "Webhook": InterfaceDescription.webhook,
            "User": object([
                "user": text, "public_ids": list(text), "devices": list(InterfaceDescription.reference("Device")),
            ]),
            "Device": object([
                "device": text, "name": text, "connected": flag, "registered": flag, "stream": flag,
            ]),
            "Invite": object(
                [
                    "invite": text, "from": text, "device": text, "to": list(text), "pending": list(text),
                    "age_ms": integer,
                ], ["group": text, "remaining_ms": integer]),
            "Call": object([
                "invite": text, "from": text, "from_device": text, "with": text, "with_device": text,
                "duration_ms": integer,
            ]),
            "Room": object(["room": text, "members": list(InterfaceDescription.reference("Member"))]),
            "Member": object(["user": text, "device": text, "connection": text], ["role": text]),
            "Group": object(["group": text, "owner": text, "members": list(text)], ["name": text]),
        ]
    }()
}
