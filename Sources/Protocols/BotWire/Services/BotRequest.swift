internal import Core
internal import FoundationEssentials
internal import JSON

/// A request that a bot makes of the service that it takes this device for.
///
/// It is read in two steps, so that a stranger's body is never read: this has the credentials and the path; once the
/// credentials are checked, ``order()`` reads the request itself.
public struct BotRequest: Equatable, Sendable {
    /// A bot's request.
    public enum Order: Equatable, Sendable {
        /// End a call; with `onlyUnanswered` if it still rings.
        case end(call: String, onlyUnanswered: Bool)
        /// Do something else with a call.
        case redirect(call: String, Instructions)
        /// Ask a call's peer to call another party instead of this device.
        case transfer(call: String, BotTransfer)
        /// Place an outgoing call.
        case place(PlacedCall)
    }

    /// A call's instructions.
    public enum Instructions: Equatable, Sendable {
        /// This.
        case markup(CallMarkup)
        /// The instructions in this webhook's answer.
        case ask(Webhook)
    }

    /// A call that a bot has placed.
    public struct PlacedCall: Equatable, Sendable {
        /// The callee.
        public let to: String
        /// The caller.
        public let from: String
        /// The instructions once the call is answered.
        public let instructions: Instructions
        /// Receives the call's status.
        public let statusCallback: Webhook?
        /// The events to send: of `initiated`, `ringing`, `answered` and `completed`.
        public let statusEvents: Set<String>
        /// How long it rings, in seconds: 1 to 600.
        public let timeoutSeconds: Int
    }

    enum Place: Equatable, Sendable {
        case twilioCall(String)
        case twilioCalls
        case telnyxHangUp(String)
        /// The member of the body that has the target.
        case telnyxTransfer(String, member: String)
        case plivoCall(String)
        case plivoTransfer(String)
    }

    /// The service whose API the bot uses.
    public let service: BotService
    /// The account in the path; Telnyx has none there.
    public let account: String?
    /// The credentials that the bot sent.
    public let credentials: ServiceCredentials
    let place: Place
    private let contentType: String?
    private let body: [UInt8]

    /// Reads the method, the path and the credentials: any text.
    public init(_ request: ServiceRequest) throws(ServiceFault) {
        let path = request.target.utf8.prefix { $0 != UInt8(ascii: "?") }
        guard path.count <= WireLimits.requestBytes, let parts = Self.parts(of: Array(path)) else {
            throw Self.noSuchPath(nil)
        }
        let service: BotService
        switch (parts.count, parts.first) {
        case (5, "2010-04-01"):
            service = .twilio
            guard parts[1] == "Accounts", parts[3] == "Calls", let call = Self.name(beforeSuffix: parts[4]) else {
                throw Self.noSuchPath(service)
            }
            (account, place) = (parts[2], .twilioCall(call))
        case (4, "2010-04-01"):
            service = .twilio
            guard parts[1] == "Accounts", parts[3] == "Calls.json" else { throw Self.noSuchPath(service) }
            (account, place) = (parts[2], .twilioCalls)
        case (5, "v2"):
            service = .telnyx
            guard parts[1] == "calls", parts[3] == "actions" else { throw Self.noSuchPath(service) }
            account = nil
            switch parts[4] {
            case "hangup": place = .telnyxHangUp(parts[2])
            case "transfer": place = .telnyxTransfer(parts[2], member: "to")
            case "refer": place = .telnyxTransfer(parts[2], member: "sip_address")
            default: throw Self.noSuchPath(service)
            }
        case (5, "v1"):
            service = .plivo
            guard parts[1] == "Account", parts[3] == "Call" else { throw Self.noSuchPath(service) }
            (account, place) = (
                parts[2], request.method == "POST" ? .plivoTransfer(parts[4]) : .plivoCall(parts[4])
            )
        default: throw Self.noSuchPath(nil)
        }
        guard request.method == "POST" || service == .plivo && request.method == "DELETE" else {
            throw ServiceFault(.wrongMethod, service, "the path does not have this method")
        }
        self.service = service
        credentials = request.credentials
        (contentType, body) = (request.contentType, request.body)
    }

    /// Reads the body: any bytes.
    public func order() throws(ServiceFault) -> Order {
        switch place {
        case .twilioCall(let call): try TwilioRequest(contentType, body).update(call)
        case .twilioCalls: try TwilioRequest(contentType, body).place()
        case .telnyxHangUp(let call), .plivoCall(let call): .end(call: call, onlyUnanswered: false)
        case .telnyxTransfer(let call, let member):
            .transfer(call: call, BotTransfer(to: try ServiceBody(body, .telnyx).target(member)))
        case .plivoTransfer(let call): .redirect(call: call, .ask(try ServiceBody(body, .plivo).plivoInstructions()))
        }
    }

    private static func noSuchPath(_ service: BotService?) -> ServiceFault {
        ServiceFault(.noSuchPath, service, "there is nothing at this path")
    }

    /// The parts of a path, each a name without a slash or a control character in it. One slash may end the path.
    private static func parts(of path: [UInt8]) -> [String]? {
        guard path.first == UInt8(ascii: "/") else { return nil }
        var pieces = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if pieces.count > 1, pieces.last?.isEmpty == true { pieces.removeLast() }
        guard pieces.count <= 8 else { return nil }
        var parts: [String] = []
        for piece in pieces {
            guard let part = PercentEscape.unescaped(piece), (1...WireLimits.nameBytes).contains(part.utf8.count),
                part.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") })
            else { return nil }
            parts.append(part)
        }
        return parts
    }

    private static func name(beforeSuffix text: String) -> String? {
        guard text.hasSuffix(".json"), text.utf8.count > 5 else { return nil }
        return String(text.dropLast(5))
    }
}

/// The body of a request of Telnyx's or Plivo's, which is a JSON object.
private struct ServiceBody {
    private let members: JSONValue
    private let service: BotService

    /// Reads a body: any bytes, of up to ``WireLimits/requestBytes``.
    init(_ body: [UInt8], _ service: BotService) throws(ServiceFault) {
        guard body.count <= WireLimits.requestBytes, JSONValue.nesting(of: body) <= WireLimits.nesting,
            let value = try? JSONDecoder().decode(JSONValue.self, from: Data(body)), case .object = value
        else {
            throw ServiceFault(
                .badRequest, service, "the body must be a JSON object of up to \(WireLimits.requestBytes) bytes")
        }
        members = value
        self.service = service
    }

    /// The target of a transfer.
    func target(_ name: String) throws(ServiceFault) -> String {
        guard let target = members[name]?.string, (1...WireLimits.nameBytes).contains(target.utf8.count) else {
            throw bad("\"\(name)\" must be a text of 1 to \(WireLimits.nameBytes) bytes")
        }
        return target
    }

    /// The webhook that answers with a call's instructions, in Plivo's form. Only the bot's own leg exists here.
    func plivoInstructions() throws(ServiceFault) -> Webhook {
        guard ["aleg", nil].contains(members["legs"]?.string) else { throw bad("\"legs\" must be \"aleg\"") }
        guard let address = members["aleg_url"]?.string.flatMap({ WebAddress($0, WebAddress.Scheme.requests) }) else {
            throw bad("\"aleg_url\" must be a URL that begins with https:// or http://, and have no user in it")
        }
        guard let word = members["aleg_method"]?.string else { return Webhook(address) }
        guard let method = Webhook.Method(rawValue: word.uppercased()) else {
            throw bad("\"aleg_method\" must be GET or POST")
        }
        return Webhook(address, method)
    }

    private func bad(_ words: String) -> ServiceFault { ServiceFault(.badRequest, service, words) }
}
