internal import Core
internal import JSON

/// The path and the query of a request.
struct ControlTarget {
    let path: Substring
    private let query: [(name: String, value: String)]

    /// Names of parameters in which a token would be in logs of proxies and in histories of browsers.
    private static let tokenNames: Set = ["token", "access_token", "auth", "authorization", "bearer", "api_key", "key"]

    init(_ target: String) throws(ControlProblem) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = parts.first ?? ""
        var query: [(name: String, value: String)] = []
        for pair in (parts.count > 1 ? parts[1] : "").split(separator: "&") {
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.text(halves[0]), let value = Self.text(halves.count > 1 ? halves[1] : "") else {
                throw ControlProblem(.wrongValue, "the query is not in percent-encoded UTF-8")
            }
            if Self.isToken(name) { throw Self.tokenInURL }
            guard !query.contains(where: { $0.name == name }) else {
                throw ControlProblem(.wrongValue, "the query has \(RequestFields.quoted(name)) more than once")
            }
            query.append((name, value))
        }
        self.query = query
    }

    private static func isToken(_ name: String) -> Bool { tokenNames.contains(name.lowercased()) }

    static let tokenInURL = ControlProblem(
        .tokenInURL,
        "send the token as a bearer token in the field Authorization, and replace this one: URLs are kept in logs")

    /// Whether the query has a token, also if the rest of it cannot be read.
    static func hasToken(_ target: String) -> Bool {
        target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).dropFirst()
            .flatMap { $0.split(separator: "&") }
            .contains { pair in text(pair.prefix { $0 != "=" }).map(isToken) ?? false }
    }

    private static func text(_ escaped: Substring) -> String? {
        PercentEscape.unescaped(escaped.replacing("+", with: " ").utf8)
    }

    /// The parameters, as members of a request.
    ///
    /// - Parameters:
    ///   - parameters: Those that the path has.
    ///   - route: The path, for people.
    func members(
        _ parameters: [ControlRoute.Member], of route: String
    ) throws(ControlProblem) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        for (name, text) in query {
            guard let parameter = parameters.first(where: { $0.name == name }) else {
                throw ControlProblem(
                    .wrongValue,
                    "\(route) has no parameter \(RequestFields.quoted(name)); it has "
                        + ControlRoute.Member.list(parameters))
            }
            guard let value = parameter.value(of: text) else {
                throw ControlProblem(.wrongValue, "the parameter \(name) must be \(parameter.kindWords)")
            }
            members[name] = value
        }
        return members
    }
}

/// What requests of all interfaces have beside their target.
extension ControlHTTPRequest {
    /// The key under which the answer is kept; nil for none.
    func key(isFor method: ControlRoute.Method) throws(ControlProblem) -> String? {
        guard method == .post, let key = idempotencyKey else { return nil }
        guard (1...IdempotencyTable.keyBytes).contains(key.utf8.count),
            key.utf8.allSatisfy({ (0x20..<0x7F).contains($0) })
        else {
            throw ControlProblem(
                .wrongValue, "Idempotency-Key must be 1 to \(IdempotencyTable.keyBytes) characters of ASCII")
        }
        return key
    }

    /// The members of the body.
    ///
    /// - Parameters:
    ///   - known: Those that the path has.
    ///   - route: The path, for people.
    func members(
        _ known: [ControlRoute.Member], of route: String, _ method: ControlRoute.Method
    ) throws(ControlProblem) -> [String: JSONValue] {
        guard method == .post, !body.isEmpty else { return [:] }
        guard body.count <= ControlLimits.requestBytes else { throw ControlOperation.tooLong }
        let type = contentType?.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
        guard type == "application/json" else {
            throw ControlProblem(.unsupportedMediaType, "send the body with Content-Type: application/json")
        }
        guard case .object(let members)? = ControlCoding.value(of: body) else {
            throw ControlProblem(
                .malformed, "the body must be a JSON object, with \(ControlLimits.nesting) levels at most")
        }
        if let unknown = members.keys.filter({ name in !known.contains { $0.name == name } }).min() {
            throw ControlProblem(
                .wrongValue,
                "\(route) has no member \(RequestFields.quoted(unknown)); it has \(ControlRoute.Member.list(known))")
        }
        return members
    }
}

extension ControlRoute.Member {
    /// The value of a parameter of the query; nil if it is not of the kind.
    fileprivate func value(of text: String) -> JSONValue? {
        switch kind {
        case .text(let bytes): text.isEmpty || text.utf8.count > bytes ? nil : .string(text)
        case .path, .keys, .cursor, .acceptKey, .music, .webSocketURL, .choice: text.isEmpty ? nil : .string(text)
        case .callNumber: Digits.number(text, upTo: Int64.max).flatMap { $0 > 0 ? .integer($0) : nil }
        case .integer(let range):
            Digits.number(text, upTo: Int64.max).flatMap { range.contains($0) ? .integer($0) : nil }
        case .decibels: Double(text).map { .number($0) }
        case .flag: ["true": true, "false": false][text].map { .bool($0) }
        }
    }

    fileprivate var kindWords: String {
        switch kind {
        case .text(let bytes): "a text of 1 to \(bytes) bytes"
        case .path, .keys, .acceptKey, .music, .webSocketURL: "a text"
        case .choice(let words): words.joined(separator: " or ")
        case .callNumber: "the number of a call"
        case .integer(let range): "a number from \(range.lowerBound) to \(range.upperBound)"
        case .decibels: "a number of dB"
        case .flag: "true or false"
        case .cursor: "a cursor, or oldest"
        }
    }

    /// Names, for people.
    static func list(_ members: [ControlRoute.Member]) -> String {
        members.isEmpty ? "none" : members.map(\.name).joined(separator: ", ")
    }
}
