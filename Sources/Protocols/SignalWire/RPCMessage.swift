internal import JSON

/// The id that ties a response to its request: a number or a string (JSON-RPC 2.0 §4).
public enum RPCID: Hashable, Sendable, Codable {
    /// A whole number.
    case number(Int64)
    /// A string.
    case string(String)

    /// Reads either form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int64.self) {
            self = .number(number)
        } else {
            self = .string(try container.decode(String.self))
        }
    }

    /// Writes the form it came in.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .number(let number): try container.encode(number)
        case .string(let text): try container.encode(text)
        }
    }
}

/// One JSON-RPC 2.0 message as it came in: the envelope is read, what it carries is read when its type is known.
public struct RPCMessage: Sendable {
    /// The kinds of messages.
    public enum Kind: Hashable, Sendable {
        /// Wants a response with the same id.
        case request(id: RPCID, method: String)
        /// Wants none.
        case notification(method: String)
        /// A request sent to the other side succeeded.
        case result(id: RPCID)
        /// A request sent to the other side failed; the id is absent if the other side could not read it.
        case failure(id: RPCID?, RPCError)
    }

    /// A message that cannot be answered with anything but an error.
    public struct Malformed: Error, Hashable, Sendable {
        /// The request's id, where it could be read.
        public var id: RPCID?
        /// The error to answer with.
        public var error: RPCError

        /// Names what is wrong with a message.
        public init(id: RPCID?, error: RPCError) {
            self.id = id
            self.error = error
        }
    }

    /// The kind of this message.
    public let kind: Kind
    private let bytes: [UInt8]
    /// The parsed value of a plain text, so that it is parsed once.
    private let plain: JSONValue?
    private let bounds: SignalBounds

    /// Reads the envelope of one message.
    ///
    /// - Parameters:
    ///   - bytes: One WebSocket text message. Any length, any bytes.
    ///   - bounds: What is taken: a client takes more than the exchange does.
    /// - Complexity: O(bytes).
    public init(decoding bytes: [UInt8], within bounds: SignalBounds = .request) throws(Malformed) {
        let plain = SignalCoding.plain(bytes, within: bounds)
        let envelope: Envelope
        do {
            envelope = try Self.envelope(plain, bytes, bounds)
        } catch {
            // The refusal carries the request's id, so that its sender knows which request it was.
            let whole =
                error.code == .tooDeep
                ? try? SignalCoding.decode(Envelope.self, from: bytes, within: .envelope) : nil
            throw Malformed(id: whole?.id, error: Self.refusal(of: error))
        }
        guard envelope.jsonrpc == "2.0" else {
            throw Malformed(id: envelope.id, error: RPCError(.invalidRequest, "jsonrpc must be \"2.0\"."))
        }
        switch (envelope.method, envelope.id, envelope.error) {
        case (let method?, let id?, nil) where !envelope.hasResult: kind = .request(id: id, method: method)
        case (let method?, nil, nil) where !envelope.hasResult && !envelope.hasID:
            kind = .notification(method: method)
        case (nil, let id?, nil) where envelope.hasResult: kind = .result(id: id)
        case (nil, let id, let error?) where !envelope.hasResult: kind = .failure(id: id, error)
        default:
            let message = "A message has a method, or a result, or an error, and an id that is a number or a string."
            throw Malformed(id: envelope.id, error: RPCError(.invalidRequest, message))
        }
        self.bytes = bytes
        self.plain = plain
        self.bounds = bounds
    }

    /// The parameters of a request or notification; a message without any counts as having an empty object.
    public func params<Params: Decodable>(_ type: Params.Type) throws(RPCError) -> Params {
        if let params = plainParams(type) { return params }
        do {
            let envelope = try SignalCoding.decode(ParamsEnvelope<Params>.self, from: bytes, within: bounds)
            if let params = envelope.params { return params }
            return try SignalCoding.decode(type, from: Array("{}".utf8))
        } catch {
            throw RPCError(.invalidParams, "Parameters of another kind are expected: \(error).")
        }
    }

    private static func envelope(
        _ plain: JSONValue?, _ bytes: [UInt8], _ bounds: SignalBounds
    ) throws(SignalCodingError) -> Envelope {
        if let envelope = try? plain?.decoded(as: Envelope.self) { return envelope }
        return try SignalCoding.decode(Envelope.self, from: bytes, within: bounds)
    }

    private func plainParams<Params: Decodable>(_ type: Params.Type) -> Params? {
        guard let plain, let envelope = try? plain.decoded(as: ParamsEnvelope<Params>.self) else { return nil }
        return envelope.params ?? (try? JSONValue.object([:]).decoded())
    }

    /// The result of a request sent to the other side.
    public func result<Result: Decodable>(_ type: Result.Type) throws(SignalCodingError) -> Result {
        if let envelope = try? plain?.decoded(as: ResultEnvelope<Result>.self) { return envelope.result }
        return try SignalCoding.decode(ResultEnvelope<Result>.self, from: bytes, within: bounds).result
    }

    private static func refusal(of error: SignalCodingError) -> RPCError {
        switch error.code {
        case .notJSON, .notRepresentable: RPCError(.parseError, "The message cannot be read: \(error).")
        case .wrongShape: RPCError(.invalidRequest, "The message is not JSON-RPC 2.0: \(error).")
        case .tooLarge:
            RPCError(.tooLarge, "The message is refused: \(error).", limit: SignalLimits.messageBytes)
        case .tooDeep: RPCError(.parseError, "The message is refused: \(error).")
        }
    }
}

/// The members of any message, its contents aside.
private struct Envelope: Decodable {
    var jsonrpc: String?
    var method: String?
    var id: RPCID?
    var hasID: Bool
    var hasResult: Bool
    var error: RPCError?

    private enum Key: String, CodingKey { case jsonrpc, method, id, result, error }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        jsonrpc = try? container.decodeIfPresent(String.self, forKey: .jsonrpc)
        // The reader of the envelope refuses a value of another type; its refusal then carries the message's id.
        method = try? container.decodeIfPresent(String.self, forKey: .method)
        id = try? container.decodeIfPresent(RPCID.self, forKey: .id)
        hasID = container.contains(.id)
        hasResult = container.contains(.result)
        error = try container.decodeIfPresent(RPCError.self, forKey: .error)
    }
}

private struct ParamsEnvelope<Params: Decodable>: Decodable { var params: Params? }
private struct ResultEnvelope<Result: Decodable>: Decodable { var result: Result }
