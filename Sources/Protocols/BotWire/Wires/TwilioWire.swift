internal import JSON

/// Twilio's Media Streams, in both directions, from Twilio's side: µ-law at 8 kHz.
///
/// Source: Twilio's page "Media Streams - WebSocket Messages".
public struct TwilioWire: VoiceWire, StreamWire {
    var stream = MessageStream(JSONForm(TwilioDialect()))

    /// Makes one for a call.
    public init() {}
}

/// The messages of Twilio.
struct TwilioDialect: StreamDialect {
    /// Those of a stream that is forked; a bot that takes part receives what the caller says.
    var tracks = ForkTracks.inbound

    var callerFormat: WireFormat { .mulaw }

    func opening(_ call: WireCall) -> [[String: JSONValue]] {
        [
            ["event": "connected", "protocol": "Call", "version": "1.0.0"],
            numbered(
                "start", 1, call,
                "start",
                [
                    "accountSid": .string(call.account), "callSid": .string(call.call),
                    "streamSid": .string(call.stream), "tracks": .array(trackNames),
                    "customParameters": .object(call.parameters.mapValues(JSONValue.string)),
                    "mediaFormat": ["encoding": "audio/x-mulaw", "sampleRate": 8_000, "channels": 1],
                ]),
        ]
    }

    private var trackNames: [JSONValue] {
        (tracks.hasInbound ? ["inbound"] : []) + (tracks.hasOutbound ? ["outbound"] : [])
    }

    func media(_ payload: String, _ place: MediaPlace, _ call: WireCall, number: Int) -> [String: JSONValue] {
        media(payload, place, call, number: number, track: "inbound")
    }

    func media(
        _ payload: String, _ place: MediaPlace, _ call: WireCall, number: Int, track: String
    ) -> [String: JSONValue] {
        numbered(
            "media", number, call, "media",
            [
                "track": .string(track), "chunk": .text(place.chunk), "timestamp": .text(place.milliseconds),
                "payload": .string(payload),
            ])
    }

    func digit(
        _ key: Character, heldMilliseconds: Int, _ place: MediaPlace, _ call: WireCall, number: Int
    ) -> [String: JSONValue] {
        numbered("dtmf", number, call, "dtmf", ["track": "inbound_track", "digit": .string(String(key))])
    }

    /// Marks that are discarded are sent back, too.
    func mark(_ name: String, isPlayed: Bool, _ call: WireCall, number: Int) -> [String: JSONValue]? {
        numbered("mark", number, call, "mark", ["name": .string(name)])
    }

    func stop(_ end: WireEnd, _ call: WireCall, number: Int) -> [String: JSONValue]? {
        numbered(
            "stop", number, call, "stop", ["accountSid": .string(call.account), "callSid": .string(call.call)])
    }

    private func numbered(
        _ event: String, _ number: Int, _ call: WireCall, _ member: String, _ value: JSONValue
    ) -> [String: JSONValue] {
        [
            "event": .string(event), "sequenceNumber": .text(number), "streamSid": .string(call.stream), member: value,
        ]
    }

    func order(_ message: StreamMessage, _ call: WireCall) throws(WireFault) -> BotOrder {
        let event = try message.text("event")
        try message.check("streamSid", is: call.stream)
        switch event {
        case "media": return try message.object("media").sound("payload", as: .mulaw)
        case "mark": return .mark(try message.object("mark").markName("name"))
        case "clear": return .clear
        default: throw WireFault(.unknownEvent, "there is no such event; there are media, mark and clear")
        }
    }
}

extension JSONValue {
    /// A whole number as text.
    static func text(_ number: Int) -> JSONValue { .string(String(number)) }
}
