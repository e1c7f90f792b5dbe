public import AudioPort
public import BotWire
public import ConfigReader
internal import HTTPTransport
public import VoiceActivity

/// The bot that takes part in a device's calls: where it is, what it speaks, and what it may do.
public struct BotPlan: Sendable, Equatable {
    /// A WebSocket, AudioSocket's TCP address, or a webhook whose answer names the WebSocket.
    public var address: WebAddress
    /// What is spoken there.
    public var wire: BotProtocol
    /// What the bot is told of the configuration; a webhook's answer replaces it.
    public var parameters: [String: String] = [:]
    /// The account that the bot is told, and that its requests must name.
    public var account = BotPlan.usualAccount
    /// Signs what the bot's server is asked; nil signs nothing.
    public var token: Secret?
    /// Hosts other than that of ``address`` that the bot's server may name: names, addresses, and `*.example.org`.
    public var allowedHosts: [String] = []
    /// How long the bot may take until the call can be answered.
    public var answerTimeout = Duration.seconds(5)
    /// What callers hear without the bot: a file.
    public var fallback: String?
    /// Who is told that a call is over, as Twilio tells it.
    public var statusCallback: WebAddress?
    /// A file of certificates to trust in addition to the system's.
    public var trustRoots: String?
    /// Where the bot's server may ask for something; nil for nowhere.
    public var requests: Requests?

    /// Whether the caller's speech interrupts the bot here; nil if nobody follows who speaks.
    public var bargeIn: BargeInMode?

    /// How a bot's server asks for something.
    public struct Requests: Sendable, Equatable {
        /// Where this device listens.
        public var listen: ConfigEndpoint
        /// What the server must know, with the account as the user's name; Telnyx's has it as its key.
        public var password: Secret

        /// Makes one.
        public init(listen: ConfigEndpoint, password: Secret) {
            self.listen = listen
            self.password = password
        }
    }

    /// An account's name of Twilio's form.
    public static let usualAccount = "AC" + String(repeating: "0", count: 32)

    /// Whether a text can be one of ``allowedHosts``.
    public static func isHost(_ text: String) -> Bool { HostPattern(text) != nil }

    /// Makes a plan with defaults.
    public init(address: WebAddress, wire: BotProtocol) {
        self.address = address
        self.wire = wire
    }
}

/// What bots speak, and the format of the sound.
public enum BotProtocol: Sendable, Equatable {
    case twilio
    /// The codec, both ways.
    case telnyx(TelnyxWire.Codec)
    /// The format of the caller's sound.
    case plivo(PlivoWire.ContentType)
    case exotel(ExotelWire.Rate)
    /// The rate of the caller's sound.
    case audioSocket(AudioSocketWire.Rate)

    /// A wire for a stream.
    ///
    /// - Parameter named: The format that a webhook's answer names.
    func makeWire(_ named: PlivoWire.ContentType?) -> any VoiceWire {
        switch self {
        case .twilio: TwilioWire()
        case .telnyx(let codec): TelnyxWire(caller: codec, bot: codec)
        case .plivo(let format): PlivoWire(caller: named ?? format)
        case .exotel(let rate): ExotelWire(rate: rate)
        case .audioSocket(let rate): AudioSocketWire(rate: rate)
        }
    }

    /// The dialect of webhooks' answers.
    var dialect: CallMarkup.Dialect {
        switch self {
        case .plivo: .plivo
        case .twilio, .telnyx, .exotel, .audioSocket: .twilio
        }
    }

    /// The schemes of addresses of bots that speak it, and whether a webhook may name the bot.
    public var schemes: Set<WebAddress.Scheme> {
        switch self {
        case .twilio, .telnyx, .plivo: WebAddress.Scheme.sockets.union(WebAddress.Scheme.requests)
        case .exotel: WebAddress.Scheme.sockets
        case .audioSocket: [.tcp]
        }
    }
}

/// Events of bots for their device.
public enum BotNews: Sendable, Equatable {
    /// The call can be accepted.
    case stands(call: UInt64)
    /// The call is not to be accepted: as its server wishes, or, without a reason, because of a failure.
    case refused(call: UInt64, CallMarkup.RejectReason?, String)
    /// The bot has failed; the caller hears the fallback.
    case fellBack(call: UInt64, String)
    /// The bot sent what could not be followed, and how many such messages before it were left out: for the log.
    case misunderstood(call: UInt64, String, leftOut: Int)
    /// The bot does not read what the caller says fast enough; told once for each connection.
    case behind(call: UInt64)
    /// The bot wants keys pressed.
    case press(call: UInt64, keys: String)
    /// Who speaks has changed, and how turns were taken so far.
    case turn(call: UInt64, TurnNews, TurnSummary)
    /// The call is to end: the bot is done, or has failed.
    case hangUp(call: UInt64, failure: String?)
    /// A request was refused, how many more were left out, or something else that the operator must know.
    case warned(String, leftOut: Int)
}
