internal import JSON

/// Exotel's voicebot applet, from Exotel's side: linear at 8, 16 or 24 kHz.
///
/// Source: Exotel's page "Working with the Stream and Voicebot Applet". The pieces of sound that it demands, of 100 ms and
/// multiples of 320 bytes, are not insisted on.
public struct ExotelWire: VoiceWire, StreamWire {
    /// The rates that there are.
    public enum Rate: Int, CaseIterable, Hashable, Sendable {
        /// 8 kHz.
        case hz8000 = 8_000
        /// 16 kHz.
        case hz16000 = 16_000
        /// 24 kHz.
        case hz24000 = 24_000
    }

    var stream: MessageStream<JSONForm<ExotelDialect>>

    /// Makes one for a call.
    ///
    /// - Parameter rate: The rate of both sides' sound, which the bot's URL names in `sample-rate`.
    public init(rate: Rate = .hz8000) { stream = MessageStream(JSONForm(ExotelDialect(rate: rate))) }
}

/// The messages of Exotel.
struct ExotelDialect: StreamDialect {
    let rate: ExotelWire.Rate

    var callerFormat: WireFormat { .linear(rate.rawValue) }

    func opening(_ call: WireCall) -> [[String: JSONValue]] {
        [
            ["event": "connected"],
            numbered(
                "start", 1, call,
                "start",
                [
                    "stream_sid": .string(call.stream), "call_sid": .string(call.call),
                    "account_sid": .string(call.account), "from": .string(call.from), "to": .string(call.to),
                    "custom_parameters": .object(call.parameters.mapValues(JSONValue.string)),
                    "media_format": [
                        "encoding": "base64", "sample_rate": .text(rate.rawValue),
                        "bit_rate": .string("\(rate.rawValue * 16 / 1_000)kbps"),
                    ],
                ]),
        ]
    }

    func media(_ payload: String, _ place: MediaPlace, _ call: WireCall, number: Int) -> [String: JSONValue] {
        numbered(
            "media", number, call, "media",
            [
                "chunk": .integer(Int64(place.chunk)), "timestamp": .text(place.milliseconds),
                "payload": .string(payload),
            ])
    }

    func digit(
        _ key: Character, heldMilliseconds: Int, _ place: MediaPlace, _ call: WireCall, number: Int
    ) -> [String: JSONValue] {
        numbered(
            "dtmf", number, call, "dtmf", ["digit": .string(String(key)), "duration": .text(heldMilliseconds)])
    }

    /// Marks that are discarded are sent back, too.
    func mark(_ name: String, isPlayed: Bool, _ call: WireCall, number: Int) -> [String: JSONValue]? {
        numbered("mark", number, call, "mark", ["name": .string(name)])
    }

    func stop(_ end: WireEnd, _ call: WireCall, number: Int) -> [String: JSONValue]? {
        let reason: JSONValue =
            switch end {
            case .callOver: "callended"
            case .detached: "stopped"
            }
        return numbered(
            "stop", number, call, "stop",
            ["call_sid": .string(call.call), "account_sid": .string(call.account), "reason": reason])
    }

    private func numbered(
        _ event: String, _ number: Int, _ call: WireCall, _ member: String, _ value: JSONValue
    ) -> [String: JSONValue] {
        [
            "event": .string(event), "sequence_number": .integer(Int64(number)), "stream_sid": .string(call.stream),
            member: value,
        ]
    }

    func order(_ message: StreamMessage, _ call: WireCall) throws(WireFault) -> BotOrder {
        let event = try message.text("event")
        try message.check("stream_sid", is: call.stream)
        switch event {
        case "media": return try message.object("media").sound("payload", as: callerFormat)
        case "mark": return .mark(try message.object("mark").markName("name"))
        case "clear": return .clear
        default: throw WireFault(.unknownEvent, "there is no such event; there are media, mark and clear")
        }
    }
}
