internal import JSON

/// The description of a trunk's interface in OpenAPI 3.1, made from ``TrunkRoute/all``.
public enum TrunkDescription {
    private typealias Shared = InterfaceDescription

    /// The version of the interface, which grows with each addition.
    static let version = "1.0"

    /// The description in JSON.
    public static let openAPI: [UInt8] = ControlCoding.line(document)

    /// The answer to a request for the description.
    public static var answer: ControlHTTPAnswer { ControlHTTPAnswer(status: 200, body: openAPI) }

    static let document = InterfaceDescription.document(
        title: "Handset: control of a running trunk", version: version, TrunkRoute.all, schemas: schemas
    ) { route in
        let (status, answer) = success(of: route.work)
        return InterfaceDescription.operation(route, [status: answer], problems: problems(of: route))
    }

    /// The problems that a route may answer with.
    static func problems(of route: TrunkRoute) -> [ControlProblem.Kind] {
        var codes = Shared.sharedCodes
        switch route.work {
        case .call: codes.append(.noSuchCall)
        case .hangUp: codes += [.noSuchCall] + Shared.bodyCodes
        case .drain, .undrain: codes += [.wrongState] + Shared.bodyCodes
        case .status, .accounts, .calls, .events, .description: break
        }
        return ControlProblem.kinds.filter { codes.contains($0.code) }
    }

    private static func success(of work: TrunkRoute.Work) -> (status: String, answer: JSONValue) {
        func json(_ schema: String, _ words: String) -> (String, JSONValue) {
            ("200", Shared.json(Shared.reference(schema), words))
        }
        switch work {
        case .status: return json("Status", "The state")
        case .accounts:
            let list: JSONValue = ["type": "array", "items": Shared.reference("Account")]
            return ("200", Shared.json(Shared.object(["accounts": list], required: ["accounts"]), "The accounts"))
        case .calls: return ("200", Shared.page("calls", of: "Call", next: Shared.integer, "A page of calls"))
        case .call: return json("Call", "The call")
        case .hangUp:
            return (
                "200",
                Shared.json(Shared.object(["call": Shared.integer], required: ["call"]), "Both halves are being ended")
            )
        case .drain, .undrain: return ("204", ["description": "It is done"])
        case .events: return ("200", Shared.events)
        case .description: return ("200", Shared.json(["type": "object"], "The description"))
        }
    }

    /// The schemas of answers.
    static let schemas: [String: JSONValue] = {
        let (text, integer, flag) = (Shared.text, Shared.integer, Shared.flag)
        let side: JSONValue = ["enum": ["exchange", "network"]]
        func list(_ items: JSONValue) -> JSONValue { ["type": "array", "items": items] }
        func object(_ required: [String: JSONValue], _ optional: [String: JSONValue] = [:]) -> JSONValue {
            Shared.object(required.merging(optional) { first, _ in first }, required: required.keys.sorted())
        }
        let kinds = Set(TrunkRoute.all.flatMap { problems(of: $0).map(\.code) })
        return [
            "Problem": Shared.problem(ControlProblem.kinds.filter { kinds.contains($0.code) }),
            "Status": object([
                "version": text, "pid": integer, "uptime_s": Shared.number, "draining": flag, "call_count": integer,
                "max_calls": integer, "obstacles": list(text), "accounts": list(Shared.reference("Account")),
                "counters": ["type": "object", "additionalProperties": integer],
                "events": Shared.eventsState,
            ]),
            "Webhook": Shared.webhook,
            "Account": object(
                [
                    "side": side, "connection": ["enum": ["connecting", "connected", "reconnecting", "disconnected"]],
                    "server": text, "call_count": integer,
                ], ["user": text]),
            "Call": object(
                [
                    "call": integer, "side": side, "from": text, "dialled": text, "to": text,
                    "state": ["enum": ["calling", "answered", "talking", "ending"]], "age_ms": integer,
                ],
                [
                    "name": text, "talk_ms": integer, "exchange_call": integer, "network_call": integer,
                ]),
        ]
    }()
}
