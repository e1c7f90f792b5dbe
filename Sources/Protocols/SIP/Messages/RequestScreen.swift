/// The requests that an element serves, and so how it refuses a well-formed request (RFC 3261 §8.2).
public struct RequestScreen: Equatable, Sendable {
    /// The methods that are served, in the order of `Allow`.
    public var methods: [SIPMethod]
    /// The option tags that are understood, for `Require` and `Supported`.
    public var options: [String]
    /// The types of bodies that are understood.
    public var bodies: [MediaType]

    /// Makes a screen.
    public init(methods: [SIPMethod], options: [String], bodies: [MediaType]) {
        self.methods = methods
        self.options = options
        self.bodies = bodies
    }

    /// The requests that ``UserAgent`` serves.
    public static let userAgent = RequestScreen(
        methods: [.invite, .ack, .bye, .cancel, .options, .prack, .update, .info, .refer, .notify],
        options: ["100rel", "timer", "replaces"], bodies: [.sdp, .dtmfRelay, .dtmf, .sipfrag])

    /// The refusal of a request, without our tag; `nil` if it may be served.
    public func refusal(of request: SIPRequest) -> SIPResponse? {
        guard request.method != .ack else { return nil }
        guard methods.contains(request.method) else {
            var response = SIPResponse(SIPMethod.known.contains(request.method) ? 405 : 501, to: request)
            response.headers.append("Allow", allow)
            return response
        }
        if let status = statusOfURI(request) { return SIPResponse(status, to: request) }
        // CANCEL is checked with the request that it cancels, and has no Require (RFC 3261 §8.2.2.3).
        guard request.method != .cancel else { return nil }
        let unknown = request.headers.tokens("Require").filter { !options.contains($0) }
        guard unknown.isEmpty else {
            var response = SIPResponse(420, to: request)
            let names = (request.headers.elements("Require") ?? []).filter { !options.contains($0.lowercased()) }
            response.headers.append("Unsupported", names.joined(separator: ", "))
            return response
        }
        return refusalOfBody(request)
    }

    /// The value of `Allow`.
    public var allow: String { methods.map(\.rawValue).joined(separator: ", ") }
    /// The value of `Supported`.
    public var supported: String { options.joined(separator: ", ") }
    /// The value of `Accept`.
    public var accept: String { bodies.map(\.description).joined(separator: ", ") }

    private func statusOfURI(_ request: SIPRequest) -> Int? {
        switch request.uri {
        case .other: return 416
        case .tel: break
        case .sip(let uri):
            // Headers and a method are allowed only in URIs outside of messages (RFC 3261 §19.1.1).
            if !uri.headers.isEmpty || uri.parameters.contains("method") { return 400 }
        }
        // An address of record is a SIP URI (RFC 3261 §10.3).
        if request.method == .register, request.headers.to?.uri.sip == nil { return 400 }
        return nil
    }

    private func refusalOfBody(_ request: SIPRequest) -> SIPResponse? {
        let accepted = bodies.map(\.name)
        if let encoding = request.headers["Content-Encoding"], !encoding.isSame(as: "identity") {
            var response = SIPResponse(415, to: request)
            response.headers.append("Accept-Encoding", "identity")
            return response
        }
        guard let parts = SIPMessage.request(request).parts else { return SIPResponse(400, to: request) }
        // A part beside one that is understood, such as a location (RFC 6442 §3.2), is optional unless it is marked as
        // required: few senders write the `handling=optional` that RFC 3261 §20.11 would otherwise demand.
        let isUnderstood = parts.contains { accepted.contains($0.type.name) }
        if parts.contains(where: {
            !accepted.contains($0.type.name) && (isUnderstood ? $0.isRequired : !$0.isOptional)
        }) {
            var response = SIPResponse(415, to: request)
            response.headers.append("Accept", accept)
            return response
        }
        // An INVITE is answered with a description, so the sender must accept one.
        if request.method == .invite, let list = request.headers.elements("Accept"),
            request.headers.count("Accept") > 0
        {
            let types = list.compactMap { MediaType($0)?.name }
            if !types.contains(where: { $0 == MediaType.sdp.name || $0 == "application/*" || $0 == "*/*" }) {
                return SIPResponse(406, to: request)
            }
        }
        return nil
    }
}
