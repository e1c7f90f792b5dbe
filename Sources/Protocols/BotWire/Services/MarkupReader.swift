internal import XML

/// Reads the elements of a webhook's answer.
struct MarkupReader {
    let base: WebAddress?

    /// Twilio's and Plivo's elements that are not followed here, which a fault may name.
    private static let otherVerbs: Set<String> = [
        "Say", "Play", "Gather", "Record", "Start", "Stop", "Enqueue", "Leave", "Pay", "Prompt", "Siprec", "Sms",
        "Message", "Conference", "Speak", "GetDigits", "GetInput", "DTMF", "PreAnswer", "MultiPartyCall",
    ]
    private static let secondsInADay = 86_400

    // MARK: - Twilio

    func twilioVerb(_ element: XMLElement) throws(MarkupFault) -> CallMarkup.Verb {
        switch element.name {
        case "Connect": return .stream(try twilioStream(element))
        case "Pause": return .pause(seconds: try seconds("length", of: element))
        case "Hangup":
            try expectNothing(in: element)
            return .hangUp
        case "Reject": return .reject(try rejection(element) ?? .rejected)
        case "Dial": return .transfer(try transfer(element, nouns: ["Number", "Client", "Sip"]))
        case "Refer": return .transfer(try transfer(element, nouns: ["Sip", "ReferSip"], takesText: false))
        case "Redirect":
            return .redirect(Webhook(try link(element.text, in: element), try method("method", of: element)))
        default: throw unknown(element)
        }
    }

    private func twilioStream(_ element: XMLElement) throws(MarkupFault) -> BotStream {
        try expectNoText(in: element)
        guard let stream = element.children.first, element.children.count == 1, stream.name == "Stream" else {
            throw MarkupFault(element.line, "<Connect> must contain one <Stream>, and nothing else")
        }
        try expectNoText(in: stream)
        guard let url = stream[attribute: "url"], let address = WebAddress(trimmed(url), WebAddress.Scheme.sockets)
        else {
            throw MarkupFault(stream.line, "<Stream> must have a url that begins with wss:// or ws://")
        }
        guard ["inbound_track", nil].contains(stream[attribute: "track"]) else {
            throw MarkupFault(stream.line, "a stream of <Connect> has the inbound track, and no other")
        }
        return BotStream(
            address: address, parameters: try parameters(of: stream), name: stream[attribute: "name"],
            statusCallback: try webhook("statusCallback", of: stream), action: try webhook("action", of: element),
            callerFormat: nil)
    }

    private func parameters(of stream: XMLElement) throws(MarkupFault) -> [String: String] {
        var parameters: [String: String] = [:]
        for child in stream.children {
            guard child.name == "Parameter", let name = child[attribute: "name"], !name.isEmpty else {
                throw MarkupFault(
                    child.line, "<Stream> contains elements <Parameter name=\"…\" value=\"…\"/>, and nothing else")
            }
            try expectNothing(in: child)
            try add(name, child[attribute: "value"] ?? "", to: &parameters, line: child.line)
        }
        return parameters
    }

    private func add(
        _ name: String, _ value: String, to parameters: inout [String: String], line: Int
    ) throws(MarkupFault) {
        guard name.utf8.count + value.utf8.count <= WireLimits.parameterBytes else {
            throw MarkupFault(line, "a parameter's name and value have \(WireLimits.parameterBytes) bytes at most")
        }
        guard parameters.updateValue(value, forKey: name) == nil else {
            throw MarkupFault(line, "a parameter has the name of another one")
        }
        guard parameters.count <= WireLimits.parameters else {
            throw MarkupFault(line, "a stream has \(WireLimits.parameters) parameters at most")
        }
    }

    // MARK: - Plivo

    func plivoVerb(_ element: XMLElement) throws(MarkupFault) -> CallMarkup.Verb {
        switch element.name {
        case "Stream": return .stream(try plivoStream(element))
        case "Wait": return .pause(seconds: try seconds("length", of: element))
        case "Hangup": return try rejection(element).map(CallMarkup.Verb.reject) ?? .hangUp
        case "Dial": return .transfer(try transfer(element, nouns: ["Number", "User"], takesText: false))
        case "Redirect":
            return .redirect(Webhook(try link(element.text, in: element), try method("method", of: element)))
        default: throw unknown(element)
        }
    }

    private func plivoStream(_ element: XMLElement) throws(MarkupFault) -> BotStream {
        guard element.children.isEmpty, let address = WebAddress(trimmed(element.text), WebAddress.Scheme.sockets)
        else {
            throw MarkupFault(element.line, "<Stream> must contain a URL that begins with wss:// or ws://")
        }
        guard element[attribute: "bidirectional"] == "true" else {
            throw MarkupFault(element.line, "<Stream> must have bidirectional=\"true\": there are no streams one way")
        }
        guard ["inbound", nil].contains(element[attribute: "audioTrack"]) else {
            throw MarkupFault(element.line, "a stream has the inbound track, and no other")
        }
        var format = PlivoWire.ContentType.linear8000
        if let type = element[attribute: "contentType"] {
            guard let named = PlivoWire.ContentType(rawValue: String(type.filter { $0 != " " })) else {
                throw MarkupFault(
                    element.line,
                    "contentType must be audio/x-mulaw;rate=8000, audio/x-l16;rate=8000 or audio/x-l16;rate=16000")
            }
            format = named
        }
        return BotStream(
            address: address, parameters: try headers(of: element), name: nil,
            statusCallback: try webhook("statusCallbackUrl", method: "statusCallbackMethod", of: element), action: nil,
            callerFormat: format)
    }

    /// Pairs like `name=value`, with commas between them.
    private func headers(of element: XMLElement) throws(MarkupFault) -> [String: String] {
        var headers: [String: String] = [:]
        for pair in (element[attribute: "extraHeaders"] ?? "").split(separator: ",") {
            guard let equals = pair.firstIndex(of: "="), equals > pair.startIndex else {
                throw MarkupFault(element.line, "extraHeaders must be pairs like name=value, with commas between them")
            }
            try add(
                trimmed(String(pair[..<equals])), trimmed(String(pair[equals...].dropFirst())), to: &headers,
                line: element.line)
        }
        return headers
    }

    // MARK: - Both

    /// The party that a call's peer calls instead of this device, and the webhook to ask if that fails.
    private func transfer(
        _ element: XMLElement, nouns: Set<String>, takesText: Bool = true
    ) throws(MarkupFault) -> BotTransfer {
        let noun = try noun(of: element, nouns, takesText: takesText)
        guard noun[attribute: "sendDigits"] == nil else {
            throw MarkupFault(noun.line, "sendDigits is not followed: the caller calls the target itself")
        }
        guard noun.children.isEmpty else { throw MarkupFault(noun.line, "there are elements where nothing can be") }
        let target = trimmed(noun.text)
        guard (1...WireLimits.nameBytes).contains(target.utf8.count) else {
            throw MarkupFault(noun.line, "the target of a transfer must have 1 to \(WireLimits.nameBytes) bytes")
        }
        return BotTransfer(to: Self.plain(target), action: try webhook("action", of: element))
    }

    /// The element that has the target as its text: the verb itself, or its only child.
    private func noun(
        of element: XMLElement, _ nouns: Set<String>, takesText: Bool
    ) throws(MarkupFault) -> XMLElement {
        let names = nouns.sorted().map { "<\($0)>" }.joined(separator: ", ")
        guard let noun = element.children.first else {
            if takesText { return element }
            throw MarkupFault(element.line, "<\(element.name)> must contain one of \(names)")
        }
        try expectNoText(in: element)
        guard element.children.count == 1 else {
            throw MarkupFault(
                element.line, "<\(element.name)> must contain one target: the caller is transferred to one party")
        }
        guard nouns.contains(noun.name) else {
            throw MarkupFault(noun.line, "the target of <\(element.name)> must be one of \(names)")
        }
        // Twilio's clients may have their name in a child element.
        guard noun.name == "Client", noun.children.count == 1, let identity = noun.children.first,
            identity.name == "Identity"
        else { return noun }
        try expectNoText(in: noun)
        return identity
    }

    /// A telephone number without what separates its groups (RFC 3966 §5.1.1); anything else as it is.
    private static func plain(_ target: String) -> String {
        let number = target.filter { !" -.()".contains($0) }
        let digits = number.hasPrefix("+") ? number.dropFirst() : number[...]
        return !digits.isEmpty && digits.utf8.allSatisfy { (0x30...0x39).contains($0) } ? number : target
    }

    private func rejection(_ element: XMLElement) throws(MarkupFault) -> CallMarkup.RejectReason? {
        try expectNothing(in: element)
        guard let text = element[attribute: "reason"] else { return nil }
        guard let reason = CallMarkup.RejectReason(rawValue: text) else {
            throw MarkupFault(element.line, "the reason must be rejected or busy")
        }
        return reason
    }

    private func seconds(_ name: String, of element: XMLElement) throws(MarkupFault) -> Int {
        try expectNothing(in: element)
        guard let text = element[attribute: name] else { return 1 }
        guard text.utf8.count <= 5, let seconds = Int(text), (1...Self.secondsInADay).contains(seconds) else {
            throw MarkupFault(element.line, "\(name) must be 1 to \(Self.secondsInADay) seconds")
        }
        return seconds
    }

    private func webhook(
        _ name: String, method: String? = nil, of element: XMLElement
    ) throws(MarkupFault) -> Webhook? {
        guard let text = element[attribute: name] else { return nil }
        let methodName = method ?? (name == "action" ? "method" : name + "Method")
        return Webhook(try link(text, in: element), try self.method(methodName, of: element))
    }

    private func method(_ name: String, of element: XMLElement) throws(MarkupFault) -> Webhook.Method {
        guard let text = element[attribute: name] else { return .post }
        guard let method = Webhook.Method(rawValue: text.uppercased()) else {
            throw MarkupFault(element.line, "\(name) must be GET or POST")
        }
        return method
    }

    private func link(_ text: String, in element: XMLElement) throws(MarkupFault) -> WebAddress {
        let text = trimmed(text)
        guard let address = base?.resolving(text) ?? WebAddress(text, WebAddress.Scheme.requests) else {
            throw MarkupFault(element.line, "a URL must begin with https:// or http://, and have no user in it")
        }
        return address
    }

    func expectNoText(in element: XMLElement) throws(MarkupFault) {
        guard trimmed(element.text).isEmpty else {
            throw MarkupFault(element.line, "there is text where only elements can be")
        }
    }

    private func expectNothing(in element: XMLElement) throws(MarkupFault) {
        try expectNoText(in: element)
        guard element.children.isEmpty else {
            throw MarkupFault(element.line, "there are elements where nothing can be")
        }
    }

    private func unknown(_ element: XMLElement) -> MarkupFault {
        let name = Self.otherVerbs.contains(element.name) ? "<\(element.name)>" : "an element"
        return MarkupFault(
            element.line, "there is \(name), which is not followed here; connect the call with a bot by a stream")
    }

    private func trimmed(_ text: String) -> String {
        let end = text.lastIndex { !$0.isWhitespace }.map(text.index(after:)) ?? text.startIndex
        return String(text[..<end].drop { $0.isWhitespace })
    }
}
