internal import Core
internal import JSON

/// Which sound of a call is forked to a server. The names are those of documents.
public enum ForkTracks: String, CaseIterable, Sendable {
    /// What the caller says.
    case inbound = "inbound_track"
    /// What the caller hears.
    case outbound = "outbound_track"
    /// Both, each in messages of its own.
    case both = "both_tracks"

    /// Whether there is what the caller says.
    public var hasInbound: Bool { self != .outbound }
    /// Whether there is what the caller hears.
    public var hasOutbound: Bool { self != .inbound }
}

/// Twilio's Media Streams in one direction, from Twilio's side: µ-law at 8 kHz, and nothing that the server sends counts.
///
/// Source: Twilio's page "Media Streams - WebSocket Messages".
public struct ForkWire: Sendable {
    /// The format of the sound.
    public static let format = WireFormat.mulaw

    private let tracks: ForkTracks
    private let dialect: TwilioDialect
    /// Nil before the stream is open, and after its end.
    private var call: WireCall?
    private var number = 1
    private var place = MediaPlace(rateHz: ForkWire.format.rateHz)

    /// Makes one for a call.
    public init(_ tracks: ForkTracks) {
        self.tracks = tracks
        dialect = TwilioDialect(tracks: tracks)
    }

    /// Opens the stream.
    ///
    /// - Returns: What is sent.
    public mutating func open(_ call: WireCall) -> [WireMessage] {
        guard self.call == nil, number == 1 else { return [] }
        self.call = call
        return dialect.opening(call).compactMap(WireMessage.init(json:))
    }

    /// Takes the next sound of both sides, which is of the same time and length.
    ///
    /// - Returns: What is sent.
    public mutating func take(inbound: [UInt8], outbound: [UInt8]) -> [WireMessage] {
        guard let call else { return [] }
        var messages: [WireMessage] = []
        place.chunk += 1
        for (track, sound, isSent) in [
            ("inbound", inbound, tracks.hasInbound), ("outbound", outbound, tracks.hasOutbound),
        ] where isSent && !sound.isEmpty {
            number += 1
            let message = dialect.media(Base64.text(sound), place, call, number: number, track: track)
            messages += [WireMessage(json: message)].compactMap(\.self)
        }
        place.samples += max(inbound.count, outbound.count)
        return messages
    }

    /// Sound of this many samples was lost on the way here.
    public mutating func skip(samples: Int) { place.samples += max(0, samples) }

    /// Ends the stream.
    ///
    /// - Returns: What is sent.
    public mutating func close() -> [WireMessage] {
        guard let call else { return [] }
        self.call = nil
        number += 1
        return [dialect.stop(.callOver, call, number: number)].compactMap(\.self).compactMap(WireMessage.init(json:))
    }
}
