/// The parameters of one method of the wire, tied to the method's name and to the type of its result.
public protocol RPCMethod: Codable, Hashable, Sendable {
    /// The exchange's answer.
    associatedtype Result: Codable, Hashable, Sendable
    /// The method's name.
    static var method: String { get }
}

/// The result of a method that returns nothing: an empty object.
public struct Empty: Codable, Hashable, Sendable {
    /// Makes the empty object.
    public init() {}
}

extension SignalCoding {
    /// A request, ready to send.
    public static func request<Method: RPCMethod>(
        id: RPCID, _ params: Method
    ) throws(SignalCodingError) -> [UInt8] {
        try encode(OutgoingRequest(id: id, method: Method.method, params: params))
    }

    /// A response that carries a result, ready to send.
    public static func response(id: RPCID, _ result: some Encodable) throws(SignalCodingError) -> [UInt8] {
        try encode(OutgoingResult(id: id, result: result))
    }

    /// A response that carries an error, ready to send. Without an id: the request's id could not be read.
    public static func failure(id: RPCID?, _ error: RPCError) -> [UInt8] {
        // Whole numbers and strings only, which JSON always has: there is nothing to throw.
        (try? encode(OutgoingFailure(id: id, error: error))) ?? []
    }

    /// An event, ready to send.
    public static func event(_ event: NumberedEvent) throws(SignalCodingError) -> [UInt8] {
        try encode(OutgoingEvent(params: event))
    }
}

private struct OutgoingRequest<Params: Encodable>: Encodable {
    var jsonrpc = "2.0"
    var id: RPCID
    var method: String
    var params: Params
}

private struct OutgoingResult<Result: Encodable>: Encodable {
    var jsonrpc = "2.0"
    var id: RPCID
    var result: Result
}

private struct OutgoingFailure: Encodable {
    var jsonrpc = "2.0"
    var id: RPCID?
    var error: RPCError

    private enum Key: String, CodingKey { case jsonrpc, id, error }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(jsonrpc, forKey: .jsonrpc)
        try container.encode(id, forKey: .id)
        try container.encode(error, forKey: .error)
    }
}

private struct OutgoingEvent: Encodable {
    var jsonrpc = "2.0"
    var method = NumberedEvent.method
    var params: NumberedEvent
}
