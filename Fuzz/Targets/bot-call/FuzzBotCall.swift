internal import BotWire
internal import FuzzInput
internal import Core

/// Called by libFuzzer with each input: a byte that chooses the wire, and then what happens in a bot's call: answers of a
/// webhook, requests, messages of the bot, and what the call's port does, each on a line of its own.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzBotCall(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, run) }

private func run(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    var call = FuzzedCall(choice: first)
    for piece in bytes.dropFirst().split(separator: 0x0A, omittingEmptySubsequences: false) {
        guard let control = piece.first else { continue }
        call.take(control, Array(piece.dropFirst()))
    }
    call.end()
}

/// A call as its driver has it: a course, a line, and a port that plays what it is given.
private struct FuzzedCall {
    private let choice: UInt8
    private let isAnswered: Bool
    private var now = Instant.zero
    private var course: BotCourse
    private var line: BotLine?
    // What the course has asked for.
    private var isAccepted: Bool
    private var isDecided = false
    // The port.
    private var room = 32_768
    private var isAttached = false
    private var missed = 0
    private var marks: [String] = []
    private var clears = 0
    private var hasEnd = false
    private var isPaused = false
    private static let lineCall = WireCall(
        call: "call", stream: "40325ec2-5efd-4bd3-805f-53576e581d13", account: "account", from: "a", to: "b")

    init(choice: UInt8) {
        self.choice = choice
        isAnswered = choice & 0x10 != 0
        isAccepted = isAnswered
        course = BotCourse(isAnswered: isAnswered, hasFallback: choice & 0x20 != 0, timeout: .seconds(5))
        let base = WebAddress("http://bot.example/answer", WebAddress.Scheme.requests)
        if let base { feed(.ask(Webhook(base))) }
    }

    private var wire: any VoiceWire {
        switch choice & 7 {
        case 0: PlivoWire()
        case 1: TelnyxWire()
        case 2: ExotelWire()
        case 3: AudioSocketWire()
        case 4: RealtimeWire()
        default: TwilioWire()
        }
    }

    mutating func take(_ control: UInt8, _ bytes: [UInt8]) {
        now = now.advanced(byNanoseconds: Int64(control >> 4) * 20_000_000)
        switch control & 15 {
        case 0: if let markup = markup(bytes) { feed(.told(markup)) }
        case 1: feed(.failed("why"))
        case 2:
            feed(line: .opened(Self.lineCall))
            feed(.opened)
        case 3: feed(.end)
        case 4: if let markup = markup(bytes) { feed(.redirect(.markup(markup))) }
        case 5: feed(line: .message(.text(bytes)))
        case 6: feed(line: .message(.binary(bytes)))
        case 7:
            isAttached = true
            feed(line: .attached(room: room, missedAt48kHz: missed))
        case 8: feed(line: .closed(failure: bytes.isEmpty ? nil : "gone"))
        case 9: feed(line: .digit("5", heldMilliseconds: 100))
        case 10: runFrame(bytes, outbound: 0)
        case 11: runFrame(bytes, outbound: 100_000)
        case 12:
            missed += 48 * bytes.count
            runFrame([], outbound: 0)
        case 13: pass(.seconds(70))
        case 14:
            let request = ServiceRequest(
                method: "POST", target: "/2010-04-01/Accounts/AC1/Calls/call.json",
                contentType: "application/x-www-form-urlencoded", body: bytes)
            switch try? BotRequest(request).order() {
            case .redirect(_, let instructions)?: feed(.redirect(instructions))
            case .end?: feed(.end)
            case .place?, .transfer?, nil: break
            }
        default:
            pass(.milliseconds(100))
            feed(.transferFailed)
        }
    }

    mutating func end() {
        feed(line: .end(.callOver))
        feed(.callOver)
        require(course.nextDeadline == nil, "a call that is over waits for nothing")
    }

    private func markup(_ bytes: [UInt8]) -> CallMarkup? {
        try? CallMarkup(
            bytes, choice & 7 == 0 ? .plivo : .twilio,
            from: WebAddress("http://bot.example/answer", WebAddress.Scheme.requests))
    }

    private mutating func pass(_ time: Duration) {
        now = now.advanced(by: time)
        feed(line: .timerFired)
        feed(.timerFired)
    }

    private mutating func runFrame(_ bytes: [UInt8], outbound: Int) {
        guard isAttached else { return }
        now = now.advanced(by: .milliseconds(20))
        while clears > 0 {
            clears -= 1
            let discarded = marks
            marks = []
            for mark in discarded { feed(line: .playback(.discarded(mark: mark))) }
            feed(line: .playback(.cleared(played: 0)))
        }
        room = 32_768
        while !marks.isEmpty {
            let mark = marks.removeFirst()
            feed(line: .playback(.played(mark: mark)))
        }
        if hasEnd {
            hasEnd = false
            feed(line: .playback(.ended))
        }
        let sample = line?.callerFormat.sampleBytes ?? 1
        feed(
            line: .frame(
                .init(
                    sound: Array(bytes.prefix(bytes.count / sample * sample)), room: room, missedAt48kHz: missed,
                    outboundBytes: outbound)))
        pass(.zero)
    }

    // MARK: - What the two ask for

    private mutating func feed(_ input: BotCourse.Input) {
        var outbox: [BotCourse.Output] = []
        course.handle(input, at: now, into: &outbox)
        for output in outbox {
            require(!isDecided, "after its end nothing comes out of a course")
            carryOut(output)
        }
    }

    private mutating func carryOut(_ output: BotCourse.Output) {
        switch output {
        case .ask: break
        case .open: begin(BotLine(wire))
        case .finishStream: feed(line: .finish)
        case .abandon: line = nil
        case .stopFallback: abandonPort()
        case .accept:
            require(!isAccepted, "a call is accepted once")
            isAccepted = true
        case .reject:
            require(!isAccepted, "a call that stands is not rejected")
            isDecided = true
        case .fallBack:
            require(isAccepted, "a call that hears the fallback stands")
            begin(BotLine(saying: [UInt8](repeating: 1, count: 200_000), .linear(48_000)))
        case .transfer(let target):
            require(isAccepted, "a call that is transferred stands")
            require((1...WireLimits.nameBytes).contains(target.utf8.count), "whom a call is transferred to is bounded")
        case .hangUp: isDecided = true
        }
    }

    private mutating func abandonPort() {
        line = nil
        (marks, hasEnd, room) = ([], false, 32_768)
    }

    private mutating func begin(_ line: BotLine) {
        self.line = line
        (marks, clears, hasEnd, isPaused) = ([], 0, false, false)
        if isAttached { feed(line: .attached(room: room, missedAt48kHz: missed)) }
    }

    private mutating func feed(line input: BotLine.Input) {
        var outbox: [BotLine.Output] = []
        line?.handle(input, at: now, into: &outbox)
        for output in outbox { carryOut(output) }
    }

    private mutating func carryOut(_ output: BotLine.Output) {
        switch output {
        case .send(let message): require(!message.bytes.isEmpty, "no message is empty")
        case .write(let sound, let format):
            require(isAttached, "nothing is written before there is a port")
            require(!sound.isEmpty && sound.count.isMultiple(of: format.sampleBytes), "sound is of whole samples")
            room -= sound.count / format.sampleBytes * (48_000 / format.rateHz)
            require(room >= 0, "the port has room for what is written")
        case .mark(let name):
            marks.append(name)
            require(marks.count <= 200, "marks in the port are bounded")
        case .clear:
            clears += 1
            require(clears <= 64 + WireLimits.messages, "orders to clear are bounded")
        case .endPlayback: hasEnd = true
        case .pause:
            require(!isPaused, "reading is paused once")
            isPaused = true
        case .resume:
            require(isPaused, "reading is resumed once")
            isPaused = false
        case .press(let keys): require((1...WireLimits.keys).contains(keys.utf8.count), "keys are bounded")
        case .fault(let words, _): require(!words.isEmpty, "a fault has words")
        case .close, .behind: break
        case .over(let failure):
            line = nil
            feed(failure.map { .failed($0) } ?? .streamOver)
        }
    }
}
