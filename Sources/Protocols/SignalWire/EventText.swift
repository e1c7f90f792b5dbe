/// An event as JSON text without its number: written once for all its receivers, and no longer than on the wire.
///
/// A parsed value takes up to twenty times its text's length: `[0]` is a separate allocation.
public struct EventText: Hashable, Sendable {
    /// An object with `data` and `type`.
    public let text: String

    /// Writes an event.
    ///
    /// - Throws: ``SignalCodingError`` for a number that JSON cannot express; values read from JSON have none.
    public init(_ event: ExchangeEvent) throws(SignalCodingError) {
        text = String(decoding: try SignalCoding.encode(event), as: UTF8.self)
    }

    /// Writes an invite whose data and payload are JSON text already.
    ///
    /// - Parameter invite: The invite without them.
    /// - Throws: ``SignalCodingError`` for a number that JSON cannot express.
    public init(_ invite: InviteReceived, data: String?, payload: String?) throws(SignalCodingError) {
        let event = try SignalCoding.encode(ExchangeEvent.inviteReceived(invite))
        text = SplicedText.text(event, after: #"{"data":{"#, ["data": data, "payload": payload])
    }

    /// Takes a text that was kept.
    public init(kept text: String) { self.text = text }

    /// The event; `nil` for a text that no exchange writes.
    public var event: ExchangeEvent? {
        guard text.utf8.first == UInt8(ascii: "{") else { return nil }
        return (try? SignalCoding.decode(NumberedEvent.self, from: params(1), within: .delivery))?.event
    }

    /// The notification that carries the event under a number, ready to send.
    public func message(numbered number: UInt64) -> [UInt8] {
        var message = Array(#"{"jsonrpc":"2.0","method":"\#(NumberedEvent.method)","params":"#.utf8)
        message.reserveCapacity(message.count + text.utf8.count + 40)
        write(number, to: &message)
        message.append(UInt8(ascii: "}"))
        return message
    }

    private func params(_ number: UInt64) -> [UInt8] {
        var params: [UInt8] = []
        write(number, to: &params)
        return params
    }

    /// Writes the number as the first member of the object.
    private func write(_ number: UInt64, to bytes: inout [UInt8]) {
        let start = bytes.count
        // A part of a string would be copied byte by byte.
        bytes += text.utf8
        bytes.replaceSubrange(start..<min(start + 1, bytes.count), with: #"{"sequence":\#(number),"#.utf8)
    }
}
