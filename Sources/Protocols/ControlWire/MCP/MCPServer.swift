internal import JSON

/// The limits of the Model Context Protocol here.
public enum MCPLimits {
    /// Bytes in one line of a client's, without its line break.
    public static let lineBytes = 65_536
    /// Tool calls that run at once.
    public static let runningCalls = 16
    /// Events that are kept for `wait_for_event`.
    public static let keptEvents = 256
    /// Bytes in a text that is spoken, as in a call flow.
    public static let textBytes = 4_096
    /// Seconds that a tool waits for an answer, an event or speech.
    public static let waitSeconds = 1.0...300.0
    /// Seconds of sound that are given to the recogniser at once.
    public static let heardSeconds = 1.0...120.0
    /// Seconds of a pause at which speech counts as ended.
    public static let pauseSeconds = 0.2...10.0
    /// Objects and arrays within each other.
    static let nesting = 32
}

/// What a tool has to say: text for the agent, and the same as members of an object.
public struct MCPToolResult: Hashable, Sendable {
    /// For the agent to read.
    var text: String
    /// For programs.
    var structured: [String: JSONValue]
    /// Whether the tool could not do what it was asked to.
    var isError = false

    /// What was done.
    static func done(_ text: String, _ structured: [String: JSONValue] = [:]) -> Self {
        Self(text: text, structured: structured)
    }

    /// Why it was not done, and what to try.
    static func failed(_ text: String, _ structured: [String: JSONValue] = [:]) -> Self {
        Self(text: text, structured: structured, isError: true)
    }
}

/// The server's side of the Model Context Protocol on a stream of lines, each a message of JSON-RPC 2.0.
///
/// It speaks the versions with a handshake (`initialize`) and the one in which each request names its version (`server/discover`),
/// and knows the tools and their arguments, and not what they do. Nothing that a client sends can trap.
/// Source: modelcontextprotocol.io, specification 2025-11-25 and 2026-07-28; jsonrpc.org/specification.
struct MCPServer: Sendable {
    /// What a line leads to.
    enum Step: Hashable, Sendable {
        /// This line is to be written.
        case send([UInt8])
        /// A tool is called. ``finish(_:with:)`` answers.
        case begin(Int, MCPTool, MCPOrder)
        /// The client does not want the answer any more.
        case cancel(Int)
    }

    /// A request that waits for its answer.
    private struct Waiting {
        let id: JSONValue
        let era: Era
    }

    /// What a version asks of answers.
    private enum Era {
        /// A version was agreed on in the beginning.
        case handshake
        /// Each request names its version, and each answer its type (2026-07-28).
        case envelope
    }

    /// What JSON-RPC and the protocol number as errors.
    private enum Code: Int64 {
        case parse = -32_700
        case invalidRequest = -32_600
        case methodNotFound = -32_601
        case invalidParameters = -32_602
        case unsupportedVersion = -32_022
    }

    private struct Fault: Error {
        let code: Code
        let message: String
        var data: JSONValue?
    }

    /// Versions that `initialize` may agree on, the newest first. That of 2025-03-26 allows several messages on a line, which no
    /// other version does.
    static let handshakeVersions = ["2025-11-25", "2025-06-18", "2024-11-05"]
    /// The version that a request may name for itself.
    static let envelopeVersion = "2026-07-28"

    private static let metaPrefix = "io.modelcontextprotocol/"
    /// How long a client may rely on the list of tools, which never changes.
    private static let listMilliseconds: Int64 = 3_600_000

    private let version: String
    private let tools: [MCPTool]
    private let instructions: String
    private var agreedVersion: String?
    private var waiting: [Int: Waiting] = [:]
    private var nextCall = 1

    /// - Parameters:
    ///   - version: The program's.
    ///   - tools: Those that are offered.
    ///   - instructions: What an agent should know of them all.
    init(version: String, tools: [MCPTool], instructions: String) {
        self.version = version
        self.tools = tools
        self.instructions = instructions
    }

    /// Takes a line of the client's.
    mutating func take(_ line: LineCutter.Line, into steps: inout [Step]) {
        guard case .whole(let bytes) = line else {
            return refuse(.invalidRequest, "a message has \(MCPLimits.lineBytes) bytes on its line at most", &steps)
        }
        guard JSONValue.nesting(of: bytes) <= MCPLimits.nesting, let value = Self.value(of: bytes) else {
            return refuse(.parse, "a message is a JSON object on one line", &steps)
        }
        guard case .object(let members) = value else {
            return refuse(.invalidRequest, "a message is one JSON object; several on a line are not supported", &steps)
        }
        guard let method = members["method"]?.string else {
            // Answers: this server asks the client nothing.
            guard members["result"] == nil, members["error"] == nil else { return }
            return refuse(.invalidRequest, "a message needs \"method\"", &steps)
        }
        guard members["jsonrpc"] == "2.0" else {
            return refuse(.invalidRequest, "\"jsonrpc\" must be \"2.0\"", id: Self.id(members["id"]), &steps)
        }
        guard let given = members["id"] else { return note(method, members["params"], &steps) }
        guard let id = Self.id(given) else {
            return refuse(.invalidRequest, "\"id\" must be a string or a whole number", &steps)
        }
        do throws(Fault) {
            try answer(id, method, members["params"] ?? [:], &steps)
        } catch {
            steps.append(.send(Self.line(error, id: id)))
        }
    }

    /// Answers a call of a tool, unless it was cancelled.
    mutating func finish(_ call: Int, with result: MCPToolResult, into steps: inout [Step]) {
        guard let waiting = waiting.removeValue(forKey: call) else { return }
        let members: [String: JSONValue] = [
            "content": [["type": "text", "text": .string(result.text)]],
            "structuredContent": .object(result.structured), "isError": .bool(result.isError),
        ]
        steps.append(.send(line(members, for: waiting)))
    }

    // MARK: - Requests

    private mutating func answer(
        _ id: JSONValue, _ method: String, _ parameters: JSONValue, _ steps: inout [Step]
    ) throws(Fault) {
        guard case .object(let members) = parameters else {
            throw Fault(code: .invalidParameters, message: "\"params\" must be an object")
        }
        let request = Waiting(id: id, era: try era(members))
        switch method {
        case "initialize": steps.append(.send(line(try initialise(members), for: request)))
        case "server/discover": steps.append(.send(line(discovery, for: request)))
        case "ping": steps.append(.send(line([:], for: request)))
        case "tools/list":
            try expectAgreement(request)
            steps.append(.send(line(list(for: request), for: request)))
        case "tools/call":
            try expectAgreement(request)
            try call(request, members, &steps)
        default:
            throw Fault(code: .methodNotFound, message: "there is no method \(RequestFields.quoted(method))")
        }
    }

    /// Finds out whether a request names its version.
    private func era(_ parameters: [String: JSONValue]) throws(Fault) -> Era {
        guard let named = parameters["_meta"]?[Self.metaPrefix + "protocolVersion"] else { return .handshake }
        guard named.string == Self.envelopeVersion else {
            let supported = [Self.envelopeVersion] + Self.handshakeVersions
            throw Fault(
                code: .unsupportedVersion, message: "this version of the protocol is not supported",
                data: ["supported": .array(supported.map { .string($0) }), "requested": named])
        }
        return .envelope
    }

    private func expectAgreement(_ request: Waiting) throws(Fault) {
        guard case .handshake = request.era, agreedVersion == nil else { return }
        throw Fault(code: .invalidRequest, message: "initialize comes first")
    }

    private mutating func initialise(_ parameters: [String: JSONValue]) throws(Fault) -> [String: JSONValue] {
        guard agreedVersion == nil else { throw Fault(code: .invalidRequest, message: "initialize comes once") }
        guard let wanted = parameters["protocolVersion"]?.string else {
            throw Fault(code: .invalidParameters, message: "initialize needs \"protocolVersion\", a string")
        }
        let agreed = Self.handshakeVersions.first { $0 == wanted } ?? Self.handshakeVersions[0]
        agreedVersion = agreed
        return [
            "protocolVersion": .string(agreed), "capabilities": ["tools": [:]], "serverInfo": information,
            "instructions": .string(instructions),
        ]
    }

    private var information: JSONValue { ["name": "handset", "title": "Handset", "version": .string(version)] }

    private var discovery: [String: JSONValue] {
        [
            "supportedVersions": .array(([Self.envelopeVersion] + Self.handshakeVersions).map { .string($0) }),
            "capabilities": ["tools": [:]], "serverInfo": information, "instructions": .string(instructions),
            "cacheScope": "private", "ttlMs": .integer(Self.listMilliseconds),
        ]
    }

    private func list(for request: Waiting) -> [String: JSONValue] {
        var members: [String: JSONValue] = ["tools": .array(tools.map(\.description))]
        if case .envelope = request.era {
            members["cacheScope"] = "private"
            members["ttlMs"] = .integer(Self.listMilliseconds)
        }
        return members
    }

    private mutating func call(
        _ request: Waiting, _ parameters: [String: JSONValue], _ steps: inout [Step]
    ) throws(Fault) {
        guard let name = parameters["name"]?.string, let tool = tools.first(where: { $0.rawValue == name }) else {
            let known = tools.map(\.rawValue).joined(separator: ", ")
            let given = parameters["name"]?.string.map(RequestFields.quoted) ?? "without a name"
            throw Fault(code: .invalidParameters, message: "unknown tool \(given); there are \(known)")
        }
        guard case .object(let arguments) = parameters["arguments"] ?? [:] else {
            throw Fault(code: .invalidParameters, message: "\"arguments\" must be an object")
        }
        guard !waiting.values.contains(where: { $0.id == request.id }) else {
            throw Fault(code: .invalidRequest, message: "a call with this id is running")
        }
        let call = nextCall
        nextCall += 1
        let count = waiting.count
        waiting[call] = request
        guard count < MCPLimits.runningCalls else {
            let text = "\(MCPLimits.runningCalls) tool calls are running, the limit; wait until one has ended"
            return finish(call, with: .failed(text, ["code": "too_many"]), into: &steps)
        }
        do throws(ControlFault) {
            steps.append(.begin(call, tool, try tool.order(arguments)))
        } catch {
            // An answer that the agent reads, so that it can try again.
            finish(call, with: MCPToolResult(error), into: &steps)
        }
    }

    // MARK: - Notifications

    /// Takes a notification, which has no answer. One that is not known is ignored.
    private mutating func note(_ method: String, _ parameters: JSONValue?, _ steps: inout [Step]) {
        guard method == "notifications/cancelled", let id = parameters?["requestId"],
            let call = waiting.first(where: { $0.value.id == id })?.key
        else { return }
        waiting[call] = nil
        steps.append(.cancel(call))
    }

    // MARK: - Lines

    private static func id(_ value: JSONValue?) -> JSONValue? {
        switch value {
        case .integer?, .string?: value
        case nil, .null?, .bool?, .unsigned?, .number?, .array?, .object?: nil
        }
    }

    private static func value(of bytes: [UInt8]) -> JSONValue? { ControlCoding.decode(JSONValue.self, from: bytes) }

    private func refuse(_ code: Code, _ message: String, id: JSONValue? = nil, _ steps: inout [Step]) {
        steps.append(.send(Self.line(Fault(code: code, message: message), id: id ?? .null)))
    }

    private func line(_ result: [String: JSONValue], for request: Waiting) -> [UInt8] {
        var result = result
        if case .envelope = request.era {
            result["resultType"] = "complete"
            result["_meta"] = .object([Self.metaPrefix + "serverInfo": information])
        }
        return Self.line(["jsonrpc": "2.0", "id": request.id, "result": .object(result)])
    }

    private static func line(_ fault: Fault, id: JSONValue) -> [UInt8] {
        var error: [String: JSONValue] = [
            "code": .integer(fault.code.rawValue), "message": .string(fault.message),
        ]
        error["data"] = fault.data
        return line(["jsonrpc": "2.0", "id": id, "error": .object(error)])
    }

    private static func line(_ message: [String: JSONValue]) -> [UInt8] {
        ControlCoding.line(JSONValue.object(message))
    }
}

extension MCPToolResult {
    /// A fault of the device, or of the arguments.
    init(_ fault: ControlFault) {
        self = .failed(fault.message, ["code": .string(fault.code.rawValue)])
    }
}
