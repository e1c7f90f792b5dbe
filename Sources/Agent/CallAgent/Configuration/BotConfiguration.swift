internal import AudioPort
internal import BotCalls
internal import BotWire
internal import CallControl
internal import ConfigReader

/// The section `behaviour.bot`.
enum BotConfiguration {
    /// The names of `wire`.
    enum Wire: String, CaseIterable {
        case twilio, telnyx, plivo, exotel, vonage, jambonz, asterisk, audiosocket, smallwebrtc, realtime
    }

    /// The keys of the section.
    struct Keys: ConfigKeys {
        let url = ConfigKey<WebAddress>.parsed(
            "url", "URL", in: "ws://, wss://, http://, https://, tcp://",
            "the bot's WebSocket, or the webhook that is asked for it; with `wire: audiosocket` `tcp://HOST:PORT`; with `smallwebrtc` "
                + "and `realtime` where a WebRTC leg is offered by POST, with `realtime` also the WebSocket of sessions",
            show: \.text
        ) { text throws(ConfigValueFault) in
            guard let address = WebAddress(text, Set(WebAddress.Scheme.allCases)) else {
                throw ConfigValueFault(
                    "must be a URL that begins with ws://, wss://, http://, https:// or tcp://, without a user, not \"\(text.prefix(80))\""
                )
            }
            return address
        }.required
        let wire = ConfigKey.choice("wire", of: Wire.self, "the protocol of the bot").defaulting(to: .twilio)
        let rate = ConfigKey.integer(
            "rate_hz", in: 8_000...48_000, unit: "Hz",
            "of the sound: 16000 with `plivo`, 16000 or 24000 with `exotel` and `vonage`, these or 48000 with `audiosocket`, `jambonz` and "
                + "`asterisk`, 24000 with `realtime`"
        ).unset("8000, with `vonage` 16000, with linear sound of `realtime` 24000")
        let encoding = ConfigKey.choice(
            "encoding", of: PortFormat.Encoding.self,
            "what a sample is: `alaw` with `telnyx` and `asterisk`, `linear` with `plivo` and `asterisk`, `mulaw` or `alaw` with `realtime` "
                + "over a WebSocket"
        ).unset("what the wire usually has")
        let control = ConfigKey.choice(
            "control_messages", of: AsteriskWire.Control.self,
            "with `asterisk`: how commands and events are written, as `f(json)` in Asterisk's dial string"
        ).unset("plain")
        let bargeIn = ConfigKey.choice(
            "barge_in", of: BargeInMode.self,
            "`local`: the caller's speech lowers the bot, and stops it"
        ).defaulting(to: .off)
        let parameters = ConfigKey<[String]>.list(
            "parameters", of: "NAME=VALUE",
            "parameters of the `start` message, unless a webhook's answer has other ones"
        ) { text throws(ConfigValueFault) in
            guard let equals = text.firstIndex(of: "="), equals > text.startIndex,
                text.utf8.count <= WireLimits.parameterBytes
            else {
                throw ConfigValueFault(
                    "must be NAME=VALUE of \(WireLimits.parameterBytes) bytes at most, not \"\(text.prefix(40))\"")
            }
            return text
        }
        let session = ConfigKey<String>.parsed(
            "session", "text",
            "with `realtime`: the session's configuration, a JSON object of up to \(OfferForm.sessionBytes) bytes; without it the "
                + "description alone is sent, or over a WebSocket the formats of sound",
            show: \.self
        ) { text throws(ConfigValueFault) in
            guard OfferForm.isSession(text) else {
                throw ConfigValueFault("must be a JSON object of \(OfferForm.sessionBytes) bytes at most")
            }
            return text
        }.unset("none")
        let realtimeVersion = ConfigKey.choice(
            "realtime_version", of: RealtimeWire.Version.self,
            "with `realtime` over a WebSocket: the form of the session's configuration; `beta` also sends the header `OpenAI-Beta`"
        ).unset("ga")
        let speaksFirst = ConfigKey.bool(
            "speaks_first", "with `realtime` over a WebSocket: the bot is asked to greet the caller"
        ).unset("false: the caller speaks first")
        let hangUpFunction = ConfigKey.string(
            "hang_up_function",
            "with `realtime` over a WebSocket: the function among the session's `tools` by which the bot ends the call"
        ).unset("none")
        let account = ConfigKey<String>.parsed(
            "account", "text", "the account's name, which the bot receives and its requests must have", show: \.self,
            BotConfiguration.name
        ).defaulting(to: BotPlan.usualAccount)
        let authToken = ConfigKey.secret(
            "auth_token",
            "signs requests to the bot's server (`X-Twilio-Signature`); without it they are not signed. With `smallwebrtc` and `realtime` it "
                + "is sent as bearer token")
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
            "status_callback", "URL", in: "http://, https://", "receives the status of calls, in Twilio's form",
            show: \.text
        ) { text throws(ConfigValueFault) in
            guard let address = WebAddress(text, WebAddress.Scheme.requests) else {
                throw ConfigValueFault("must be a URL that begins with http:// or https://, without a user")
            }
            return address
        }
        let statusEvents = ConfigKey.choices(
            "status_callback_events", of: BotPlan.StatusEvent.self,
            "what it receives; `initiated` is for calls that are placed"
        ).unset("completed")
        let trustRoots = ConfigKey.path("trust_roots", "PEM certificates to trust in addition to the system's")
        let transferBy = ConfigKey.choice(
            "transfer_by", of: BotPlan.TransferManner.self,
            "how calls are transferred that the bot transfers: the caller is asked to call the target, or the device calls it and joins the "
                + "two ([bridging.md](bridging.md#asked-by-the-bot))"
        ).defaulting(to: .refer)
        let requests = ConfigKey.section(
            "requests", Requests.self, "where the bot's server may end, redirect and place calls; without it, nowhere")
    }

    /// The keys of the section `requests`.
    struct Requests: ConfigKeys {
        let listen = ConfigKey.endpoint(
            "listen",
            "where this device listens for the requests (the bot's `base_url`), in plain text without `certificate`"
        ).required
        let password = ConfigKey.secret(
            "password", "the password of the bot's server, with `account` as the user; Telnyx bots have it as API key"
        ).required
        let certificate = ConfigKey.section("certificate", Certificate.self, "TLS")
        let calls = ConfigKey.section(
            "calls", PlacedCalls.self, "which calls the bot's server may place, with `wire: twilio`; without it, none")
    }

    /// The keys of the section `certificate`.
    struct Certificate: ConfigKeys {
        let chainFile = ConfigKey.path("chain_file", readable: true, "PEM, the device's own certificate first")
            .required
        let keyFile = ConfigKey.path("key_file", readable: true, "PEM, the private key").required
    }

    /// The keys of the section `calls`.
    struct PlacedCalls: ConfigKeys {
        let key = ConfigKey<String>.parsed(
            "key", "text", "the user of these requests, as Twilio's API keys are; another one than `account`",
            show: \.self, BotConfiguration.name
        ).required
        let password = ConfigKey.secret("password", "the password; another one than that of `requests`").required
        let callees = ConfigKey<[CalleePattern]>.callees(
            "the former name of `account.callees`: move these patterns there"
        ).unset("`account.callees`")
        let perMinute = ConfigKey.integer("per_minute", in: 1...600, "calls a minute, and as many at once")
            .defaulting(to: 10)
    }

    /// A name that is a user's in Basic authentication.
    private static func name(_ text: String) throws(ConfigValueFault) -> String {
        guard (1...64).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3A && $0 != 0x2F })
        else { throw ConfigValueFault("must be 1 to 64 letters, without a colon, a slash or a space") }
        return text
    }

    /// Reads the section.
    ///
    /// - Returns: Nil if it cannot be used; then a problem is noted.
    static func plan(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) -> BotPlan? {
        let before = problems.count
        let url = section.value(\.url, &problems)
        let wire = section.value(\.wire, &problems)
        let spoken = format(wire, at: url, section, &problems)
        if let url, let spoken, !spoken.schemes.contains(url.scheme) {
            let all = wire == .realtime ? spoken.schemes.union(WebAddress.Scheme.sockets) : spoken.schemes
            let schemes = all.map { "\($0.rawValue)://" }.sorted().joined(separator: ", ")
            problems.append(
                section.problem(
                    \.url, "must begin with one of \(schemes) with wire: \(wire.rawValue), not \(url.scheme)://"))
        }
        let parameters = section.value(\.parameters, &problems) ?? []
        if parameters.count > WireLimits.parameters {
            problems.append(section.problem(\.parameters, "has more than \(WireLimits.parameters) entries"))
        }
        if spoken?.leg != nil || wire == .realtime { rejectOfServices(in: section, wire, spoken, &problems) }
        let account = section.value(\.account, &problems)
        let token = section.value(\.authToken, &problems)
        if let url, case .realtime? = spoken, token != nil, !url.scheme.isSecure, !isOwn(url.host) {
            problems.append(section.warning(\.url, "the key crosses the network in plain text; use wss://"))
        }
        let allowedHosts = section.value(\.allowedHosts, &problems) ?? []
        let bargeIn = section.value(\.bargeIn, &problems)
        let answerTimeout = section.value(\.answerTimeout, &problems)
        let fallback = section.value(\.fallback, &problems)
        if let fallback { section.play(fallback, \.fallback, &problems) }
        let statusCallback = section.value(\.statusCallback, &problems)
        let statusEvents = section.value(\.statusEvents, &problems)
        let trustRoots = section.certificates(\.trustRoots, &problems)
        let transferBy = section.value(\.transferBy, &problems)
        let requests = section.value(\.requests, &problems).flatMap { self.requests($0, wire, account, &problems) }
        guard let url, let spoken, problems[before...].allSatisfy(\.isWarning) else { return nil }

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
        if let statusEvents { plan.statusEvents = Set(statusEvents) }
        plan.trustRoots = trustRoots
        plan.requests = requests
        plan.transferBy = transferBy
        return plan
    }

    private static func requests(
        _ section: KeyedSection<Requests>, _ wire: Wire, _ account: String, _ problems: inout [ConfigProblem]
    ) -> BotPlan.Requests? {
        let listen = section.value(\.listen, &problems)
        let password = section.requiredSecret(\.password, &problems)
        let certificate = section.value(\.certificate, &problems).flatMap { self.certificate($0, &problems) }
        let calls = section.value(\.calls, &problems).flatMap { self.calls($0, account, password, &problems) }
        if section.has(\.calls), wire != .twilio {
            problems.append(section.problem(\.calls, "is for wire: twilio, and the wire is \(wire.rawValue)"))
        }
        guard let listen, let password else { return nil }
        var requests = BotPlan.Requests(listen: listen, password: password)
        requests.certificate = certificate
        requests.calls = calls
        if requests.isExposed, !section.has(\.certificate) {
            problems.append(
                section.warning(
                    \.listen, "passwords cross the network in plain text; give a certificate, or listen on 127.0.0.1"))
        }
        return requests
    }

    /// Who may be called as configurations said it before `account.callees`; nil if this one does not.
    static func formerCallees(_ section: KeyedSection<Keys>) -> [CalleePattern]? {
        var ignored: [ConfigProblem] = []  // Reported where the plan is read.
        let calls = section.value(\.requests, &ignored)?.value(\.calls, &ignored)
        return calls?.value(\.callees, &ignored)
    }

    private static func certificate(
        _ section: KeyedSection<Certificate>, _ problems: inout [ConfigProblem]
    ) -> BotPlan.Certificate? {
        let chain = section.value(\.chainFile, &problems)
        let key = section.value(\.keyFile, &problems)
        guard let chain, let key else { return nil }
        let certificate = BotPlan.Certificate(chainPath: chain, keyPath: key)
        section.warnOfReaders(\.keyFile, key, &problems)
        guard section.fileChecks == .all else { return certificate }
        do throws(BotPlan.Certificate.Fault) {
            try certificate.check()
        } catch {
            problems.append(section.problem(error.isOfKey ? \.keyFile : \.chainFile, "\(error)"))
        }
        return certificate
    }

    private static func calls(
        _ section: KeyedSection<PlacedCalls>, _ account: String, _ other: Secret?, _ problems: inout [ConfigProblem]
    ) -> BotPlan.PlacedCalls? {
        let key = section.value(\.key, &problems)
        let password = section.requiredSecret(\.password, &problems)
        if section.value(\.callees, &problems) != nil {
            problems.append(
                section.warning(
                    \.callees,
                    "is account.callees now, which also limits transfers and redirections: move the list there; until then it counts "
                        + "as that"))
        }
        let perMinute = section.value(\.perMinute, &problems)
        if key == account { problems.append(section.problem(\.key, "must be another one than behaviour.bot.account")) }
        guard let key, let password else { return nil }
        if password == other {
            problems.append(section.problem(\.password, "must be another one than that of behaviour.bot.requests"))
        }
        var calls = BotPlan.PlacedCalls(key: key, password: password)
        calls.perMinute = perMinute
        return calls
    }

    /// Whether a host is this machine.
    static func isOwn(_ host: String) -> Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    /// A leg, and a realtime session, have no requests, and a leg has no choice of formats.
    private static func rejectOfServices(
        in section: KeyedSection<Keys>, _ wire: Wire, _ spoken: BotProtocol?, _ problems: inout [ConfigProblem]
    ) {
        let reason = "does not belong to wire: \(wire.rawValue); remove it"
        section.rejectIdle(\.requests, reason, &problems)
        section.rejectIdle(\.transferBy, reason, &problems)
        if spoken?.leg != nil {
            section.rejectIdle(\.rate, reason, &problems)
            section.rejectIdle(\.encoding, reason, &problems)
        }
        if wire == .realtime { section.rejectIdle(\.parameters, reason, &problems) }
    }

    /// The wire with its format.
    private static func format(
        _ wire: Wire, at url: WebAddress?, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) -> BotProtocol? {
        let session = section.value(\.session, &problems)
        if wire != .realtime { section.rejectIdle(\.session, "belongs to wire: realtime; remove it", &problems) }
        let control = section.value(\.control, &problems) ?? .plain
        if wire != .asterisk { section.rejectIdle(\.control, "belongs to wire: asterisk; remove it", &problems) }
        let isSession = wire == .realtime && url.map { WebAddress.Scheme.sockets.contains($0.scheme) } == true
        if isSession { return realtime(session, section, &problems) }
        // It depends on the URL, which has a problem of its own.
        if wire == .realtime, url == nil { return nil }
        let reason = "belongs to wire: realtime with a URL of ws:// or wss://; remove it"
        section.rejectIdle(\.realtimeVersion, reason, &problems)
        section.rejectIdle(\.speaksFirst, reason, &problems)
        section.rejectIdle(\.hangUpFunction, reason, &problems)
        switch wire {
        case .smallwebrtc: return .leg(.smallWebRTC)
        case .realtime: return .leg(.realtime(session: session))
        case .twilio, .telnyx, .plivo, .exotel, .vonage, .jambonz, .asterisk, .audiosocket: break
        }
        let rate = section.value(\.rate, &problems) ?? (wire == .vonage ? 16_000 : 8_000)
        let usual: PortFormat.Encoding =
            switch wire {
            case .twilio, .telnyx, .plivo, .asterisk: .muLaw
            case .exotel, .vonage, .jambonz, .audiosocket, .smallwebrtc, .realtime: .linear
            }
        let named = section.value(\.encoding, &problems)
        // Plivo and Asterisk have linear sound alone beyond 8 kHz.
        let encoding = named ?? (rate != 8_000 && [.plivo, .asterisk].contains(wire) ? .linear : usual)
        let found: BotProtocol? =
            switch (wire, encoding, rate) {
            case (.twilio, .muLaw, 8_000): .twilio
            case (.telnyx, .muLaw, 8_000): .telnyx(.pcmu)
            case (.telnyx, .aLaw, 8_000): .telnyx(.pcma)
            case (.plivo, .muLaw, 8_000): .plivo(.mulaw)
            case (.plivo, .linear, 8_000): .plivo(.linear8000)
            case (.plivo, .linear, 16_000): .plivo(.linear16000)
            case (.exotel, .linear, _): ExotelWire.Rate(rawValue: rate).map(BotProtocol.exotel)
            case (.vonage, .linear, _): VonageWire.Rate(rawValue: rate).map(BotProtocol.vonage)
            case (.jambonz, .linear, _): JambonzWire.Rate(rawValue: rate).map(BotProtocol.jambonz)
            case (.asterisk, _, _): asteriskFormat(encoding, rate).map { .asterisk($0, control) }
            case (.audiosocket, .linear, _): AudioSocketWire.Rate(rawValue: rate).map(BotProtocol.audioSocket)
            case (.twilio, _, _), (.telnyx, _, _), (.plivo, _, _), (.exotel, _, _), (.vonage, _, _), (.jambonz, _, _),
                (.audiosocket, _, _), (.smallwebrtc, _, _), (.realtime, _, _):
                nil
            }
        if found == nil {
            let message = "there is no \(encoding.rawValue) sound at \(rate) Hz with wire: \(wire.rawValue)"
            problems.append(
                section.has(\.rate) ? section.problem(\.rate, message) : section.problem(\.encoding, message))
        }
        return found
    }

    /// A realtime session over a WebSocket.
    private static func realtime(
        _ session: String?, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) -> BotProtocol? {
        var settings = RealtimeWire.Settings(session: session)
        if let session, !RealtimeWire.isSession(session) {
            problems.append(
                section.problem(\.session, "has more than \(WireLimits.nesting - 1) levels of objects and lists"))
        }
        settings.version = section.value(\.realtimeVersion, &problems) ?? .ga
        settings.speaksFirst = section.value(\.speaksFirst, &problems) ?? false
        settings.hangUpFunction = section.value(\.hangUpFunction, &problems)
        let encoding = section.value(\.encoding, &problems) ?? .linear
        let rate = section.value(\.rate, &problems) ?? (encoding == .linear ? 24_000 : 8_000)
        switch (encoding, rate) {
        case (.linear, 24_000): settings.format = .pcm
        case (.muLaw, 8_000): settings.format = .pcmu
        case (.aLaw, 8_000): settings.format = .pcma
        case (.linear, _), (.muLaw, _), (.aLaw, _):
            let message = "there is no \(encoding.rawValue) sound at \(rate) Hz with wire: realtime"
            problems.append(
                section.has(\.rate) ? section.problem(\.rate, message) : section.problem(\.encoding, message))
            return nil
        }
        return .realtime(settings)
    }

    private static func asteriskFormat(_ encoding: PortFormat.Encoding, _ rate: Int) -> AsteriskWire.Format? {
        switch (encoding, rate) {
        case (.muLaw, 8_000): .ulaw
        case (.aLaw, 8_000): .alaw
        case (.linear, 8_000): .slin
        case (.linear, 16_000): .slin16
        case (.linear, 24_000): .slin24
        case (.linear, 48_000): .slin48
        default: nil
        }
    }
}
