/// A form of a stream's messages in which binary messages are sound, and texts are orders.
protocol SoundForm: StreamForm {
    /// The orders in a text.
    func orders(inText text: [UInt8], _ call: WireCall) throws(WireFault) -> [BotOrder]
    /// The message for the bot. Nil if the service has none for this.
    func message(_ news: StreamNews, at place: StreamPlace) -> WireMessage?
}

extension SoundForm {
    func messages(_ news: StreamNews, at place: StreamPlace) -> [WireMessage] {
        [message(news, at: place)].compactMap(\.self)
    }

    func orders(in message: WireMessage, _ call: WireCall) throws(WireFault) -> [BotOrder] {
        switch message {
        case .text(let text): return try orders(inText: text, call)
        // Synthesis often ends with a message without sound.
        case .binary(let bytes) where bytes.isEmpty: return []
        case .binary(let bytes):
            try callerFormat.check(bytes)
            return [.play(bytes, callerFormat)]
        }
    }

    func mayBeSound(_ message: WireMessage) -> Bool {
        if case .binary = message { true } else { false }
    }
}
