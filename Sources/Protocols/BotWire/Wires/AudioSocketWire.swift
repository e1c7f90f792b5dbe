public import Core

/// Asterisk's AudioSocket over TCP, from Asterisk's side: linear sound in frames that name their rate.
///
/// It has no marks, and nothing to clear with. A hang-up of the bot waits until all is played.
///
/// Source: the protocol's page at github.com/CyCoreSystems/audiosocket; Asterisk's `res_audiosocket.h`.
public struct AudioSocketWire: VoiceWire {
    /// The rates that there are here. The protocol has others, of which no sound is made or taken.
    public enum Rate: Int, CaseIterable, Hashable, Sendable {
        /// 8 kHz.
        case hz8000 = 8_000
        /// 16 kHz.
        case hz16000 = 16_000
        /// 24 kHz.
        case hz24000 = 24_000
        /// 48 kHz.
        case hz48000 = 48_000

        var kind: UInt8 {
            switch self {
            case .hz8000: 0x10
            case .hz16000: 0x12
            case .hz24000: 0x13
            case .hz48000: 0x16
            }
        }
    }

    /// Frames that are not sound.
    private enum Kind {
        static let hangUp: UInt8 = 0x00
        static let identifier: UInt8 = 0x01
        static let digit: UInt8 = 0x03
        static let sounds: ClosedRange<UInt8> = 0x10...0x18
        static let error: UInt8 = 0xFF
    }

    private enum State: Sendable {
        case unopened
        case open(AudioSocketReader)
        case over
    }

    private let rate: Rate
    private var state = State.unopened
    private var faults = FaultLimiter()
    /// The frames, of which even empty ones cost something.
    private var frames = LogLimit(
        burst: WireLimits.messages, perSecond: Double(WireLimits.messagesPerSecond))

    /// Makes one for a call. The bot is sent ``WireCall/stream`` as the connection's UUID; other text than that of a UUID fails
    /// the wire.
    ///
    /// - Parameter rate: The rate of the caller's sound. The bot's sound may have any of the rates.
    public init(rate: Rate = .hz8000) { self.rate = rate }

    /// A TCP connection.
    public var transport: WireTransport { .tcp }
    /// Linear at the rate of the caller's sound.
    public var callerFormat: WireFormat { .linear(rate.rawValue) }
    /// Counts of received messages and of faults.
    public var counts: WireCounts { faults.counts }
    /// Nothing happens by time alone.
    public var nextDeadline: Instant? { nil }

    /// Takes one input.
    public mutating func handle(_ input: WireInput, at now: Instant, into outbox: inout [WireOutput]) {
        switch state {
        case .over: return
        case .unopened:
            switch input {
            case .connected(let call): open(call, into: &outbox)
            case .message: fault(.early, at: now, into: &outbox)
            case .ended: end(into: &outbox)
            case .sound, .missed, .digit, .markPlayed, .markDiscarded, .played, .cleared: break
            }
        case .open(let reader):
            switch input {
            case .sound(let bytes): send(bytes, into: &outbox)
            case .digit(let key, _):
                guard TelephoneKey.isOne(key), let byte = key.asciiValue else { return }
                send(Kind.digit, [byte], into: &outbox)
            case .message(let message): read(message.bytes, reader, at: now, into: &outbox)
            case .ended(.callOver):
                send(Kind.hangUp, [], into: &outbox)
                end(into: &outbox)
            case .ended(.detached): end(into: &outbox)
            case .connected, .missed, .markPlayed, .markDiscarded, .played, .cleared: break
            }
        }
    }

    private mutating func open(_ call: WireCall, into outbox: inout [WireOutput]) {
        guard let identifier = WireName.bytes(ofUUID: call.stream) else {
            outbox.append(.failed(WireFault(.wrongMember, "the stream of an AudioSocket must be named by a UUID")))
            state = .over
            return
        }
        state = .open(AudioSocketReader())
        send(Kind.identifier, identifier, into: &outbox)
    }

    private mutating func end(into outbox: inout [WireOutput]) {
        outbox.append(.close)
        state = .over
    }

    // MARK: - What the bot sends

    private mutating func read(
        _ bytes: [UInt8], _ reader: AudioSocketReader, at now: Instant, into outbox: inout [WireOutput]
    ) {
        var reader = reader
        // Not held twice while it is changed.
        state = .over
        reader.append(bytes)
        while let frame = reader.next() {
            faults.countMessage()
            guard frames.admit(at: now) != nil else {
                faults.countFlood()
                outbox.append(.failed(.tooFast))
                return
            }
            do throws(WireFault) {
                let output = try output(of: frame)
                outbox.append(output)
                switch output {
                case .play(let sound, _): faults.countSound(sound.count)
                case .hangUp: return
                case .send, .setMark, .clear, .press, .fault, .failed, .close: break
                }
            } catch {
                guard fault(error, at: now, into: &outbox) else { return }
            }
        }
        state = .open(reader)
    }

    private func output(of frame: AudioSocketReader.Frame) throws(WireFault) -> WireOutput {
        switch frame.kind {
        case Kind.hangUp: return .hangUp(drains: true)
        case Kind.digit:
            guard frame.payload.count == 1, let byte = frame.payload.first, byte < 0x80,
                TelephoneKey.isOne(Character(Unicode.Scalar(byte)))
            else { throw WireFault(.wrongMember, "a digit must be one of 0 to 9, *, # and A to D, in ASCII") }
            return .press(String(Character(Unicode.Scalar(byte))))
        case Kind.sounds:
            guard let rate = Rate.allCases.first(where: { $0.kind == frame.kind }) else {
                throw WireFault(
                    .wrongFormat, "sound is taken at 8, 16, 24 and 48 kHz: the kinds 0x10, 0x12, 0x13 and 0x16")
            }
            let format = WireFormat.linear(rate.rawValue)
            try format.check(frame.payload)
            return .play(frame.payload, format)
        case Kind.error: throw WireFault(.farEnd, "the bot says that it has failed")
        default: throw WireFault(.unknownEvent, "there is no such kind of frame; there are 0x00, 0x03 and 0x10 to 0x18")
        }
    }

    /// - Returns: Whether the wire continues.
    @discardableResult
    private mutating func fault(_ fault: WireFault, at now: Instant, into outbox: inout [WireOutput]) -> Bool {
        outbox.append(.fault(fault))
        guard !faults.count(fault, at: now) else { return true }
        outbox.append(.failed(.flood))
        state = .over
        return false
    }

    // MARK: - What the bot is sent

    /// Sends sound in as many frames as it takes, each of whole samples.
    private func send(_ sound: [UInt8], into outbox: inout [WireOutput]) {
        let most = AudioSocketReader.mostPayloadBytes & ~1
        for start in stride(from: 0, to: sound.count, by: most) {
            send(rate.kind, sound[start..<min(start + most, sound.count)], into: &outbox)
        }
    }

    private func send(_ kind: UInt8, _ payload: some Collection<UInt8>, into outbox: inout [WireOutput]) {
        let header = [kind, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        outbox.append(.send(.binary(header + payload)))
    }
}

/// Cuts a TCP stream into the frames of AudioSocket: a byte for the kind, the length in two bytes, and the payload.
private struct AudioSocketReader: Sendable {
    struct Frame: Equatable, Sendable {
        let kind: UInt8
        let payload: [UInt8]
    }

    static let headerBytes = 3
    static let mostPayloadBytes = 0xFFFF

    /// The beginning of an incomplete frame; shorter than the longest frame once ``next()`` has returned nothing.
    private var bytes: [UInt8] = []
    private var start = 0

    mutating func append(_ piece: [UInt8]) {
        bytes.removeSubrange(..<start)
        start = 0
        bytes += piece
    }

    /// The next frame that has come as a whole.
    mutating func next() -> Frame? {
        guard bytes.count - start >= Self.headerBytes else { return nil }
        let length = Int(bytes[start + 1]) << 8 | Int(bytes[start + 2])
        let payload = start + Self.headerBytes
        guard bytes.count - payload >= length else { return nil }
        let frame = Frame(kind: bytes[start], payload: Array(bytes[payload..<payload + length]))
        start = payload + length
        return frame
    }
}
