internal import JSON

/// The description of an exchange's interface in OpenAPI 3.1, made from ``ExchangeRoute/all``.
public enum ExchangeDescription {
    /// The version of the interface, which grows with each addition.
    static let version = "1.0"

    /// The description in JSON.
    public static let openAPI: [UInt8] = ControlCoding.line(document)

    /// The answer to a request for the description.
    public static var answer: ControlHTTPAnswer { ControlHTTPAnswer(status: 200, body: openAPI) }

    static let document: JSONValue = [
        "openapi": "3.1.0",
        "info": [
            "title": "Handset: control of a running exchange", "version": .string(version),
            "description": .string(
                "Later versions may add resources, members and events; clients ignore those that they do not know. "
                    + "Errors are problem details (RFC 9457); programs match on `code`."),
        ],
        "paths": paths,
        "components": [
            "schemas": .object(schemas), "securitySchemes": ["bearer": ["type": "http", "scheme": "bearer"]],
        ],
        // The Unix socket needs no token.
        "security": [["bearer": []], [:]],
    ]

    private static let paths: JSONValue = {
        var paths: [String: [String: JSONValue]] = [:]
        for route in ExchangeRoute.all {
            paths[route.path, default: [:]][route.method.rawValue.lowercased()] = operation(route)
        }
        return .object(paths.mapValues { .object($0) })
    }()

    private static func operation(_ route: ExchangeRoute) -> JSONValue {
        var responses = ControlDescription.answers(with: problems(of: route))
        responses["200"] = success(of: route.work)
        var operation: [String: JSONValue] = [
            "operationId": .string(route.name), "summary": .string(route.words), "responses": .object(responses),
        ]
        let parameters = parameters(of: route)
        if !parameters.isEmpty { operation["parameters"] = .array(parameters) }
        if route.method == .post { operation["requestBody"] = ControlDescription.body(route.body) }
        return .object(operation)
    }

    private static func parameters(of route: ExchangeRoute) -> [JSONValue] {
        var parameters = route.query.map(ControlDescription.parameter)
        if let part = route.namedPart {
            parameters.append([
                "name": .string(String(part.dropFirst().dropLast())), "in": "path", "required": true,
                "schema": ["type": "string", "minLength": 1, "maxLength": .integer(Int64(ControlLimits.nameBytes))],
                "description": part == ExchangeRoute.userPart ? "The user's id" : "The invite's id",
            ])
        }
        if route.work == .events { parameters.append(ControlDescription.lastEventID) }
        if route.method == .post { parameters.append(ControlDescription.idempotencyKey) }
        return parameters
    }

    /// The kinds of problems of an exchange.
    static let kinds: [ControlProblem.Kind] = {
        let codes = Set(ExchangeRoute.all.flatMap { problems(of: $0).map(\.code) })
        return (ControlProblem.kinds + ControlProblem.exchangeKinds).filter { codes.contains($0.code) }
    }()

    /// The problems that a route may answer with.
    static func problems(of route: ExchangeRoute) -> [ControlProblem.Kind] {
        var codes: [ControlFault.Code] = [
            .wrongValue, .tokenInURL, .unauthorized, .foreignHost, .foreignOrigin, .tooMany, .methodNotAllowed,
            .notFound, .tooLong,
        ]
        switch route.work {
        case .status, .users, .invites, .calls, .rooms, .groups: codes.append(.unavailable)
        case .logOut, .endInvite, .endCall:
            codes += [
                .unavailable, .unconfirmed, .malformed, .unsupportedMediaType, .idempotencyBusy, .idempotencyMismatch,
            ]
        case .events, .description: break
        }
        codes += route.faults
        return (ControlProblem.kinds + ControlProblem.exchangeKinds).filter { codes.contains($0.code) }
    }

    private static func success(of work: ExchangeRoute.Work) -> JSONValue {
        func json(_ schema: JSONValue, _ words: String) -> JSONValue {
            ["description": .string(words), "content": ["application/json": ["schema": schema]]]
        }
        func page(_ name: String, of entry: String) -> JSONValue {
            json(
                ControlDescription.object(
                    [
                        name: ["type": "array", "items": ControlDescription.reference(entry)],
                        "next": ControlDescription.text,
                    ], required: [name]), "A page of \(name)")
        }
        switch work {
        case .status: return json(ControlDescription.reference("Status"), "The state")
        case .users: return page("users", of: "User")
        case .invites: return page("invites", of: "Invite")
        case .calls: return page("calls", of: "Call")
        case .rooms: return page("rooms", of: "Room")
        case .groups: return page("groups", of: "Group")
        case .logOut, .endInvite, .endCall:
            return json(
                ControlDescription.object(["ended": ControlDescription.integer], required: ["ended"]),
                "It is done, and on disk: how many sessions, invitees or calls have ended")
        case .events:
            return [
                "description": .string(
                    "Events, each with `id` (its cursor), `event` and `data`, which is JSON. `gap` reports that events are missing"
                ),
                "content": ["text/event-stream": ["schema": ControlDescription.text]],
            ]
        case .description: return json(["type": "object"], "The description")
        }
    }

    /// The schemas of answers.
    static let schemas: [String: JSONValue] = {
        let (text, integer, flag) = (ControlDescription.text, ControlDescription.integer, ControlDescription.flag)
        func list(_ items: JSONValue) -> JSONValue { ["type": "array", "items": items] }
        func object(_ required: [String: JSONValue], _ optional: [String: JSONValue] = [:]) -> JSONValue {
            ControlDescription.object(
                required.merging(optional) { first, _ in first }, required: required.keys.sorted())
        }
        return [
            "Problem": ControlDescription.problem(kinds),
            "Status": object([
                "version": text, "pid": integer, "uptime_s": ControlDescription.number, "url": text,
                "obstacles": list(text), "users": integer, "sessions": integer, "invites": integer, "calls": integer,
                "streams": integer, "counters": ["type": "object", "additionalProperties": integer],
                "events": object(["cursor": text, "clients": integer, "dropped": integer, "lost": integer]),
            ]),
            "User": object([
                "user": text, "public_ids": list(text), "devices": list(ControlDescription.reference("Device")),
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
            "Room": object(["room": text, "members": list(ControlDescription.reference("Member"))]),
            "Member": object(["user": text, "device": text, "connection": text], ["role": text]),
            "Group": object(["group": text, "owner": text, "members": list(text)], ["name": text]),
        ]
    }()
}
