internal import JSON

/// The description of the HTTP interface in OpenAPI 3.1, made from ``ControlRoute/all``.
public enum ControlDescription {
    /// The version of the interface, which grows with each addition.
    static let version = "1.1"

    /// The description in JSON.
    public static let openAPI: [UInt8] = ControlCoding.line(document)

    static var answer: ControlHTTPAnswer { ControlHTTPAnswer(status: 200, body: openAPI) }

    static let document = InterfaceDescription.document(
        title: "Handset: control of a running device", version: version, ControlRoute.all, schemas: schemas,
        operation: operation)

    private static func operation(_ route: ControlRoute) -> JSONValue {
        var responses = [success(of: route.answer)]
        var more: [JSONValue] = []
        if case .recording = route.work {
            responses.append(
                ("206", file("The selected part", ["Content-Range": "Which part it is, and of how many bytes"])))
            more = [
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
        return InterfaceDescription.operation(
            route, Dictionary(responses) { first, _ in first }, problems: problems(of: route), more: more)
    }
}

// MARK: - Answers

extension ControlDescription {
    /// The problems that a route may answer with.
    static func problems(of route: ControlRoute) -> [ControlProblem.Kind] {
        var codes = InterfaceDescription.sharedCodes
        switch route.work {
        case .request, .recording: codes += [.noSuchAccount, .failed]
        case .events, .description: break
        }
        if route.method == .post { codes += InterfaceDescription.bodyCodes }
        codes += route.faults
        return ControlProblem.kinds.filter { codes.contains($0.code) }
    }

    private static func success(of answer: ControlRoute.Answer) -> (status: String, response: JSONValue) {
        typealias Shared = InterfaceDescription
        func json(_ schema: String, _ words: String) -> (String, JSONValue) {
            ("200", Shared.json(Shared.reference(schema), words))
        }
        func list(_ name: String, of entry: String, _ words: String) -> (String, JSONValue) {
            let list: JSONValue = ["type": "array", "items": Shared.reference(entry)]
            return ("200", Shared.json(Shared.object([name: list], required: [name]), words))
        }
        switch answer {
        case .status: return json("Status", "The state")
        case .accounts: return list("accounts", of: "Account", "The accounts")
        case .calls: return ("200", Shared.page("calls", of: "Call", next: Shared.integer, "A page of calls"))
        case .call: return json("Call", "The call")
        case .history: return ("200", Shared.page("history", of: "Record", next: Shared.text, "A page of records"))
        case .record: return json("Record", "The record")
        case .file: return ("200", file("The whole file"))
        case .placed:
            return (
                "201",
                [
                    "description": "The call is being placed",
                    "content": ["application/json": ["schema": Shared.reference("Action")]],
                    "headers": ["Location": ["schema": ["type": "string"], "description": "The call"]],
                ]
            )
        case .done: return json("Action", "It is done")
        case .recording: return json("Action", "The recording has begun or ended")
        case .sound: return json("Sound", "Mute and volume")
        case .conferences: return list("conferences", of: "Conference", "The rooms")
        case .queues: return list("queues", of: "Queue", "The queues")
        case .nothing: return ("204", ["description": "It is done"])
        case .events: return ("200", Shared.events)
        case .description: return ("200", Shared.json(["type": "object"], "The description"))
        }
    }

    /// The answer with a recording, or with a part of one.
    private static func file(_ words: String, _ more: [String: String] = [:]) -> JSONValue {
        let fields = ["Accept-Ranges": "`bytes`", "ETag": "The same as long as the file is the same"]
        let headers = fields.merging(more) { own, _ in own }.mapValues { words -> JSONValue in
            ["schema": ["type": "string"], "description": .string(words)]
        }
        return [
            "description": .string(words), "headers": .object(headers),
            "content": ["audio/wav": [:], "audio/ogg": [:]],
        ]
    }

    private static var text: JSONValue { InterfaceDescription.text }
    private static var integer: JSONValue { InterfaceDescription.integer }
    private static var number: JSONValue { InterfaceDescription.number }
    private static var flag: JSONValue { InterfaceDescription.flag }
    private static func reference(_ name: String) -> JSONValue { InterfaceDescription.reference(name) }
    private static func object(_ properties: [String: JSONValue], required: [String]) -> JSONValue {
        InterfaceDescription.object(properties, required: required)
    }

    /// The schemas of answers.
    static let schemas: [String: JSONValue] = [
        "Problem": InterfaceDescription.problem(ControlProblem.kinds),
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
                "events": InterfaceDescription.eventsState,
            ],
            required: [
                "version", "pid", "uptime_s", "device", "connection", "server", "behaviour", "call_count", "calls",
                "events",
            ]),
        "Webhook": InterfaceDescription.webhook,
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
        "Queue": object(
            [
                "queue": text, "account": text,
                "callers": [
                    "type": "array",
                    "items": object(
                        ["call": integer, "peer": text, "waited_s": number], required: ["call", "waited_s"]),
                ],
            ], required: ["queue", "callers"]),
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
}
