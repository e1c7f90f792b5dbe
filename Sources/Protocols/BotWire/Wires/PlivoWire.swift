internal import JSON

/// Plivo's audio streaming, in both directions, from Plivo's side: µ-law at 8 kHz, or linear at 8 or 16 kHz. The bot
/// may send any of these formats, independent of the format of the caller's sound.
///
/// Source: Plivo's pages "Stream Event Protocol" and "Audio Streaming Protocol Reference".
public struct PlivoWire: VoiceWire, StreamWire {
    var stream: MessageStream<JSONForm<PlivoDialect>>

    /// The formats that there are.
    public enum ContentType: String, CaseIterable, Hashable, Sendable {
        /// µ-law at 8 kHz.
        case mulaw = "audio/x-mulaw;rate=8000"
        /// Linear at 8 kHz.
        case linear8000 = "audio/x-l16;rate=8000"
        /// Linear at 16 kHz.
        case linear16000 = "audio/x-l16;rate=16000"

        /// The wire format that it names.
        public var format: WireFormat {
            switch self {
            case .mulaw: .mulaw
            case .linear8000: .linear(8_000)
            case .linear16000: .linear(16_000)
            }
        }

        /// Its first half.
        var encoding: String {
            switch self {
            case .mulaw: "audio/x-mulaw"
            case .linear8000, .linear16000: "audio/x-l16"
            }
        }
    }

    /// Makes one for a call.
    ///
    /// - Parameter caller: The format of the caller's sound.
    public init(caller: ContentType = .mulaw) { stream = MessageStream(JSONForm(PlivoDialect(caller: caller))) }
}

/// The messages of Plivo, which has none for the end of a stream: the connection is closed.
struct PlivoDialect: StreamDialect {
    let caller: PlivoWire.ContentType

    var callerFormat: WireFormat { caller.format }
    var soundEvent: String { "playAudio" }

    func opening(_ call: WireCall) -> [[String: JSONValue]] {
        [
            [
                "event": "start", "sequenceNumber": 1,
                "start": [
                    "callId": .string(call.call), "streamId": .string(call.stream), "accountId": .string(call.account),
                    "tracks": ["inbound"],
                    "mediaFormat": [
                        "encoding": .string(caller.encoding), "sampleRate": .integer(Int64(caller.format.rateHz)),
                    ],
                ],
                "extra_headers": .string(headers(call)),
            ]
        ]
    }

    func media(_ payload: String, _ place: MediaPlace, _ call: WireCall, number: Int) -> [String: JSONValue] {
        numbered(
            "media", number, call, "media",
            [
                "track": "inbound", "chunk": .integer(Int64(place.chunk)), "timestamp": .string(time(place, call)),
                "payload": .string(payload),
            ])
    }

    func digit(
        _ key: Character, heldMilliseconds: Int, _ place: MediaPlace, _ call: WireCall, number: Int
    ) -> [String: JSONValue] {
        numbered(
            "dtmf", number, call, "dtmf",
            ["track": "inbound", "digit": .string(String(key)), "timestamp": .string(time(place, call))])
    }

    /// Reports only marks that were played.
    func mark(_ name: String, isPlayed: Bool, _ call: WireCall, number: Int) -> [String: JSONValue]? {
        guard isPlayed else { return nil }
        return [
            "event": "playedStream", "sequenceNumber": .integer(Int64(number)), "streamId": .string(call.stream),
            "name": .string(name),
        ]
    }

    func cleared(_ call: WireCall, number: Int) -> [String: JSONValue]? {
        [
            "event": "clearedAudio", "sequenceNumber": .integer(Int64(number)), "streamId": .string(call.stream),
        ]
    }

    func stop(_ end: WireEnd, _ call: WireCall, number: Int) -> [String: JSONValue]? { nil }

    private func numbered(
        _ event: String, _ number: Int, _ call: WireCall, _ member: String, _ value: JSONValue
    ) -> [String: JSONValue] {
        [
            "event": .string(event), "sequenceNumber": .integer(Int64(number)), "streamId": .string(call.stream),
            member: value, "extra_headers": .string(headers(call)),
        ]
    }

    private func headers(_ call: WireCall) -> String {
        call.parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ";")
    }

    private func time(_ place: MediaPlace, _ call: WireCall) -> String {
        String(call.startMilliseconds + Int64(place.milliseconds))
    }

    func order(_ message: StreamMessage, _ call: WireCall) throws(WireFault) -> BotOrder {
        let event = try message.text("event")
        try message.check("streamId", is: call.stream)
        switch event {
        case "playAudio":
            let media = try message.object("media")
            return try media.sound("payload", as: try format(media))
        case "checkpoint": return .mark(try message.markName("name"))
        case "clearAudio": return .clear
        case "sendDTMF": return try message.keys("dtmf")
        default:
            throw WireFault(
                .unknownEvent, "there is no such event; there are playAudio, checkpoint, clearAudio and sendDTMF")
        }
    }

    private func format(_ media: StreamMessage) throws(WireFault) -> WireFormat {
        switch (try media.text("contentType"), try media.number("sampleRate")) {
        case ("audio/x-mulaw", 8_000): return .mulaw
        case ("audio/x-l16", 8_000): return .linear(8_000)
        case ("audio/x-l16", 16_000): return .linear(16_000)
        default:
            throw WireFault(.wrongFormat, "sound is audio/x-mulaw at 8000 Hz, or audio/x-l16 at 8000 or 16000 Hz")
        }
    }
}
