internal import AudioPort
internal import BotCalls
internal import BotWire
internal import ConfigReader

/// The section `behaviour.bot`.
enum BotConfiguration {
    /// The names of `wire`.
    enum Wire: String, CaseIterable {
        case twilio, telnyx, plivo, exotel, audiosocket
    }

    /// The keys of the section.
    struct Keys: ConfigKeys {
        let url = ConfigKey<WebAddress>.parsed(
            "url", "URL", in: "ws://, wss://, http://, https://, tcp://",
            "the bot's WebSocket, or the webhook that is asked for it; with `wire: audiosocket` `tcp://HOST:PORT`",
            show: \.text
        ) { text throws(ConfigValueFault) in
            guard let address = WebAddress(text, Set(WebAddress.Scheme.allCases)) else {
                throw ConfigValueFault(
                    "must be a URL that begins with ws://, wss://, http://, https:// or tcp://, without a user, not \"\(text.prefix(80))\""
                )
            }
            return address
        }.required
        let wire = ConfigKey.choice("wire", of: Wire.self, "whose words the bot understands").defaulting(to: .twilio)
        let rate = ConfigKey.integer(
            "rate_hz", in: 8_000...48_000, unit: "Hz",
            "of the sound: 16000 with `plivo`, 16000 or 24000 with `exotel`, these or 48000 with `audiosocket`"
        ).unset("8000")
        let encoding = ConfigKey.choice(
            "encoding", of: PortFormat.Encoding.self, "what a sample is: `alaw` with `telnyx`, `linear` with `plivo`"
        ).unset("what the wire usually has")
        let bargeIn = ConfigKey.choice(
            "barge_in", of: BargeInMode.self,
            "`local`: the caller's speech lowers the bot, and stops it"
        ).defaulting(to: .off)
        let parameters = ConfigKey<[String]>.list(
            "parameters", of: "NAME=VALUE",
            "what the bot is told in its `start` message, unless a webhook's answer has other ones"
        ) { text throws(ConfigValueFault) in
            guard let equals = text.firstIndex(of: "="), equals > text.startIndex,
                text.utf8.count <= WireLimits.parameterBytes
            else {
                throw ConfigValueFault(
                    "must be NAME=VALUE of \(WireLimits.parameterBytes) bytes at most, not \"\(text.prefix(40))\"")
            }
            return text
        }
        let account = ConfigKey<String>.parsed(
            "account", "text", "the account's name, which the bot is told and its requests must have", show: \.self
        ) { text throws(ConfigValueFault) in
            guard (1...64).contains(text.utf8.count),
                text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3A && $0 != 0x2F })
            else { throw ConfigValueFault("must be 1 to 64 letters, without a colon, a slash or a space") }
            return text
        }.defaulting(to: BotPlan.usualAccount)
        let authToken = ConfigKey.secret(
            "auth_token", "signs requests to the bot's server (`X-Twilio-Signature`); without it they are not signed")
        let allowedHosts = ConfigKey<[String]>.list(
            "allowed_hosts", of: "hosts",
            "hosts besides that of `url` that the bot's server may name: names, addresses, `*.example.org`. What is named in full "
                + "may be a private address"
        ) { text throws(ConfigValueFault) in
            guard BotPlan.isHost(text) else {
                throw ConfigValueFault(
                    "must be a host's name or address, or *.example.org, without a port, not \"\(text.prefix(80))\"")
            }
            return text
        }.unset("none")
        let answerTimeout = ConfigKey.milliseconds(
            "answer_timeout_ms", in: 100...60_000,
            "how long the bot may take until the call is answered; then the call is rejected, or hears the fallback"
        ).defaulting(to: .seconds(5))
        let fallback = ConfigKey.path(
            "fallback", "WAV or Ogg Opus, up to a minute: what callers hear, once, if the bot fails")
        let statusCallback = ConfigKey<WebAddress>.parsed(
            "status_callback", "URL", in: "http://, https://", "is told when a call is over, as Twilio tells it",
            show: \.text
        ) { text throws(ConfigValueFault) in
            guard let address = WebAddress(text, WebAddress.Scheme.requests) else {
                throw ConfigValueFault("must be a URL that begins with http:// or https://, without a user")
            }
            return address
        }
        let trustRoots = ConfigKey.path("trust_roots", "PEM certificates to trust in addition to the system's")
        let requests = ConfigKey.section(
            "requests", Requests.self, "where the bot's server may end and redirect calls; without it, nowhere")
    }

    /// The keys of the section `requests`.
    struct Requests: ConfigKeys {
        let listen = ConfigKey.endpoint(
            "listen", "where this device listens for the requests (the bot's `base_url`), in plain text"
        ).required
        let password = ConfigKey.secret(
            "password", "what the bot's server must know, with `account` as the user; Telnyx bots have it as API key"
        ).required
    }

    /// Reads the section.
    ///
    /// - Returns: Nil if it cannot be used; then a problem is noted.
    static func plan(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) -> BotPlan? {
        let before = problems.count
        let url = section.value(\.url, &problems)
        let wire = section.value(\.wire, &problems)
        let spoken = format(wire, section, &problems)
        if let url, let spoken, !spoken.schemes.contains(url.scheme) {
            let schemes = spoken.schemes.map { "\($0.rawValue)://" }.sorted().joined(separator: ", ")
            problems.append(
                section.problem(
                    \.url, "must begin with one of \(schemes) with wire: \(wire.rawValue), not \(url.scheme)://"))
        }
        let parameters = section.value(\.parameters, &problems) ?? []
        if parameters.count > WireLimits.parameters {
            problems.append(section.problem(\.parameters, "has more than \(WireLimits.parameters) entries"))
        }
        let account = section.value(\.account, &problems)
        let token = section.value(\.authToken, &problems)
        let allowedHosts = section.value(\.allowedHosts, &problems) ?? []
        let bargeIn = section.value(\.bargeIn, &problems)
        let answerTimeout = section.value(\.answerTimeout, &problems)
        let fallback = section.value(\.fallback, &problems)
        if let fallback { section.play(fallback, \.fallback, &problems) }
        let statusCallback = section.value(\.statusCallback, &problems)
        let trustRoots = section.certificates(\.trustRoots, &problems)
        let requests = section.value(\.requests, &problems).flatMap { self.requests($0, &problems) }
        guard let url, let spoken, problems.count == before else { return nil }

        var plan = BotPlan(address: url, wire: spoken)
        for pair in parameters {
            let equals = pair.firstIndex(of: "=") ?? pair.endIndex
            plan.parameters[String(pair[..<equals])] = String(pair[equals...].dropFirst())
        }
        plan.account = account
        plan.bargeIn = bargeIn
        plan.token = token
        plan.allowedHosts = allowedHosts
        plan.answerTimeout = answerTimeout
        plan.fallback = fallback
        plan.statusCallback = statusCallback
        plan.trustRoots = trustRoots
        plan.requests = requests
        return plan
    }

    private static func requests(
        _ section: KeyedSection<Requests>, _ problems: inout [ConfigProblem]
    ) -> BotPlan.Requests? {
        let listen = section.value(\.listen, &problems)
        let password = section.requiredSecret(\.password, &problems)
        guard let listen, let password else { return nil }
        return BotPlan.Requests(listen: listen, password: password)
    }

    /// The wire with its format.
    private static func format(
        _ wire: Wire, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) -> BotProtocol? {
        let rate = section.value(\.rate, &problems) ?? 8_000
        let usual: PortFormat.Encoding =
            switch wire {
            case .twilio, .telnyx, .plivo: .muLaw
            case .exotel, .audiosocket: .linear
            }
        let named = section.value(\.encoding, &problems)
        // Plivo has linear sound at 16 kHz only.
        let encoding = named ?? (wire == .plivo && rate != 8_000 ? .linear : usual)
        let found: BotProtocol? =
            switch (wire, encoding, rate) {
            case (.twilio, .muLaw, 8_000): .twilio
            case (.telnyx, .muLaw, 8_000): .telnyx(.pcmu)
            case (.telnyx, .aLaw, 8_000): .telnyx(.pcma)
            case (.plivo, .muLaw, 8_000): .plivo(.mulaw)
            case (.plivo, .linear, 8_000): .plivo(.linear8000)
            case (.plivo, .linear, 16_000): .plivo(.linear16000)
            case (.exotel, .linear, _): ExotelWire.Rate(rawValue: rate).map(BotProtocol.exotel)
            case (.audiosocket, .linear, _): AudioSocketWire.Rate(rawValue: rate).map(BotProtocol.audioSocket)
            case (.twilio, _, _), (.telnyx, _, _), (.plivo, _, _), (.exotel, _, _), (.audiosocket, _, _): nil
            }
        if found == nil {
            let message = "there is no \(encoding.rawValue) sound at \(rate) Hz with wire: \(wire.rawValue)"
            problems.append(
                section.has(\.rate) ? section.problem(\.rate, message) : section.problem(\.encoding, message))
        }
        return found
    }
}
