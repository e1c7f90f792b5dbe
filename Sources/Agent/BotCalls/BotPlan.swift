public import AudioPort
public import BotWire
internal import CallWebhooks
public import ConfigReader
internal import HTTPTransport
internal import TLS

/// The bot that takes part in a device's calls: where it is, what it speaks, and what it may do.
public struct BotPlan: Sendable, Equatable {
    /// A WebSocket, AudioSocket's TCP address, a webhook whose answer names the WebSocket, or where a WebRTC leg is offered; nil if each call
    /// has another one.
    public var address: WebAddress?
    /// The address as text; empty without one.
    public var addressText: String { address?.text ?? "" }
    /// What is spoken there.
    public var wire: BotProtocol
    /// Parameters for the bot from the configuration; a webhook's answer replaces them.
    public var parameters: [String: String] = [:]
    /// The account that the bot receives, and that its requests must name.
    public var account = BotPlan.usualAccount
    /// Signs what the bot's server is asked, or is the bearer token of an offer or of a realtime session; nil signs nothing.
    public var token: Secret?
    /// Hosts other than that of ``address`` that the bot's server may name: names, addresses, and `*.example.org`.
    public var allowedHosts: [String] = []
    /// How long the bot may take until the call can be answered.
    public var answerTimeout = Duration.seconds(5)
    /// What callers hear without the bot: a file.
    public var fallback: String?
    /// The webhook for a call's status, in Twilio's form.
    public var statusCallback: WebAddress?
    /// The events to report there.
    public var statusEvents: Set<StatusEvent> = [.completed]
    /// A file of certificates to trust in addition to the system's.
    public var trustRoots: String?
    /// Where the bot's server may ask for something; nil for nowhere.
    public var requests: Requests?

    /// Whether the caller's speech interrupts the bot here; nil if speech is not detected.
    public var bargeIn: BargeInMode?

    /// How calls are transferred that the bot transfers.
    public var transferBy = TransferManner.refer

    /// How a call is transferred.
    public enum TransferManner: String, CaseIterable, Sendable {
        /// The caller is asked to call the target in the device's place.
        case refer
        /// The device calls the target, and joins the two.
        case handover
    }

    /// How a bot's server asks for something.
    public struct Requests: Sendable, Equatable {
        /// Where this device listens.
        public var listen: ConfigEndpoint
        /// What the server must know, with the account as the user's name; Telnyx's has it as its key.
        public var password: Secret
        /// Speaks TLS; nil for plain text.
        public var certificate: Certificate?
        /// Which calls the server may place; nil for none.
        public var calls: PlacedCalls?

        /// Makes one.
        public init(listen: ConfigEndpoint, password: Secret) {
            self.listen = listen
            self.password = password
        }

        /// Whether passwords may cross a network in plain text.
        public var isExposed: Bool {
            certificate == nil && listen.host != "localhost" && listen.host != "::1" && !listen.host.hasPrefix("127.")
        }
    }

    /// The files of a certificate, both in PEM form.
    public struct Certificate: Sendable, Equatable {
        /// The chain, the server's own certificate first.
        public var chainPath: String
        /// The private key, without a passphrase.
        public var keyPath: String

        /// Makes one.
        public init(chainPath: String, keyPath: String) {
            self.chainPath = chainPath
            self.keyPath = keyPath
        }

        /// Why the files cannot be used.
        public struct Fault: Error, Equatable, CustomStringConvertible {
            /// Whether the key is to blame, or the chain.
            public let isOfKey: Bool
            /// The file, what is wrong with it, and what to try.
            public let description: String
        }

        /// Reads the files.
        public func check() throws(Fault) { _ = try load() }

        func load() throws(Fault) -> TLSContext? {
            do throws(CertificateFault) {
                return try ServerTLS.load(CertificateFiles(chainPath: chainPath, keyPath: keyPath))
            } catch {
                throw Fault(isOfKey: error.part == .key, description: "\"\(error.path)\" \(error.message)")
            }
        }
    }

    /// Which calls a bot's server may place.
    public struct PlacedCalls: Sendable, Equatable {
        /// The user of these requests, as Twilio's API keys are.
        public var key: String
        /// What the server must know.
        public var password: Secret
        /// Calls a minute, and as many at once.
        public var perMinute = 10

        /// Makes one with the usual rate. The device itself decides which callees it admits.
        public init(key: String, password: Secret) {
            self.key = key
            self.password = password
        }
    }

    /// Events of a call, in Twilio's words.
    public enum StatusEvent: String, CaseIterable, Sendable {
        case initiated, ringing, answered, completed
    }

    /// An account's name of Twilio's form.
    public static let usualAccount = TwilioWebhook.usualAccount

    /// Whether a text can be one of ``allowedHosts``.
    public static func isHost(_ text: String) -> Bool { HostGuard.isHost(text) }

    /// Makes a plan with defaults.
    public init(address: WebAddress, wire: BotProtocol) {
        self.address = address
        self.wire = wire
    }

    /// Makes a plan for bots that speak Twilio's wire, whose addresses come with the calls.
    init(token: Secret?) {
        address = nil
        wire = .twilio
        self.token = token
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
    case vonage(VonageWire.Rate)
    case jambonz(JambonzWire.Rate)
    /// The format of the sound and of control messages, both ways.
    case asterisk(AsteriskWire.Format, AsteriskWire.Control)
    /// The session.
    case realtime(RealtimeWire.Settings)
    /// The rate of the caller's sound.
    case audioSocket(AudioSocketWire.Rate)
    /// A WebRTC leg that is offered by HTTP.
    case leg(LegKind)

    /// A wire for a stream.
    ///
    /// - Parameter named: The format that a webhook's answer names.
    func makeWire(_ named: PlivoWire.ContentType?) -> any VoiceWire {
        switch self {
        case .twilio: TwilioWire()
        case .telnyx(let codec): TelnyxWire(caller: codec, bot: codec)
        case .plivo(let format): PlivoWire(caller: named ?? format)
        case .exotel(let rate): ExotelWire(rate: rate)
        case .vonage(let rate): VonageWire(rate: rate)
        case .jambonz(let rate): JambonzWire(rate: rate)
        case .asterisk(let format, let control): AsteriskWire(format: format, control: control)
        case .realtime(let settings): RealtimeWire(settings)
        case .audioSocket(let rate): AudioSocketWire(rate: rate)
        case .leg: LegWire()
        }
    }

    /// The dialect of webhooks' answers.
    var dialect: CallMarkup.Dialect {
        switch self {
        case .plivo: .plivo
        case .twilio, .telnyx, .exotel, .vonage, .jambonz, .asterisk, .realtime, .audioSocket, .leg: .twilio
        }
    }

    /// How a WebRTC leg is offered; nil for the wires of telephone services.
    public var leg: LegKind? {
        switch self {
        case .leg(let kind): kind
        case .twilio, .telnyx, .plivo, .exotel, .vonage, .jambonz, .asterisk, .realtime, .audioSocket: nil
        }
    }

    /// The schemes of addresses of bots that speak it, and whether a webhook may name the bot.
    public var schemes: Set<WebAddress.Scheme> {
        switch self {
        case .twilio, .telnyx, .plivo: WebAddress.Scheme.sockets.union(WebAddress.Scheme.requests)
        case .exotel, .vonage, .jambonz, .asterisk, .realtime: WebAddress.Scheme.sockets
        case .audioSocket: [.tcp]
        case .leg: WebAddress.Scheme.requests
        }
    }
}

/// How a WebRTC leg is offered.
public enum LegKind: Sendable, Equatable {
    /// As Pipecat's SmallWebRTC has it.
    case smallWebRTC
    /// As `POST /v1/realtime/calls`, with a session's configuration in JSON, or without.
    case realtime(session: String?)

    /// The offer's form.
    ///
    /// - Parameter parameters: Parameters for the bot from the configuration.
    func form(_ parameters: [String: String]) -> OfferForm {
        switch self {
        case .smallWebRTC: .smallWebRTC(data: parameters)
        case .realtime(let session): .realtime(session: session.map { Array($0.utf8) })
        }
    }
}

/// A call that a bot's server asks for. It is answered with ``BotCalls/placed(_:_:)`` or
/// ``BotCalls/refuse(_:_:_:)``.
public struct BotPlacement: Sendable, Equatable {
    /// Which one it is.
    public let number: UInt64
    /// Who is to be called: any text.
    public let to: String
    /// How long it rings, in seconds.
    public let timeoutSeconds: Int

    /// Why a call is not made.
    public enum Refusal: Sendable, Equatable {
        /// It is no valid name of a user.
        case callee
        /// The device's list of callees does not have this name.
        case unlisted
        /// There is no room for it, or the device does not take part in calls now.
        case unavailable
    }
}

/// What bots and their servers ask of the device besides taking part in calls.
public enum BotOrder: Sendable, Equatable {
    /// Place a call.
    case place(BotPlacement)
    /// Serve a bot's leg, by its number.
    case leg(UInt64, LegOrder)
}
