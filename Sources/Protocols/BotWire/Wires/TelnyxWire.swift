internal import JSON

/// Telnyx's media streaming, in both directions, from Telnyx's side: µ-law or A-law at 8 kHz, chosen for each
/// direction.
///
/// Source: Telnyx's page "Stream call media over WebSocket". Of the codecs there, G.722, Opus, AMR-WB, L16 and MP3 are missing.
public struct TelnyxWire: VoiceWire, StreamWire {
    /// The codecs that there are.
    public enum Codec: String, CaseIterable, Hashable, Sendable {
        /// µ-law.
        case pcmu = "PCMU"
        /// A-law.
        case pcma = "PCMA"

        var format: WireFormat {
            switch self {
            case .pcmu: .mulaw
            case .pcma: .alaw
            }
        }
    }

    var stream: MessageStream<JSONForm<TelnyxDialect>>

    /// Makes one for a call.
    ///
    /// - Parameters:
    ///   - caller: The codec of the caller's sound, which the bot receives in the stream's first message.
    ///   - bot: The codec of the bot's sound, which the bot's server and this side must agree on.
    public init(caller: Codec = .pcmu, bot: Codec = .pcmu) {
        stream = MessageStream(JSONForm(TelnyxDialect(caller: caller, bot: bot)))
    }
}

/// The messages of Telnyx.
struct TelnyxDialect: StreamDialect {
    let caller: TelnyxWire.Codec
    let bot: TelnyxWire.Codec

    var callerFormat: WireFormat { caller.format }

    func opening(_ call: WireCall) -> [[String: JSONValue]] {
        [
            ["event": "connected", "version": "1.0.0"],
            numbered(
                "start", 1, call,
                "start",
                [
                    "user_id": .string(call.account), "call_control_id": .string(call.call),
                    "call_session_id": .string(call.call), "from": .string(call.from), "to": .string(call.to),
                    "custom_parameters": .object(call.parameters.mapValues(JSONValue.string)),
                    "media_format": ["encoding": .string(caller.rawValue), "sample_rate": 8_000, "channels": 1],
                ]),
        ]
    }

    func media(_ payload: String, _ place: MediaPlace, _ call: WireCall, number: Int) -> [String: JSONValue] {
        numbered(
            "media", number, call, "media",
            [
                "track": "inbound", "chunk": .text(place.chunk), "timestamp": .text(place.milliseconds),
                "payload": .string(payload),
            ])
    }

    func digit(
        _ key: Character, heldMilliseconds: Int, _ place: MediaPlace, _ call: WireCall, number: Int
    ) -> [String: JSONValue] {
        numbered("dtmf", number, call, "dtmf", ["digit": .string(String(key))])
    }

    /// Marks that are discarded are sent back, too.
    func mark(_ name: String, isPlayed: Bool, _ call: WireCall, number: Int) -> [String: JSONValue]? {
        numbered("mark", number, call, "mark", ["name": .string(name)])
    }

    func fault(_ fault: WireFault, _ call: WireCall) -> [String: JSONValue]? {
        let (code, title): (Int64, String) =
            switch fault.kind {
            case .wrongSound, .wrongFormat: (100_004, "invalid_media")
            case .tooManyMarks, .flood: (100_005, "rate_limit_reached")
            case .tooLong, .malformed, .unknownEvent, .wrongMember, .otherStream: (100_003, "malformed_frame")
            case .farEnd, .early: (100_002, "unknown_error")
            }
        return [
            "event": "error", "stream_id": .string(call.stream),
            "payload": ["code": .integer(code), "title": .string(title), "detail": .string(fault.description)],
        ]
    }

    func stop(_ end: WireEnd, _ call: WireCall, number: Int) -> [String: JSONValue]? {
        numbered(
            "stop", number, call, "stop", ["user_id": .string(call.account), "call_control_id": .string(call.call)])
    }

    private func numbered(
        _ event: String, _ number: Int, _ call: WireCall, _ member: String, _ value: JSONValue
    ) -> [String: JSONValue] {
        [
            "event": .string(event), "sequence_number": .text(number), "stream_id": .string(call.stream),
            member: value,
        ]
    }

    func order(_ message: StreamMessage, _ call: WireCall) throws(WireFault) -> BotOrder {
        let event = try message.text("event")
        try message.check("stream_id", is: call.stream)
        switch event {
        case "media": return try message.object("media").sound("payload", as: bot.format)
        case "mark": return .mark(try message.object("mark").markName("name"))
        case "clear": return .clear
        default: throw WireFault(.unknownEvent, "there is no such event; there are media, mark and clear")
        }
    }
}
