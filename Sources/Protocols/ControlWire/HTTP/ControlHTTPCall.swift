internal import Core
internal import JSON

/// A request of ``ControlRequest`` as a client sends it over HTTP: what ``ControlOperation`` takes apart, by the same table of routes.
public struct ControlHTTPCall: Sendable {
    /// The method, such as `GET`.
    public let method: String
    /// Path and query.
    public let target: String
    /// The content; empty for none.
    public let body: [UInt8]
    private let answer: ControlRoute.Answer

    /// Writes a request. `watch` is none: its events are those of ``ControlHTTPCall/events(levels:account:after:)``.
    public init(_ request: ControlRequest) {
        var members = Self.members(of: request)
        let name = members.removeValue(forKey: "request")?.string ?? ""
        members["id"] = nil
        let route = Self.route(for: name, members)
        method = route.method.rawValue
        answer = route.answer
        var path: [String] = []
        for part in route.parts {
            switch part {
            case ControlRoute.callPart[...]:
                path.append(members.removeValue(forKey: "call").map(Self.text) ?? ControlRoute.currentCall)
            case ControlRoute.recordPart[...]: path.append(members.removeValue(forKey: "record").map(Self.text) ?? "")
            default: path.append(String(part))
            }
        }
        var query: [(String, JSONValue)] = []
        if let account = members.removeValue(forKey: "account") { query.append(("account", account)) }
        switch route.method {
        case .get:
            // One record, or one call, has no page.
            let known = members.filter { member in route.query.contains { $0.name == member.key } }
            query += known.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            body = []
        case .post: body = members.isEmpty ? [] : Array(ControlCoding.line(JSONValue.object(members)).dropLast())
        }
        target = "/" + path.joined(separator: "/") + Self.query(query)
    }

    /// The target of the stream of events.
    ///
    /// - Parameters:
    ///   - account: Whose events, with those of the process; nil for all.
    ///   - cursor: Where they begin; nil for now.
    public static func events(levels: Bool, account: String?, after cursor: String?) -> String {
        var parameters: [(String, JSONValue)] = []
        if let cursor { parameters.append(("after", .string(cursor))) }
        if levels { parameters.append(("levels", true)) }
        if let account { parameters.append(("account", .string(account))) }
        return "/v1/events" + query(parameters)
    }

    /// The answer as the socket of lines has it, and the line that it would be there.
    public func reply(status: Int, body: [UInt8]) -> (reply: ControlReply, line: [UInt8]) {
        var members: [String: JSONValue] = [:]
        if status < 300 {
            members = Self.members(of: body, answer)
            members["ok"] = true
        } else {
            let problem = ControlCoding.decode(JSONValue.self, from: body)
            guard let code = problem?["code"]?.string, let detail = problem?["detail"]?.string else {
                return Self.unreadable(status)
            }
            members = ["ok": false, "error": ["code": .string(code), "message": .string(detail)]]
        }
        let line = ControlCoding.line(JSONValue.object(members))
        guard let reply = ControlCoding.decode(ControlReply.self, from: line), Self.isWhole(reply, answer) else {
            return Self.unreadable(status)
        }
        return (reply, line)
    }

    private static func unreadable(_ status: Int) -> (reply: ControlReply, line: [UInt8]) {
        let fault = ControlFault(
            .failed, "the answer cannot be read (status \(status)); is it a device of Handset that listens there?")
        let reply = ControlReply(id: nil, fault)
        return (reply, ControlCoding.line(reply))
    }

    /// Whether an answer that says that all went well has what it is about.
    private static func isWhole(_ reply: ControlReply, _ answer: ControlRoute.Answer) -> Bool {
        guard reply.ok else { return true }
        return switch answer {
        case .status: reply.status != nil
        case .calls, .call: reply.calls != nil
        case .history, .record: reply.history != nil
        case .conferences: reply.conferences != nil
        case .queues: reply.queues != nil
        case .placed, .done, .recording: reply.call != nil
        case .sound: reply.sound != nil
        case .nothing, .accounts, .file, .events, .description: true
        }
    }

    private static func members(of body: [UInt8], _ answer: ControlRoute.Answer) -> [String: JSONValue] {
        guard let value = ControlCoding.decode(JSONValue.self, from: body) else { return [:] }
        switch answer {
        case .status: return ["status": value]
        case .sound: return ["sound": value]
        case .call: return ["calls": [value]]
        case .record: return ["history": [value]]
        case .calls, .history, .placed, .done, .recording, .conferences, .queues, .accounts:
            guard case .object(var members) = value else { return [:] }
            if answer == .calls { members["more"] = .bool(members.removeValue(forKey: "next") != nil) }
            return members
        case .nothing, .file, .events, .description: return [:]
        }
    }

    private static func members(of request: ControlRequest) -> [String: JSONValue] {
        // What is written of a request is nested less deeply than anything that is read.
        guard case .object(let members)? = ControlCoding.decode(JSONValue.self, from: ControlCoding.line(request))
        else { return [:] }
        return members
    }

    /// The route with the most of a request's members in its path.
    private static func route(for name: String, _ members: [String: JSONValue]) -> ControlRoute {
        let suitable = ControlRoute.all.filter { route in
            guard case .request(let own, let constants) = route.work, own.rawValue == name, constants.isEmpty else {
                return false
            }
            return !route.parts.contains(ControlRoute.recordPart[...]) || members["record"] != nil
        }
        let named = suitable.filter { route in
            members["call"] != nil && route.parts.contains(ControlRoute.callPart[...])
                || route.parts.contains(ControlRoute.recordPart[...])
        }
        guard let route = named.first ?? suitable.first else {
            preconditionFailure("the request \(name) has no route over HTTP")
        }
        return route
    }

    private static func query(_ parameters: [(String, JSONValue)]) -> String {
        let texts = parameters.map { "\($0.0)=\(escaped(text($0.1)))" }
        return texts.isEmpty ? "" : "?" + texts.joined(separator: "&")
    }

    private static func text(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): text
        case .bool(let flag): "\(flag)"
        case .integer(let number): "\(number)"
        case .unsigned(let number): "\(number)"
        case .number(let number): "\(number)"
        case .null, .array, .object: ""
        }
    }

    /// A text as part of a path or of a query.
    public static func escaped(_ text: String) -> String {
        PercentEscape.escaped(text) { byte in
            let letter = byte | 0x20
            return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-._~".utf8.contains(byte)
        }
    }
}
