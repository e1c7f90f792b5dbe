internal import JSON

/// The description of the HTTP interface in OpenAPI 3.1, made from ``ControlRoute/all``.
public enum ControlDescription {
    /// The version of the interface, which grows with each addition.
    static let version = "1.1"

    /// The description in JSON.
    public static let openAPI: [UInt8] = ControlCoding.line(document)

    static var answer: ControlHTTPAnswer { ControlHTTPAnswer(status: 200, body: openAPI) }

    static let document: JSONValue = [
        "openapi": "3.1.0",
        "info": [
            "title": "Handset: control of a running device", "version": .string(version),
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
        for route in ControlRoute.all {
            paths[route.path, default: [:]][route.method.rawValue.lowercased()] = operation(route)
        }
        return .object(paths.mapValues { .object($0) })
    }()

    private static func operation(_ route: ControlRoute) -> JSONValue {
        var operation: [String: JSONValue] = [
            "operationId": .string(route.name), "summary": .string(route.words), "responses": responses(of: route),
        ]
        let parameters = parameters(of: route)
        if !parameters.isEmpty { operation["parameters"] = .array(parameters) }
        if route.method == .post { operation["requestBody"] = body(route.body, rule: route.bodyRule) }
        return .object(operation)
    }

    private static func parameters(of route: ControlRoute) -> [JSONValue] {
        var parameters: [JSONValue] = []
        if route.namesCall {
            parameters.append([
                "name": "call", "in": "path", "required": true, "schema": ["type": "integer", "minimum": 1],
                "description": "The call's number",
            ])
        }
        if route.parts.contains(Substring(ControlRoute.recordPart)) {
            parameters.append([
                "name": "record", "in": "path", "required": true,
                "schema": [
                    "type": "string", "pattern": .string("^[0-9A-Za-z_-]{1,\(ControlLimits.recordBytes)}$"),
                ],
                "description": "The record's name",
            ])
        }
        for member in route.parameters { parameters.append(parameter(member)) }
        if case .events = route.work { parameters.append(lastEventID) }
        if case .recording = route.work {
            parameters += [
                [
                    "name": "Range", "in": "header", "schema": ["type": "string"],
                    "description": "One range of bytes; what is none selects the whole file",
                ],
                [
                    "name": "If-Range", "in": "header", "schema": ["type": "string"],
                    "description": "The `ETag` of the file that the range is of",
                ],
            ]
        }
        if route.method == .post { parameters.append(idempotencyKey) }
        return parameters
    }

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
        case .choice(let words):
            return typed("string", ["enum": .array(words.map { .string($0) } + (mayBeNull ? [.null] : []))])
        case .cursor: return typed("string", ["pattern": .string(cursorPattern)])
        }
    }
}

// MARK: - Answers

extension ControlDescription {
    private static func responses(of route: ControlRoute) -> JSONValue {
        var responses: [String: JSONValue] = [:]
        let (status, content) = success(of: route.answer)
        responses[status] = .object(content)
        if case .file = route.answer {
            responses["206"] = .object(
                file("The selected part", ["Content-Range": "Which part it is, and of how many bytes"]))
        }
        return .object(responses.merging(answers(with: problems(of: route))) { first, _ in first })
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

    /// The problems that a route may answer with.
    static func problems(of route: ControlRoute) -> [ControlProblem.Kind] {
        var codes: [ControlFault.Code] = [
            .wrongValue, .tokenInURL, .unauthorized, .foreignHost, .foreignOrigin, .tooMany, .methodNotAllowed,
            .notFound,
            .tooLong,
        ]
        switch route.work {
        case .request, .recording: codes += [.noSuchAccount, .failed]
        case .events, .description: break
        }
        if route.method == .post {
            codes += [.malformed, .unsupportedMediaType, .idempotencyBusy, .idempotencyMismatch]
        }
        codes += route.faults
        return ControlProblem.kinds.filter { codes.contains($0.code) }
    }

    private static func success(of answer: ControlRoute.Answer) -> (status: String, response: [String: JSONValue]) {
        func json(_ schema: JSONValue, _ words: String) -> [String: JSONValue] {
            ["description": .string(words), "content": ["application/json": ["schema": schema]]]
        }
        func named(_ name: String) -> JSONValue { ["$ref": .string("#/components/schemas/\(name)")] }
        func list(_ name: String, of schema: String) -> [String: JSONValue] {
            [name: ["type": "array", "items": named(schema)]]
        }
        switch answer {
        case .status: return ("200", json(named("Status"), "The state"))
        case .accounts:
            return (
                "200",
                json(
                    [
                        "type": "object", "properties": .object(list("accounts", of: "Account")),
                        "required": ["accounts"],
                    ], "The accounts")
            )
        case .calls:
            var properties = list("calls", of: "Call")
            properties["next"] = ["type": "integer"]
            return (
                "200",
                json(["type": "object", "properties": .object(properties), "required": ["calls"]], "A page of calls")
            )
        case .call: return ("200", json(named("Call"), "The call"))
        case .history:
            var properties = list("history", of: "Record")
            properties["next"] = ["type": "string"]
            return (
                "200",
                json(
                    ["type": "object", "properties": .object(properties), "required": ["history"]], "A page of records")
            )
        case .record: return ("200", json(named("Record"), "The record"))
        case .file: return ("200", file("The whole file"))
        case .placed:
            var response = json(named("Action"), "The call is being placed")
            response["headers"] = ["Location": ["schema": ["type": "string"], "description": "The call"]]
            return ("201", response)
        case .done: return ("200", json(named("Action"), "It is done"))
        case .recording: return ("200", json(named("Action"), "The recording has begun or ended"))
        case .sound: return ("200", json(named("Sound"), "Mute and volume"))
        case .conferences:
            return (
                "200",
                json(
                    [
                        "type": "object", "properties": .object(list("conferences", of: "Conference")),
                        "required": ["conferences"],
                    ], "The rooms")
            )
        case .nothing: return ("204", ["description": "It is done"])
        case .events:
            let words =
                "Events, each with `id` (its cursor), `event` and `data`, which is JSON. `gap` reports that events are missing"
            return (
                "200",
                ["description": .string(words), "content": ["text/event-stream": ["schema": ["type": "string"]]]]
            )
        case .description: return ("200", json(["type": "object"], "The description"))
        }
    }

    /// The answer with a recording, or with a part of one.
    private static func file(_ words: String, _ more: [String: String] = [:]) -> [String: JSONValue] {
        let fields = ["Accept-Ranges": "`bytes`", "ETag": "The same as long as the file is the same"]
        let headers = fields.merging(more) { own, _ in own }.mapValues { words -> JSONValue in
            ["schema": ["type": "string"], "description": .string(words)]
        }
        return [
            "description": .string(words), "headers": .object(headers),
            "content": ["audio/wav": [:], "audio/ogg": [:]],
        ]
    }

    /// The schemas of answers.
    static let schemas: [String: JSONValue] = [
        "Problem": problem(ControlProblem.kinds),
        "Action": object(
            ["call": integer, "account": text, "file": text, "to_call": integer, "slot": integer], required: ["call"]),
        "Status": object(
            [
                "version": text, "pid": integer, "uptime_s": number, "device": text, "connection": text, "user": text,
                "server": text, "behaviour": text, "draining": flag, "sound": reference("Sound"),
                "card": reference("Card"),
                "levels": reference("Levels"), "load": reference("Load"), "call_count": integer,
                "calls": ["type": "array", "items": reference("Call")],
                "accounts": ["type": "array", "items": reference("Account")],
                "events": object(
                    [
                        "cursor": text, "clients": integer, "dropped": integer,
                        "webhooks": ["type": "array", "items": reference("Webhook")],
                    ],
                    required: ["cursor", "clients", "dropped"]),
            ],
            required: [
                "version", "pid", "uptime_s", "device", "connection", "server", "behaviour", "call_count", "calls",
                "events",
            ]),
        "Webhook": object(
            [
                "server": text, "delivered": integer, "failed": integer, "lost": integer, "gaps": integer,
                "delay_s": number,
            ], required: ["server", "delivered", "failed", "lost", "gaps"]),
        "Account": object(
            [
                "account": text, "device": text, "connection": text, "user": text, "server": text, "behaviour": text,
                "draining": flag, "call_count": integer, "failure": text,
            ], required: ["account", "device", "connection", "server", "behaviour", "draining", "call_count"]),
        "Call": object(
            [
                "call": integer, "invite": text, "peer": text, "incoming": flag, "duration_s": number, "held": flag,
                "recorded": flag,
                "account": text, "state": ["enum": ["calling", "ringing", "connecting", "talking", "ending"]],
                "media": reference("Media"), "slot": integer,
            ], required: ["call", "peer", "incoming", "state", "held", "recorded"]),
        "Media": object(
            [
                "sent": integer, "received": integer, "lost": integer, "late": integer, "discarded": integer,
                "remote_lost": integer, "frames_skipped": integer, "round_trip_ms": number, "jitter_ms": number,
                "delay_ms": number, "target_delay_ms": number, "played_ms": integer, "concealed_ms": integer,
                "silent_ms": integer, "accelerated_ms": integer, "decelerated_ms": integer, "sent_dbfs": number,
                "received_dbfs": number,
            ],
            required: [
                "sent", "received", "lost", "late", "discarded", "remote_lost", "frames_skipped", "jitter_ms",
                "delay_ms", "target_delay_ms", "played_ms", "concealed_ms", "silent_ms", "accelerated_ms",
                "decelerated_ms", "sent_dbfs", "received_dbfs",
            ]),
        "Record": object(
            [
                "record": text, "account": text, "invite": text, "peer": text, "incoming": flag, "began_ms": integer,
                "ended_ms": integer, "answered_after_ms": integer, "established_after_ms": integer,
                "media_after_ms": integer, "duration_ms": integer, "reason": text, "ended_by": text, "cause": text,
                "error": text, "hung_up_because": text, "transferred_by": text, "transferred_to": text,
                "decided_by": text, "outcome": text, "remark": text,
                "findings": ["type": "array", "items": reference("Finding")], "media": ["type": "object"],
                "timeline": ["type": "object"],
                "moments": [
                    "type": "array",
                    "items": object(["at": integer, "kind": text, "text": text], required: ["at", "kind"]),
                ],
                "recordings": ["type": "array", "items": reference("Recording")],
            ], required: ["record", "peer", "incoming", "duration_ms", "reason", "ended_by", "outcome", "findings"]),
        "Recording": object(
            ["number": integer, "file": text, "began_ms": integer], required: ["number", "file", "began_ms"]),
        "Finding": object(
            ["code": text, "side": text, "whose": text, "text": text, "because": text, "try": text],
            required: ["code", "side", "whose", "text", "because", "try"]),
        "Sound": object(
            ["muted": flag, "volume_db": number, "microphone_db": number],
            required: ["muted", "volume_db", "microphone_db"]),
        "Card": object(
            [
                "playback": text, "capture": text, "running": flag, "losses": integer, "playback_xruns": integer,
                "capture_xruns": integer,
            ], required: ["running", "losses", "playback_xruns", "capture_xruns"]),
        "Conference": object(
            [
                "room": text, "file": text,
                "members": [
                    "type": "array",
                    "items": object(
                        ["call": integer, "peer": text, "speaks": flag, "muted": flag],
                        required: ["call", "speaks", "muted"]),
                ],
            ], required: ["room", "members"]),
        "Load": object(
            ["busy": number, "complexity_limit": integer, "takes_calls": flag],
            required: ["busy", "complexity_limit", "takes_calls"]),
        "Levels": object(
            [
                "microphone_dbfs": number, "microphone_peak_dbfs": number, "loudspeaker_dbfs": number,
                "loudspeaker_peak_dbfs": number,
            ],
            required: ["microphone_dbfs", "microphone_peak_dbfs", "loudspeaker_dbfs", "loudspeaker_peak_dbfs"]),
    ]

    /// The schema of problems of these kinds.
    static func problem(_ kinds: [ControlProblem.Kind]) -> JSONValue {
        let codes = kinds.map { JSONValue.string($0.code.rawValue) }
        return object(
            ["type": text, "title": text, "status": integer, "detail": text, "code": ["enum": .array(codes)]],
            required: ["type", "title", "status", "detail", "code"])
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
