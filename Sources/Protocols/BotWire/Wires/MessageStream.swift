internal import Core
internal import JSON

/// One service's form of the messages of a stream, which are JSON objects with sound in base64.
protocol StreamDialect: Sendable {
    /// The format of the caller's sound.
    var callerFormat: WireFormat { get }
    /// The name of the bot's messages with sound.
    var soundEvent: String { get }
    /// The messages that open the stream, in order. The last has the number 1; those before it have none.
    func opening(_ call: WireCall) -> [[String: JSONValue]]
    /// The caller's sound.
    func media(_ payload: String, _ place: MediaPlace, _ call: WireCall, number: Int) -> [String: JSONValue]
    /// The caller has pressed a key.
    func digit(
        _ key: Character, heldMilliseconds: Int, _ place: MediaPlace, _ call: WireCall, number: Int
    ) -> [String: JSONValue]
    /// A mark was played, or discarded. Nil if the service has no such message.
    func mark(_ name: String, isPlayed: Bool, _ call: WireCall, number: Int) -> [String: JSONValue]?
    /// The queue was cleared. Nil if the service has no such message.
    func cleared(_ call: WireCall, number: Int) -> [String: JSONValue]?
    /// A message of the bot could not be followed. Nil if the service has no such message.
    func fault(_ fault: WireFault, _ call: WireCall) -> [String: JSONValue]?
    /// The stream ends. Nil if the service has no such message.
    func stop(_ end: WireEnd, _ call: WireCall, number: Int) -> [String: JSONValue]?
    /// The order in a message of the bot.
    func order(_ message: StreamMessage, _ call: WireCall) throws(WireFault) -> BotOrder
}

extension StreamDialect {
    var soundEvent: String { "media" }
    func cleared(_ call: WireCall, number: Int) -> [String: JSONValue]? { nil }
    func fault(_ fault: WireFault, _ call: WireCall) -> [String: JSONValue]? { nil }
}

/// Position of a piece of the caller's sound in the stream.
struct MediaPlace: Equatable, Sendable {
    /// Pieces up to this one, itself among them.
    var chunk = 0
    /// Samples before it.
    var samples = 0
    let rateHz: Int

    /// Milliseconds before it.
    var milliseconds: Int { samples * 1_000 / rateHz }
}

/// A stream of messages in one service's form: the common part of the wires of Twilio, Telnyx, Plivo and Exotel.
struct MessageStream<Dialect: StreamDialect>: Sendable {
    private struct Stream: Sendable {
        let call: WireCall
        var place: MediaPlace
        /// Numbered messages that were sent.
        var number = 1
        /// Marks that were set and not reported.
        var marks = 0
        /// The state of the sound since the last mark, or since the queue was cleared.
        var sound = SoundSinceMark.none
    }

    /// The sound since the last mark. A mark is not reported if none of the sound before it could be played.
    private enum SoundSinceMark: Sendable {
        case none
        case refused
        case played
    }

    private enum State: Sendable {
        case unopened
        case open(Stream)
        case over
    }

    let dialect: Dialect
    private var state = State.unopened
    private var faults = FaultLimiter()

    init(_ dialect: Dialect) { self.dialect = dialect }

    var counts: WireCounts { faults.counts }

    mutating func handle(_ input: WireInput, at now: Instant, into outbox: inout [WireOutput]) {
        switch state {
        case .over: return
        case .unopened:
            switch input {
            case .connected(let call): open(call, into: &outbox)
            case .message: fault(.early, at: now, into: &outbox)
            case .ended:
                outbox.append(.close)
                state = .over
            case .sound, .missed, .digit, .markPlayed, .markDiscarded, .cleared: break
            }
        case .open(var stream):
            // Not held twice while it is changed.
            state = .over
            state = handle(input, in: &stream, at: now, into: &outbox) ? .open(stream) : .over
        }
    }

    private mutating func open(_ call: WireCall, into outbox: inout [WireOutput]) {
        state = .open(Stream(call: call, place: MediaPlace(rateHz: dialect.callerFormat.rateHz)))
        for message in dialect.opening(call) { send(message, into: &outbox) }
    }

    /// - Returns: Whether the stream continues.
    private mutating func handle(
        _ input: WireInput, in stream: inout Stream, at now: Instant, into outbox: inout [WireOutput]
    ) -> Bool {
        switch input {
        case .connected: break
        case .sound(let bytes):
            guard !bytes.isEmpty else { break }
            stream.place.chunk += 1
            let payload = Base64.text(bytes)
            sendNumbered(in: &stream, into: &outbox) { dialect.media(payload, $0.place, $0.call, number: $0.number) }
            stream.place.samples += bytes.count / dialect.callerFormat.sampleBytes
        case .missed(let samples): stream.place.samples += max(0, samples)
        case .digit(let key, let held):
            guard TelephoneKey.isOne(key) else { break }
            sendNumbered(in: &stream, into: &outbox) {
                dialect.digit(key, heldMilliseconds: held, $0.place, $0.call, number: $0.number)
            }
        case .markPlayed(let name): report(name, isPlayed: true, in: &stream, into: &outbox)
        case .markDiscarded(let name): report(name, isPlayed: false, in: &stream, into: &outbox)
        case .cleared: sendNumbered(in: &stream, into: &outbox) { dialect.cleared($0.call, number: $0.number) }
        case .message(let message): return read(message, in: &stream, at: now, into: &outbox)
        case .ended(let end):
            sendNumbered(in: &stream, into: &outbox) { dialect.stop(end, $0.call, number: $0.number) }
            outbox.append(.close)
            return false
        }
        return true
    }

    private func report(_ name: String, isPlayed: Bool, in stream: inout Stream, into outbox: inout [WireOutput]) {
        guard stream.marks > 0 else { return }
        stream.marks -= 1
        sendNumbered(in: &stream, into: &outbox) {
            dialect.mark(name, isPlayed: isPlayed, $0.call, number: $0.number)
        }
    }

    // MARK: - What the bot sends

    private mutating func read(
        _ message: WireMessage, in stream: inout Stream, at now: Instant, into outbox: inout [WireOutput]
    ) -> Bool {
        faults.countMessage()
        // A message that cannot be read at all may be sound.
        var mayBeSound = true
        do throws(WireFault) {
            guard case .text(let text) = message else {
                throw WireFault(.malformed, "a message must be text, with sound in base64; this one is binary")
            }
            let read = try StreamMessage(text)
            mayBeSound = try read.textIfAny("event") == dialect.soundEvent
            try follow(try dialect.order(read, stream.call), in: &stream, into: &outbox)
            return true
        } catch {
            if mayBeSound, error.kind != .otherStream, case .none = stream.sound { stream.sound = .refused }
            if let report = dialect.fault(error, stream.call) { send(report, into: &outbox) }
            return fault(error, at: now, into: &outbox)
        }
    }

    private mutating func follow(
        _ order: BotOrder, in stream: inout Stream, into outbox: inout [WireOutput]
    ) throws(WireFault) {
        switch order {
        case .play(let bytes, _) where bytes.isEmpty: break
        case .play(let bytes, let format):
            faults.countSound(bytes.count)
            stream.sound = .played
            outbox.append(.play(bytes, format))
        case .mark(let name):
            guard stream.marks < WireLimits.marks else {
                throw WireFault(.tooManyMarks, "\(WireLimits.marks) marks wait already")
            }
            if case .refused = stream.sound {
                stream.sound = .none
                throw WireFault(
                    .wrongSound, "the mark is not reported, because nothing of the sound before it could be played")
            }
            stream.sound = .none
            stream.marks += 1
            outbox.append(.setMark(name))
        case .clear:
            stream.sound = .none
            outbox.append(.clear)
        case .press(let keys): outbox.append(.press(keys))
        }
    }

    /// - Returns: Whether the stream continues.
    @discardableResult
    private mutating func fault(_ fault: WireFault, at now: Instant, into outbox: inout [WireOutput]) -> Bool {
        outbox.append(.fault(fault))
        guard !faults.count(fault, at: now) else { return true }
        outbox.append(.failed(.flood))
        state = .over
        return false
    }

    // MARK: - What the bot is sent

    /// Sends a message with the next number, if there is one.
    private func sendNumbered(
        in stream: inout Stream, into outbox: inout [WireOutput], _ message: (Stream) -> [String: JSONValue]?
    ) {
        var next = stream
        next.number += 1
        guard let message = message(next) else { return }
        stream.number = next.number
        send(message, into: &outbox)
    }

    private func send(_ message: [String: JSONValue], into outbox: inout [WireOutput]) {
        // Texts and whole numbers, which cannot fail.
        guard let text = try? JSONText(.object(message)) else { return }
        outbox.append(.send(.text(text.bytes)))
    }
}
