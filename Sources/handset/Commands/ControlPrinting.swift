internal import ControlPlane
internal import ControlWire
internal import Core

/// A page of a list, whose `after` is a text.
protocol ListPage: Decodable {
    associatedtype Entry: Encodable
    var entries: [Entry] { get }
    /// The `after` of the next page; nil at the end.
    var following: String? { get }
}

extension ExchangeWire.Page: ListPage where Entry: ExchangeListEntry {
    var following: String? { next }
}

extension TrunkWire.Calls: ListPage {
    var entries: [TrunkWire.Call] { calls }
    var following: String? { next.map { "\($0)" } }
}

/// What commands print of a process that they act on over HTTP.
extension ControlHTTPClient {
    /// Prints all entries of a list, page by page.
    func printList<Page: ListPage>(
        _ path: String, as page: Page.Type, json: Bool, _ line: (Page.Entry) -> String
    ) async throws {
        var after = ""
        while true {
            let page = try Self.value(Page.self, of: await ask("GET", "/v1/\(path)\(after)"), json: json)
            for entry in page.entries {
                Terminal.print(json ? Self.text(ControlCoding.line(entry)) : line(entry))
            }
            guard let next = page.following else { return }
            after = "?after=\(Self.escaped(next))"
        }
    }

    /// Prints one answer.
    func printAnswer<Value: Decodable>(
        _ method: String, _ path: String, _ members: [String: String] = [:], as type: Value.Type, json: Bool,
        _ text: (Value) -> String
    ) async throws {
        let body = members.isEmpty ? [] : ControlCoding.line(members)
        try await printAnswer(method, path, body: body, as: type, json: json, text)
    }

    /// Prints one answer, of a request with this body.
    func printAnswer<Value: Decodable>(
        _ method: String, _ path: String, body: [UInt8], as type: Value.Type, json: Bool, _ text: (Value) -> String
    ) async throws {
        let answer = try await ask(method, "/v1/\(path)", body: body)
        let value = try Self.value(type, of: answer, json: json)
        Terminal.print(json ? Self.text(answer.body) : text(value))
    }

    /// Has something done about which there is nothing to say, and prints that it is done.
    func act(_ path: String, json: Bool, _ text: String) async throws {
        let answer = try await ask("POST", "/v1/\(path)")
        guard answer.status < 300 else { throw Self.failure(of: answer, json: json) }
        Terminal.print(json ? "{}" : text)
    }

    /// Prints events until the process ends, or a signal comes: that is the way to end it, so it ends well.
    ///
    /// - Parameters:
    ///   - cursor: Where they begin; nil for now.
    ///   - line: An event of this name and time, for people.
    func printEvents(after cursor: String?, json: Bool, _ line: @escaping @Sendable (Event) -> String) async throws {
        let target = "/v1/events" + (cursor.map { "?after=\(Self.escaped($0))" } ?? "")
        let task = Task {
            try await receive(target) { Terminal.print(json ? Self.object($0) : line($0)) }
        }
        Shutdown.onFirstSignal { task.cancel() }
        let failure: Answer?
        do {
            failure = try await task.value
        } catch {
            if task.isCancelled { return }
            throw error
        }
        if let failure { throw Self.failure(of: failure, json: json) }
    }

    /// A name as part of a path or of a query.
    static func escaped(_ name: String) -> String {
        PercentEscape.escaped(name) { byte in
            let letter = byte | 0x20
            return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-._~".utf8.contains(byte)
        }
    }

    private static func value<Value: Decodable>(_ type: Value.Type, of answer: Answer, json: Bool) throws -> Value {
        do throws(ControlFault) {
            return try answer.value(type)
        } catch {
            throw failure(of: answer, json: json)
        }
    }

    /// A failure, which is printed as JSON, too, if that is wanted.
    private static func failure(of answer: Answer, json: Bool) -> CommandFailure {
        if json, !answer.body.isEmpty { Terminal.print(text(answer.body)) }
        return CommandFailure(.failed, answer.fault.message)
    }

    /// A line without its line break.
    private static func text(_ line: [UInt8]) -> String {
        String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self)
    }

    private static func object(_ event: Event) -> String {
        guard let cursor = event.cursor, event.json.hasPrefix("{"), event.json != "{}" else { return event.json }
        return "{\"cursor\":\(JSONText.quoted(cursor)),\(event.json.dropFirst())"
    }
}
