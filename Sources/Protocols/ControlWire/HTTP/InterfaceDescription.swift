internal import JSON

/// A route of an interface, whichever process has it. Tables of routes both serve requests and are described in OpenAPI, so that the two
/// cannot differ.
protocol InterfaceRoute: Sendable {
    var method: ControlRoute.Method { get }
    /// With variables such as `{call}` in the place of names and numbers.
    var path: String { get }
    /// The name in OpenAPI.
    var name: String { get }
    /// What it does, for people.
    var words: String { get }
    /// The parameters of the query.
    var parameters: [ControlRoute.Member] { get }
    var body: [ControlRoute.Member] { get }
    /// What a body's members must be together, as a JSON schema.
    var bodyRule: [String: JSONValue] { get }
    /// Whether it answers with a stream of events.
    var isStream: Bool { get }

    /// What may be in the place of a part of the path; nil if it is no variable.
    func variable(_ part: Substring) -> PathVariable?
}

/// A part of a path in the place of which there are names or numbers.
struct PathVariable: Sendable {
    /// What it is, for people.
    let words: String
    let schema: JSONValue
    /// Whether a text may be in its place.
    let admits: @Sendable (Substring) -> Bool
}

extension InterfaceRoute {
    var bodyRule: [String: JSONValue] { [:] }

    /// The parts of the path between slashes.
    var parts: [Substring] { path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) }

    private func matches(_ other: [Substring]) -> Bool {
        let own = parts
        return own.count == other.count
            && zip(own, other).allSatisfy { $0 == $1 || variable($0)?.admits($1) == true }
    }

    /// The route of a request, and what is in the place of its variables.
    static func find(
        _ method: String, _ path: Substring, among all: [Self]
    ) throws(ControlProblem) -> (route: Self, names: [Substring: Substring]) {
        let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        let found = path.hasPrefix("/") ? all.filter { $0.matches(parts) } : []
        guard let first = found.first else {
            throw ControlProblem(.notFound, "there is no such path; GET /v1/openapi.json lists them")
        }
        let usual = method == "HEAD" && !first.isStream ? "GET" : method
        guard let route = found.first(where: { $0.method.rawValue == usual }) else {
            let methods = found.flatMap { route in
                route.method == .get && !route.isStream ? ["GET", "HEAD"] : [route.method.rawValue]
            }
            throw ControlProblem(
                ControlFault(.methodNotAllowed, "\(first.path) has \(methods.joined(separator: ", "))"),
                allowed: methods)
        }
        let names = zip(route.parts, parts).filter { route.variable($0.0) != nil }
        return (route, Dictionary(names.map { ($0, $1) }) { first, _ in first })
    }
}

/// Descriptions of interfaces in OpenAPI 3.1: what those of all processes have in common.
enum InterfaceDescription {
    /// A whole description.
    ///
    /// - Parameter operations: Of each route.
    static func document<Route: InterfaceRoute>(
        title: String, version: String, _ routes: [Route], schemas: [String: JSONValue],
        operation: (Route) -> JSONValue
    ) -> JSONValue {
        var paths: [String: [String: JSONValue]] = [:]
        for route in routes {
            paths[route.path, default: [:]][route.method.rawValue.lowercased()] = operation(route)
        }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": .string(title), "version": .string(version),
                "description": .string(
                    "Later versions may add resources, members and events; clients ignore those that they do not know. "
                        + "Errors are problem details (RFC 9457); programs match on `code`."),
            ],
            "paths": .object(paths.mapValues { .object($0) }),
            "components": [
                "schemas": .object(schemas), "securitySchemes": ["bearer": ["type": "http", "scheme": "bearer"]],
            ],
            // The Unix socket needs no token.
            "security": [["bearer": []], [:]],
        ]
    }

    /// A route's operation.
    ///
    /// - Parameters:
    ///   - responses: The answers if it succeeds, by status.
    ///   - problems: The problems that it may answer with.
    ///   - more: Parameters that only this route has.
    static func operation<Route: InterfaceRoute>(
        _ route: Route, _ responses: [String: JSONValue], problems: [ControlProblem.Kind], more: [JSONValue] = []
    ) -> JSONValue {
        var operation: [String: JSONValue] = [
            "operationId": .string(route.name), "summary": .string(route.words),
            "responses": .object(responses.merging(answers(with: problems)) { first, _ in first }),
        ]
        var parameters = route.parts.compactMap { part in
            route.variable(part).map { variable -> JSONValue in
                [
                    "name": .string(String(part.dropFirst().dropLast())), "in": "path", "required": true,
                    "schema": variable.schema, "description": .string(variable.words),
                ]
            }
        }
        parameters += route.parameters.map(parameter)
        if route.isStream { parameters.append(lastEventID) }
        parameters += more
        if route.method == .post { parameters.append(idempotencyKey) }
        if !parameters.isEmpty { operation["parameters"] = .array(parameters) }
        if route.method == .post { operation["requestBody"] = body(route.body, rule: route.bodyRule) }
        return .object(operation)
    }

    /// An answer in JSON.
    static func json(_ schema: JSONValue, _ words: String) -> JSONValue {
        ["description": .string(words), "content": ["application/json": ["schema": schema]]]
    }

    /// A page of a list, whose `next` is of this type.
    static func page(
        _ name: String, of entry: String, next: JSONValue, _ words: String
    ) -> JSONValue {
        json(
            object([name: ["type": "array", "items": reference(entry)], "next": next], required: [name]), words)
    }

    /// The events.
    static let events: JSONValue = [
        "description": .string(
            "Events, each with `id` (its cursor), `event` and `data`, which is JSON. `gap` reports that events are missing"
        ),
        "content": ["text/event-stream": ["schema": text]],
    ]

    /// The codes of problems that every route may answer with.
    static let sharedCodes: [ControlFault.Code] = [
        .wrongValue, .tokenInURL, .unauthorized, .foreignHost, .foreignOrigin, .tooMany, .methodNotAllowed, .notFound,
        .tooLong,
    ]

    /// Those of every request with a body.
    static let bodyCodes: [ControlFault.Code] = [
        .malformed, .unsupportedMediaType, .idempotencyBusy, .idempotencyMismatch,
    ]

    /// The key of requests that may be sent again.
    static let idempotencyKey: JSONValue = [
        "name": "Idempotency-Key", "in": "header",
        "schema": ["type": "string", "pattern": .string("^[ -~]{1,\(IdempotencyTable.keyBytes)}$")],
        "description": "The same for a request that is sent again, which is then carried out once",
    ]

    /// The cursor of a stream of events that begins again.
    static let lastEventID: JSONValue = [
        "name": "Last-Event-ID", "in": "header",
        "schema": ["type": "string", "pattern": .string(cursorPattern)],
        "description": "The id of the last event that was received",
    ]

    /// A parameter of the query.
    static func parameter(_ member: ControlRoute.Member) -> JSONValue {
        [
            "name": .string(member.name), "in": "query", "schema": schema(of: member, mayBeNull: false),
            "description": .string(member.words),
        ]
    }

    /// The body of a request with members.
    static func body(_ members: [ControlRoute.Member], rule: [String: JSONValue] = [:]) -> JSONValue {
        var schema = rule
        schema["type"] = "object"
        schema["additionalProperties"] = false
        schema["properties"] = .object(
            Dictionary(
                members.map { member in
                    var property = self.schema(of: member, mayBeNull: !member.isRequired)
                    if case .object(var members) = property {
                        members["description"] = .string(member.words)
                        property = .object(members)
                    }
                    return (member.name, property)
                }, uniquingKeysWith: { first, _ in first }))
        let required = members.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { schema["required"] = .array(required) }
        let isNeeded = !required.isEmpty || !rule.isEmpty
        return ["required": .bool(isNeeded), "content": ["application/json": ["schema": .object(schema)]]]
    }

    private static let cursorPattern = "^(oldest|[0-9a-f]{16}-[0-9]{1,18})$"

    private static func schema(of member: ControlRoute.Member, mayBeNull: Bool) -> JSONValue {
        func typed(_ type: String, _ rules: [String: JSONValue] = [:]) -> JSONValue {
            var members = rules
            members["type"] = mayBeNull ? [.string(type), "null"] : .string(type)
            return .object(members)
        }
        switch member.kind {
        case .text(let bytes): return typed("string", ["minLength": 1, "maxLength": .integer(Int64(bytes))])
        case .path:
            return typed("string", ["pattern": "^/", "maxLength": .integer(Int64(ControlLimits.pathBytes))])
        case .keys: return typed("string", ["pattern": .string("^[0-9*#A-Da-d!]{1,\(ControlLimits.keys)}$")])
        case .callNumber: return typed("integer", ["minimum": 1, "maximum": .integer(.max)])
        case .decibels:
            let range = ControlLimits.volumeDB
            return typed("number", ["minimum": .number(range.lowerBound), "maximum": .number(range.upperBound)])
        case .integer(let range):
            return typed("integer", ["minimum": .integer(range.lowerBound), "maximum": .integer(range.upperBound)])
        case .flag: return typed("boolean")
        case .acceptKey: return typed("string", ["pattern": "^[0-9*#A-D]$"])
        case .music:
            return typed("string", ["pattern": "^(bot$|/)", "maxLength": .integer(Int64(ControlLimits.pathBytes))])
        case .webSocketURL:
            return typed("string", ["pattern": .string("^wss?://[!-~]{1,\(ControlLimits.nameBytes)}$")])
        case .choice(let words):
            return typed("string", ["enum": .array(words.map { .string($0) } + (mayBeNull ? [.null] : []))])
        case .cursor: return typed("string", ["pattern": .string(cursorPattern)])
        }
    }

    /// The answers with problems, by status.
    static func answers(with problems: [ControlProblem.Kind]) -> [String: JSONValue] {
        var responses: [String: JSONValue] = [:]
        for (status, kinds) in Dictionary(grouping: problems, by: \.status) {
            let list = kinds.map { "`\($0.code.rawValue)`: \($0.title)" }.joined(separator: "; ")
            let schema: JSONValue = [
                "allOf": [
                    ["$ref": "#/components/schemas/Problem"],
                    ["properties": ["code": ["enum": .array(kinds.map { .string($0.code.rawValue) })]]],
                ]
            ]
            responses["\(status)"] = [
                "description": .string(list), "content": .object([ControlProblem.contentType: ["schema": schema]]),
            ]
        }
        return responses
    }

    /// The schema of problems of these kinds.
    static func problem(_ kinds: [ControlProblem.Kind]) -> JSONValue {
        let codes = kinds.map { JSONValue.string($0.code.rawValue) }
        return object(
            ["type": text, "title": text, "status": integer, "detail": text, "code": ["enum": .array(codes)]],
            required: ["type", "title", "status", "detail", "code"])
    }

    /// The state of events in a status. `lost` is of an exchange alone.
    static var eventsState: JSONValue {
        object(
            [
                "cursor": text, "clients": integer, "dropped": integer, "lost": integer,
                "webhooks": ["type": "array", "items": reference("Webhook")],
            ], required: ["cursor", "clients", "dropped"])
    }

    /// What has become of events for the webhooks of a server: the schema `Webhook`.
    static var webhook: JSONValue {
        object(
            [
                "server": text, "delivered": integer, "failed": integer, "lost": integer, "gaps": integer,
                "delay_s": number,
            ], required: ["server", "delivered", "failed", "lost", "gaps"])
    }

    static var text: JSONValue { ["type": "string"] }
    static var integer: JSONValue { ["type": "integer"] }
    static var number: JSONValue { ["type": "number"] }
    static var flag: JSONValue { ["type": "boolean"] }
    static func reference(_ name: String) -> JSONValue { ["$ref": .string("#/components/schemas/\(name)")] }

    static func object(_ properties: [String: JSONValue], required: [String]) -> JSONValue {
        [
            "type": "object", "properties": .object(properties),
            "required": .array(required.map { .string($0) }),
        ]
    }
}
