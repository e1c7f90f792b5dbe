internal import FoundationEssentials
internal import JSON

/// The body of a request of Telnyx's or Plivo's, which is a JSON object.
struct ServiceBody {
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
