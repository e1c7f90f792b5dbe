internal import JSON

/// How a WebRTC leg is offered to a bot's server by HTTP, and how the server answers.
///
/// Sources: Pipecat's `transports/smallwebrtc/request_handler.py`; OpenAI's pages "Realtime API with WebRTC", "Create call" and
/// "Hang up".
public enum OfferForm: Hashable, Sendable {
    /// Pipecat's SmallWebRTC: JSON in both directions.
    ///
    /// All candidates are in the offer, so that no PATCH follows.
    case smallWebRTC(data: [String: String])
    /// `POST /v1/realtime/calls`: a description, or a form with a description and a session; a description comes back, and a
    /// `Location` that names the call.
    ///
    /// - session: A JSON object.
    case realtime(session: [UInt8]?)

    /// Bytes of a session's configuration.
    public static let sessionBytes = 16_384

    /// Whether a text can be a session's configuration: a JSON object.
    public static func isSession(_ text: String) -> Bool {
        guard text.utf8.count <= sessionBytes, case .object? = value(Array(text.utf8)) else { return false }
        return true
    }

    /// The request with an offer.
    ///
    /// - Parameter token: Is sent as bearer token (RFC 6750); nil sends none.
    public func request(_ description: String, to address: WebAddress, token: String?) -> OfferRequest {
        switch self {
        case .smallWebRTC(let data):
            var body: [String: JSONValue] = ["sdp": .string(description), "type": "offer"]
            if !data.isEmpty { body["request_data"] = .object(data.mapValues { .string($0) }) }
            let text = (try? JSONText(JSONValue.object(body)))?.bytes ?? []
            return OfferRequest(address, contentType: "application/json", token: token, body: text)
        case .realtime(nil):
            return OfferRequest(address, contentType: "application/sdp", token: token, body: Array(description.utf8))
        case .realtime(let session?):
            let parts = [("sdp", "application/sdp", Array(description.utf8)), ("session", "application/json", session)]
            let boundary = Self.boundary(apartFrom: parts.map(\.2))
            var body: [UInt8] = []
            for (name, type, content) in parts {
                body += Array(
                    "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\nContent-Type: \(type)\r\n\r\n"
                        .utf8)
                body += content + [0x0D, 0x0A]
            }
            body += Array("--\(boundary)--\r\n".utf8)
            return OfferRequest(
                address, contentType: "multipart/form-data; boundary=\(boundary)", token: token, body: body)
        }
    }

    /// A boundary that occurs in none of the parts (RFC 2046 §5.1.1).
    private static func boundary(apartFrom parts: [[UInt8]]) -> String {
        var number = 0
        while true {
            let boundary = "handset-part-\(number)"
            let bytes = Array(boundary.utf8)
            if !parts.contains(where: { $0.firstRange(of: bytes) != nil }) { return boundary }
            number += 1
        }
    }

    /// Reads what the server answers: any status, headers and bytes.
    ///
    /// - Parameter address: Where the offer was sent.
    public func answer(_ response: OfferResponse, from address: WebAddress) throws(OfferFault) -> OfferAnswer {
        guard (200..<300).contains(response.status) else { throw .refused(response.status) }
        guard response.body.count <= WireLimits.answerBytes else {
            throw OfferFault("the answer has more than \(WireLimits.answerBytes) bytes")
        }
        switch self {
        case .smallWebRTC:
            guard let value = Self.value(response.body), case .object = value else {
                throw OfferFault("the answer is not a JSON object")
            }
            guard value["type"]?.string == "answer" else { throw OfferFault("the answer's \"type\" is not \"answer\"") }
            guard let description = value["sdp"]?.string else { throw OfferFault("the answer has no \"sdp\"") }
            return OfferAnswer(description: try Self.check(description), hangUp: nil)
        case .realtime:
            guard let description = String(validating: response.body, as: UTF8.self) else {
                throw OfferFault("the answer is not in UTF-8")
            }
            return OfferAnswer(
                description: try Self.check(description),
                hangUp: response.location.flatMap { Self.hangUp($0, from: address) })
        }
    }

    private static func value(_ bytes: [UInt8]) -> JSONValue? { JSONValue(nestedAtMost: WireLimits.nesting, bytes) }

    private static func check(_ description: String) throws(OfferFault) -> String {
        guard description.hasPrefix("v=0") else { throw OfferFault("the answer's description is not SDP") }
        return description
    }

    /// Where the call that a `Location` names is hung up; nil if another server than the offer's is named, which is not to get
    /// the token.
    private static func hangUp(_ location: String, from address: WebAddress) -> WebAddress? {
        let call = location.prefix { $0 != "?" && $0 != "#" }
        guard call.utf8.count > 1, !call.hasSuffix("/") else { return nil }
        guard let place = address.resolving(call + "/hangup"), place.scheme == address.scheme,
            place.host == address.host,
            place.port == address.port
        else { return nil }
        return place
    }

    /// The request that hangs a call up.
    func hangUp(at address: WebAddress, token: String?) -> OfferRequest {
        OfferRequest(address, contentType: nil, token: token, body: [])
    }
}

/// A request to a bot's server: a POST.
public struct OfferRequest: Hashable, Sendable {
    /// The target of the request.
    public let address: WebAddress
    /// The body's media type; nil without a body.
    public let contentType: String?
    /// `Authorization`. A secret.
    public let authorization: String?
    /// The body.
    public let body: [UInt8]

    init(_ address: WebAddress, contentType: String?, token: String?, body: [UInt8]) {
        self.address = address
        self.contentType = contentType
        authorization = token.map { "Bearer \($0)" }
        self.body = body
    }
}

/// The response of a bot's server.
public struct OfferResponse: Hashable, Sendable {
    /// The status.
    public var status: Int
    /// The header `Location`.
    public var location: String?
    /// The body.
    public var body: [UInt8]

    /// Makes one.
    public init(status: Int, location: String? = nil, body: [UInt8]) {
        self.status = status
        self.location = location
        self.body = body
    }
}

/// The answer to an offer.
public struct OfferAnswer: Hashable, Sendable {
    /// The bot's description.
    public let description: String
    /// Address to notify of the call's end; nil if the server needs no notice.
    public let hangUp: WebAddress?
}

/// Why an answer to an offer cannot be used. The message does not repeat what was sent.
public struct OfferFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The message.
    public let description: String

    init(_ description: String) { self.description = description }

    static func refused(_ status: Int) -> OfferFault {
        let hint =
            switch status {
            case 300..<400: "; redirects are not followed"
            case 401, 403: "; see auth_token_file"
            default: ""
            }
        return OfferFault("the bot's server answers the offer with status \(status)\(hint)")
    }
}
