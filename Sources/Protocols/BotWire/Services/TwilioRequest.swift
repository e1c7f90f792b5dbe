/// The bodies of requests that are made of Twilio.
struct TwilioRequest {
    private let form: FormFields
    private static let events: Set<String> = ["initiated", "ringing", "answered", "completed"]
    private static let mostSeconds = 600
    /// Default ringing time, in seconds, as at Twilio.
    private static let usualSeconds = 60

    init(_ contentType: String?, _ body: [UInt8]) throws(ServiceFault) {
        let type = (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " }
        guard type == "application/x-www-form-urlencoded" else {
            throw Self.bad("the body must be application/x-www-form-urlencoded")
        }
        guard let form = FormFields(body: body) else {
            throw Self.bad(
                "the body is not a form of up to \(WireLimits.requestBytes) bytes and \(WireLimits.fields) fields in UTF-8"
            )
        }
        self.form = form
    }

    /// Changes a call.
    func update(_ call: String) throws(ServiceFault) -> BotRequest.Order {
        switch try value("Status") {
        case "completed"?: return .end(call: call, onlyUnanswered: false)
        case "canceled"?: return .end(call: call, onlyUnanswered: true)
        case _?: throw Self.bad("Status must be completed or canceled")
        case nil: break
        }
        guard let instructions = try instructions() else { throw Self.bad("there must be a Status, a Url or a Twiml") }
        return .redirect(call: call, instructions)
    }

    /// Places a call.
    func place() throws(ServiceFault) -> BotRequest.Order {
        guard let instructions = try instructions() else {
            throw Self.bad("there must be a Url or a Twiml", Self.wrongAddress)
        }
        let events = Set(form.values("StatusCallbackEvent").flatMap { $0.split(separator: " ").map(String.init) })
        guard events.isSubset(of: Self.events) else {
            throw Self.bad("StatusCallbackEvent must be initiated, ringing, answered or completed", 21_626)
        }
        return .place(
            BotRequest.PlacedCall(
                to: try party("To", missing: 21_201), from: try party("From", missing: 21_213),
                instructions: instructions,
                statusCallback: try webhook("StatusCallback", method: "StatusCallbackMethod"),
                statusEvents: events.isEmpty ? ["completed"] : events, timeoutSeconds: try timeout()))
    }

    private func party(_ name: String, missing: Int64) throws(ServiceFault) -> String {
        guard let party = try value(name), (1...WireLimits.nameBytes).contains(party.utf8.count),
            party.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
        else { throw Self.bad("\(name) must be 1 to \(WireLimits.nameBytes) bytes", missing) }
        return party
    }

    private func timeout() throws(ServiceFault) -> Int {
        guard let text = try value("Timeout") else { return Self.usualSeconds }
        guard text.utf8.count <= 3, let seconds = Int(text), (1...Self.mostSeconds).contains(seconds) else {
            throw Self.bad("Timeout must be 1 to \(Self.mostSeconds) seconds")
        }
        return seconds
    }

    private func instructions() throws(ServiceFault) -> BotRequest.Instructions? {
        let webhook = try webhook("Url", method: "Method")
        guard let document = try value("Twiml") else { return webhook.map(BotRequest.Instructions.ask) }
        guard webhook == nil else { throw Self.bad("there must be a Url or a Twiml, not both") }
        do throws(MarkupFault) {
            return .markup(try CallMarkup(Array(document.utf8)))
        } catch {
            throw Self.bad("Twiml cannot be followed: \(error)", 12_100)
        }
    }

    private func webhook(_ name: String, method: String) throws(ServiceFault) -> Webhook? {
        guard let text = try value(name) else { return nil }
        guard let address = WebAddress(text, WebAddress.Scheme.requests) else {
            throw Self.bad(
                "\(name) must be a URL that begins with https:// or http://, and have no user in it",
                name == "Url" ? Self.wrongAddress : 21_609)
        }
        guard let word = try value(method) else { return Webhook(address) }
        guard let known = Webhook.Method(rawValue: word.uppercased()) else {
            throw Self.bad("\(method) must be GET or POST")
        }
        return Webhook(address, known)
    }

    /// The value of a field, which comes once at most. An empty one counts as none, as at Twilio.
    private func value(_ name: String) throws(ServiceFault) -> String? {
        let values = form.values(name)
        guard values.count <= 1 else { throw Self.bad("\(name) must come once") }
        return values.first.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Twilio's code for an address that is missing or cannot be used.
    private static let wrongAddress: Int64 = 21_205

    private static func bad(_ words: String, _ code: Int64? = nil) -> ServiceFault {
        ServiceFault(.badRequest, .twilio, twilioCode: code, words)
    }
}
