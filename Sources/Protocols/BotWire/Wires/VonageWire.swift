internal import JSON

/// Vonage's WebSocket, from Vonage's side: linear sound in binary messages.
///
/// Source: Vonage's pages "WebSockets in the Voice API" and "Audio Connector". The pieces of sound that it demands, of 20 ms, are not
/// insisted on.
public struct VonageWire: VoiceWire, StreamWire {
    /// The rates that there are.
    public enum Rate: Int, CaseIterable, Hashable, Sendable {
        /// 8 kHz.
        case hz8000 = 8_000
        /// 16 kHz.
        case hz16000 = 16_000
        /// 24 kHz.
        case hz24000 = 24_000
    }

    var stream: MessageStream<VonageForm>

    /// Makes one for a call.
    ///
    /// - Parameter rate: The rate of both sides' sound.
    public init(rate: Rate = .hz16000) { stream = MessageStream(VonageForm(rate: rate)) }
}

/// The messages of Vonage.
struct VonageForm: SoundForm {
    let rate: VonageWire.Rate

    var callerFormat: WireFormat { .linear(rate.rawValue) }

    func opening(_ call: WireCall) -> [WireMessage] {
        var members = call.parameters.mapValues(JSONValue.string)
        members["event"] = "websocket:connected"
        members["content-type"] = .string("audio/l16;rate=\(rate.rawValue)")
        return [members].compactMap(WireMessage.init(json:))
    }

    func message(_ news: StreamNews, at place: StreamPlace) -> WireMessage? {
        switch news {
        case .sound(let bytes): return .binary(bytes)
        case .digit(let key, let held):
            return WireMessage(json: [
                "event": "websocket:dtmf", "digit": .string(String(key)), "duration": .integer(Int64(held)),
            ])
        case .mark(let payload, isPlayed: true):
            guard let payload = try? StreamMessage(Array(payload.utf8)) else { return nil }
            return WireMessage(json: ["event": "websocket:notify", "payload": payload.value])
        case .cleared: return WireMessage(json: ["event": "websocket:cleared"])
        case .mark(_, isPlayed: false), .fault, .stop: return nil
        }
    }

    func orders(inText text: [UInt8], _ call: WireCall) throws(WireFault) -> [BotOrder] {
        let message = try StreamMessage(text)
        switch try message.text("action") {
        case "clear": return [.clear]
        case "notify": return [.mark(try payload(of: message))]
        default: throw WireFault(.unknownEvent, "there is no such action; there are clear and notify")
        }
    }

    /// What comes back as it was sent.
    private func payload(of message: StreamMessage) throws(WireFault) -> String {
        guard let value = message.value("payload"), case .object = value, let text = try? JSONText(value) else {
            throw WireFault(.wrongMember, "\"payload\" must be an object")
        }
        guard text.bytes.count <= WireLimits.markBytes else {
            throw WireFault(.tooLong, "the payload of notify has \(WireLimits.markBytes) bytes at most")
        }
        return String(decoding: text.bytes, as: UTF8.self)
    }
}
