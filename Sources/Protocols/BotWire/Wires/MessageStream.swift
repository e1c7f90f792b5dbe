internal import Core
internal import JSON

/// One service's form of the messages of a stream.
protocol StreamForm: Sendable {
    /// The format of the caller's sound.
    var callerFormat: WireFormat { get }
    /// The messages that open the stream, in order. If they are numbered, the last has the number 1.
    func opening(_ call: WireCall) -> [WireMessage]
    /// The messages for the bot: none if the service has none for this. If they are numbered, there is at most one.
    mutating func messages(_ news: StreamNews, at place: StreamPlace) -> [WireMessage]
    /// The orders in a message of the bot.
    mutating func orders(in message: WireMessage, _ call: WireCall) throws(WireFault) -> [BotOrder]
    /// Whether a message that could not be followed may have been meant as sound.
    func mayBeSound(_ message: WireMessage) -> Bool
    /// Whether a mark is reported also after the bot has asked to hear of no mark that waits.
    func reportsAlways(_ mark: String) -> Bool
    /// Whether the bot takes part.
    var isReady: Bool { get }
}

extension StreamForm {
    var isReady: Bool { true }
    func reportsAlways(_ mark: String) -> Bool { false }
}

/// What a bot learns of its stream after the opening.
enum StreamNews: Equatable, Sendable {
    /// The caller's sound.
    case sound([UInt8])
    /// The caller has pressed a key.
    case digit(Character, heldMilliseconds: Int)
    /// A mark was played, or discarded.
    case mark(String, isPlayed: Bool)
    /// The queue was cleared, after this number of the bot's samples were played since the opening.
    case cleared(played: Int)
    /// A message of the bot could not be followed. This takes no number.
    case fault(WireFault)
    /// The stream ends.
    case stop(WireEnd)
}

/// Where in the stream a message is sent.
struct StreamPlace: Equatable, Sendable {
    let call: WireCall
    /// Where the caller's sound is.
    let media: MediaPlace
    /// The message's number: the opening has 1.
    let number: Int
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

/// A stream of messages in one service's form: the common part of all wires over WebSockets.
struct MessageStream<Form: StreamForm>: Sendable {
    private struct Stream: Sendable {
        let call: WireCall
        var place: MediaPlace
        /// Numbered messages that were sent.
        var number = 1
        /// Marks that were set and not reported.
        var marks = 0
        /// The oldest of them, which the bot wants to hear nothing of.
        var forgottenMarks = 0
        /// Samples of the bot that were played when the queue was cleared last.
        var played = 0
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

    private var form: Form
    private var state = State.unopened
    private var faults = FaultLimiter()

    init(_ form: Form) { self.form = form }

    var callerFormat: WireFormat { form.callerFormat }
    var counts: WireCounts { faults.counts }
    var isReady: Bool { form.isReady }

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
            case .sound, .missed, .digit, .markPlayed, .markDiscarded, .played, .cleared: break
            }
        case .open(var stream):
            // Not held twice while it is changed.
            state = .over
            state = handle(input, in: &stream, at: now, into: &outbox) ? .open(stream) : .over
        }
    }

    private mutating func open(_ call: WireCall, into outbox: inout [WireOutput]) {
        state = .open(Stream(call: call, place: MediaPlace(rateHz: callerFormat.rateHz)))
        outbox += form.opening(call).map(WireOutput.send)
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
            send(.sound(bytes), in: &stream, into: &outbox)
            stream.place.samples += bytes.count / callerFormat.sampleBytes
        case .missed(let samples): stream.place.samples += max(0, samples)
        case .digit(let key, let held):
            guard TelephoneKey.isOne(key) else { break }
            send(.digit(key, heldMilliseconds: held), in: &stream, into: &outbox)
        case .markPlayed(let name): report(name, isPlayed: true, in: &stream, into: &outbox)
        case .markDiscarded(let name): report(name, isPlayed: false, in: &stream, into: &outbox)
        case .played(let samples): stream.played = samples
        case .cleared: send(.cleared(played: stream.played), in: &stream, into: &outbox)
        case .message(let message): return read(message, in: &stream, at: now, into: &outbox)
        case .ended(let end):
            send(.stop(end), in: &stream, into: &outbox)
            outbox.append(.close)
            return false
        }
        return true
    }

    private mutating func report(
        _ name: String, isPlayed: Bool, in stream: inout Stream, into outbox: inout [WireOutput]
    ) {
        guard stream.marks > 0 else { return }
        stream.marks -= 1
        let isForgotten = stream.forgottenMarks > 0
        if isForgotten { stream.forgottenMarks -= 1 }
        guard !isForgotten || form.reportsAlways(name) else { return }
        send(.mark(name, isPlayed: isPlayed), in: &stream, into: &outbox)
    }

    // MARK: - What the bot sends

    private mutating func read(
        _ message: WireMessage, in stream: inout Stream, at now: Instant, into outbox: inout [WireOutput]
    ) -> Bool {
        faults.countMessage()
        do throws(WireFault) {
            for order in try form.orders(in: message, stream.call) {
                guard try follow(order, in: &stream, into: &outbox) else { return false }
            }
            return true
        } catch {
            if form.mayBeSound(message), error.kind != .otherStream, case .none = stream.sound {
                stream.sound = .refused
            }
            outbox += form.messages(.fault(error), at: place(in: stream)).map(WireOutput.send)
            return fault(error, at: now, into: &outbox)
        }
    }

    /// - Returns: Whether the stream continues.
    private mutating func follow(
        _ order: BotOrder, in stream: inout Stream, into outbox: inout [WireOutput]
    ) throws(WireFault) -> Bool {
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
        case .forgetMarks: stream.forgottenMarks = stream.marks
        case .press(let keys): outbox.append(.press(keys))
        case .send(let message): outbox.append(.send(message))
        case .hangUp:
            outbox.append(.hangUp(drains: true))
            return false
        case .fail(let fault):
            outbox.append(.failed(fault))
            return false
        }
        return true
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

    /// Sends what the service has for this; a message with the next number.
    private mutating func send(_ news: StreamNews, in stream: inout Stream, into outbox: inout [WireOutput]) {
        let place = place(in: stream)
        for message in form.messages(news, at: place) {
            stream.number = place.number
            outbox.append(.send(message))
        }
    }

    private func place(in stream: Stream) -> StreamPlace {
        StreamPlace(call: stream.call, media: stream.place, number: stream.number + 1)
    }
}

extension WireMessage {
    /// A text message with a JSON object.
    init?(json members: [String: JSONValue]) {
        // Texts and whole numbers, which cannot fail.
        guard let text = try? JSONText(.object(members)) else { return nil }
        self = .text(text.bytes)
    }
}
