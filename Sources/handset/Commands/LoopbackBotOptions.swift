internal import ArgumentParser
internal import AudioPort
internal import BotCalls
internal import BotWire
internal import Loopback

/// How a bot is spoken to at its URL.
struct LoopbackBotWireOptions: ParsableArguments {
    /// The names of `--wire`.
    enum Wire: String, CaseIterable, ExpressibleByArgument {
        case twilio, telnyx, plivo, exotel, vonage, jambonz, asterisk, audiosocket
    }

    @Option(help: "The protocol of the bot at a URL.")
    var wire = Wire.twilio

    /// The names of `--encoding`.
    enum Encoding: String, CaseIterable, ExpressibleByArgument {
        case mulaw, alaw, linear
    }

    @Option(help: "Sample rate of its sound, in Hz: 8000, and 16000 to 48000 where the wire has them.")
    var rate = 8_000

    @Option(help: "Encoding of its sound, where the wire has several; the wire's usual one unless given.")
    var encoding: Encoding?

    /// The format of the wire's sound.
    var format: BotProtocol? {
        switch (wire, encoding ?? usualEncoding, rate) {
        case (.twilio, .mulaw, 8_000): .twilio
        case (.telnyx, .mulaw, 8_000): .telnyx(.pcmu)
        case (.telnyx, .alaw, 8_000): .telnyx(.pcma)
        case (.plivo, .mulaw, 8_000): .plivo(.mulaw)
        case (.plivo, .linear, 8_000): .plivo(.linear8000)
        case (.plivo, .linear, 16_000): .plivo(.linear16000)
        case (.exotel, .linear, _): ExotelWire.Rate(rawValue: rate).map(BotProtocol.exotel)
        case (.vonage, .linear, _): VonageWire.Rate(rawValue: rate).map(BotProtocol.vonage)
        case (.jambonz, .linear, _): JambonzWire.Rate(rawValue: rate).map(BotProtocol.jambonz)
        case (.asterisk, .mulaw, 8_000): .asterisk(.ulaw, .plain)
        case (.asterisk, .alaw, 8_000): .asterisk(.alaw, .plain)
        case (.asterisk, .linear, 8_000): .asterisk(.slin, .plain)
        case (.asterisk, .linear, 16_000): .asterisk(.slin16, .plain)
        case (.asterisk, .linear, 24_000): .asterisk(.slin24, .plain)
        case (.asterisk, .linear, 48_000): .asterisk(.slin48, .plain)
        case (.audiosocket, .linear, _): AudioSocketWire.Rate(rawValue: rate).map(BotProtocol.audioSocket)
        case (.twilio, _, _), (.telnyx, _, _), (.plivo, _, _), (.exotel, _, _), (.vonage, _, _), (.jambonz, _, _),
            (.asterisk, _, _), (.audiosocket, _, _):
            nil
        }
    }

    private var usualEncoding: Encoding {
        switch wire {
        case .twilio, .telnyx: .mulaw
        case .plivo, .asterisk: rate == 8_000 ? .mulaw : .linear
        case .exotel, .vonage, .jambonz, .audiosocket: .linear
        }
    }

    /// The bot at a URL; nil if `text` is no URL, and so a callee.
    func plan(for text: String) throws -> BotPlan? {
        guard text.contains("://") else { return nil }
        guard let format else {
            let named = encoding.map { "\($0.rawValue) " } ?? ""
            throw ValidationError("There is no \(named)sound of \(rate) Hz with --wire \(wire.rawValue).")
        }
        guard let address = WebAddress(text, format.schemes) else {
            let schemes = format.schemes.map { "\($0.rawValue)://" }.sorted().joined(separator: ", ")
            throw ValidationError(
                "With --wire \(wire.rawValue) the bot's URL must begin with one of \(schemes), and name no user; not \"\(text)\"."
            )
        }
        return BotPlan(address: address, wire: format)
    }
}

/// What is good enough of a bot.
struct LoopbackBotLimitOptions: ParsableArguments {
    @Option(help: "Maximum median time until an answer, such as 1500ms; \"off\" disables it, as with every threshold.")
    var maxMedianResponse: String?

    @Option(help: "Maximum time until an answer in 95 % of the turns, such as 3000ms.")
    var maxResponse: String?

    @Option(help: "Maximum time until the bot is silent in 95 % of the interruptions, such as 1000ms.")
    var maxBargeIn: String?

    @Option(help: "Maximum time for which both talk in an interruption, such as 1500ms.")
    var maxTalkOver: String?

    @Option(help: "Maximum number of questions without an answer.")
    var maxUnanswered: String?

    @Option(help: "Maximum number of interruptions that do not stop the bot.")
    var maxIgnored: String?

    @Option(help: "Maximum clipping at either end of the greeting (--greeting), such as 40ms.")
    var maxCut: String?

    @Option(help: "Maximum time until a key is answered, such as 3000ms.")
    var maxKey: String?

    /// The usual thresholds with those of the command line over them.
    func thresholds() throws -> BotThresholds {
        var limits = BotThresholds()
        func set(_ option: String, _ text: String?, _ limit: inout Double?) throws {
            guard let text else { return }
            if text == "off" { return limit = nil }
            let digits = text.hasSuffix("ms") ? text.dropLast(2) : text[...]
            guard let value = Double(digits), (0...600_000).contains(value) else {
                throw ValidationError("--\(option) \(text): must be a number of ms, 0 or more, or off.")
            }
            limit = value
        }
        func set(_ option: String, _ text: String?, _ limit: inout Int?) throws {
            guard let text else { return }
            if text == "off" { return limit = nil }
            guard let value = Int(text), value >= 0 else {
                throw ValidationError("--\(option) \(text): must be a whole number, 0 or more, or off.")
            }
            limit = value
        }
        try set("max-median-response", maxMedianResponse, &limits.medianResponseMilliseconds)
        try set("max-response", maxResponse, &limits.responseMilliseconds)
        try set("max-barge-in", maxBargeIn, &limits.bargeInMilliseconds)
        try set("max-talk-over", maxTalkOver, &limits.talkOverMilliseconds)
        try set("max-unanswered", maxUnanswered, &limits.unanswered)
        try set("max-ignored", maxIgnored, &limits.ignored)
        try set("max-cut", maxCut, &limits.cutMilliseconds)
        try set("max-key", maxKey, &limits.keyMilliseconds)
        return limits
    }
}
