internal import AudioPort
internal import BotWire
internal import Core

/// One connection with a bot, from its opening until all that the bot said has been heard: what it sends goes through a backlog
/// and the call's port to the caller, and marks, clears and faults come back.
///
/// The driver has the socket and the ``AudioPort``. It gives a ``Frame`` for each frame of the call.
struct BotLine: ProtocolCore, Sendable {
    enum Input: Equatable, Sendable {
        /// Messages can be sent.
        case opened(WireCall)
        case message(WireMessage)
        /// The call's media runs, and has room for `room` samples at 48 kHz. Before that, all that the bot sends waits here. What
        /// the call has lost until now (``Frame/missedAt48kHz``) was not this stream's, and neither was what was played, in samples
        /// of ``callerFormat``.
        case attached(room: Int, missedAt48kHz: Int = 0, played: Int = 0)
        /// A frame of the call has run. The first one says that the caller can hear.
        case frame(Frame)
        case playback(Playback)
        case digit(Character, heldMilliseconds: Int)
        /// The bot has closed the connection: on purpose, or with a failure.
        case closed(failure: String?)
        /// The bot is to be heard out, and then the stream ends; what it sends from now on does not count.
        case finish
        /// The stream ends now.
        case end(WireEnd)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// A frame of the call.
    struct Frame: Equatable, Sendable {
        /// What the caller has said since the last one, in the wire's format.
        var sound: [UInt8] = []
        /// Samples at 48 kHz that the port takes now.
        var room = 0
        /// Samples of the caller at 48 kHz that were lost on the way here, since the call's beginning.
        var missedAt48kHz = 0
        /// Bytes that wait for the bot to read them.
        var outboundBytes = 0
        /// The caller hears something else, and what the bot says waits.
        var isSuspended = false
    }

    /// What becomes of the bot's sound.
    enum Playback: Equatable, Sendable {
        case played(mark: String)
        case discarded(mark: String)
        /// - Parameter played: Samples of ``callerFormat`` that the call has been sent since its beginning.
        case cleared(played: Int = 0)
        /// The caller has interrupted the bot: what it said is being cleared in the port.
        case interrupted
        case ended
    }

    enum Output: Equatable, Sendable {
        case send(WireMessage)
        /// Give the port this; it has the room.
        case write([UInt8], WireFormat)
        /// Set a mark behind what was written.
        case mark(String)
        /// Discard what was written.
        case clear
        /// Report when all that was written is played; nothing more will be.
        case endPlayback
        /// Read no more of the bot until ``resume``.
        case pause
        case resume
        /// Close the connection, once what was to be sent is sent.
        case close
        case press(String)
        /// The bot sent what could not be followed, and how many such messages were left out before: for the log.
        case fault(String, leftOut: Int)
        /// The bot reads too slowly, and loses what the caller says; reported once.
        case behind
        /// All was heard, and the line has ended; with a reason if it failed.
        case over(failure: String?)
    }

    /// Marks that wait in the port; the tracker there takes 256.
    private static let portMarks = 200
    /// Clears that may wait for the media worker before no more is read.
    private static let mostClears = 64
    /// The last packets are still on their way, or in the peer's jitter buffer.
    static let lastWord = Duration.milliseconds(250)
    /// How much longer than it should take the last sound may take, before the line ends all the same.
    static let drainMargin = Duration.seconds(5)
    /// How long a bot that has closed waits for the caller to hear. A call that never gets so far ends before.
    static let hearingLimit = Duration.seconds(60)
    /// What the port holds at most.
    private static let portDuration = Duration.milliseconds(683)

    private enum Phase: Sendable {
        case opening
        case open
        /// Until all that the bot has said is played.
        case draining(failure: String?, hasAsked: Bool, until: Instant)
        case lingering(failure: String?, until: Instant)
        case over
    }

    /// An order to clear that the media worker has not carried out.
    private struct Clear: Sendable {
        /// Marks that never got to the port.
        var marks: [String]
        var answers = 1
    }

    private var phase = Phase.opening
    private var wire: any VoiceWire
    private var backlog = BotBacklog()
    private var clears: [Clear] = []
    /// What the bot says on when it was interrupted.
    private var interrupted = InterruptedSound()
    /// Nothing was written behind the newest clear.
    private var isClear = false
    /// Marks in the port.
    private var marks = 0
    private var isAttached = false
    /// A frame has run.
    private var canHear = false
    private var room = 0
    private var isPaused = false
    private var isBehind = false
    /// Samples of the caller at 48 kHz that the bot did not get: those lost before the port, and those of which it knows.
    private var missed = 0
    private var missedTold = 0
    /// Samples at 48 kHz that the call had lost before the stream was opened.
    private var missedBefore = 0
    /// Samples that the call had been sent before this stream.
    private var playedBefore = 0
    private var faults = LogLimit(burst: 5, perSecond: 0.2)
    /// Messages that press keys: each costs the media worker an order.
    private var presses = LogLimit(burst: 32, perSecond: 10)

    init(_ wire: any VoiceWire) { self.wire = wire }

    /// A line without a bot, which plays this sound and ends.
    init(saying sound: [UInt8], _ format: WireFormat) {
        wire = TwilioWire()
        backlog.append(sound, format)
        phase = .draining(failure: nil, hasAsked: false, until: Instant(nanoseconds: .max))
    }

    /// The format of ``Frame/sound``.
    var callerFormat: WireFormat { wire.callerFormat }
    var counts: WireCounts { wire.counts }
    /// Whether the bot takes part in the call.
    var hasBegun: Bool {
        guard case .open = phase else { return false }
        return wire.isReady
    }
    /// How long what waits here takes to be played.
    var waiting: Duration { backlog.duration }

    var nextDeadline: Instant? {
        switch phase {
        case .opening, .open, .over: nil
        case .draining(_, _, let until), .lingering(_, let until): until
        }
    }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        if case .over = phase { return }
        switch input {
        case .opened(let call):
            guard case .opening = phase else { return }
            phase = .open
            give(.connected(call), at: now, into: &outbox)
        case .message(let message):
            guard case .open = phase else { return }
            give(.message(message), at: now, into: &outbox)
        case .attached(let room, let missed, let played):
            isAttached = true
            self.room = room
            missedBefore = missed
            playedBefore = played
        case .frame(let frame): take(frame, at: now, into: &outbox)
        case .playback(let playback): take(playback, at: now, into: &outbox)
        case .digit(let key, let milliseconds):
            give(.digit(key, heldMilliseconds: milliseconds), at: now, into: &outbox)
        case .closed(let failure) where hasBegun || !isOpen: drain(failure, at: now)
        case .closed(let failure):
            finish(failure ?? "the bot has closed the connection before it took part in the call", into: &outbox)
        case .finish: drain(nil, at: now)
        case .end(let end):
            give(.ended(end), at: now, into: &outbox)
            phase = .over
            return
        case .timerFired: timeOut(at: now, into: &outbox)
        }
        pump(into: &outbox)
        regulate(into: &outbox)
    }

    // MARK: - The bot's messages

    private mutating func give(_ input: WireInput, at now: Instant, into outbox: inout [Output]) {
        var asked: [WireOutput] = []
        wire.handle(input, at: now, into: &asked)
        for output in asked { carryOut(output, at: now, into: &outbox) }
    }

    private mutating func carryOut(_ output: WireOutput, at now: Instant, into outbox: inout [Output]) {
        switch output {
        case .send(let message): outbox.append(.send(message))
        case .play(let sound, let format): play(sound, format, at: now)
        case .setMark(let name): setMark(name, at: now, into: &outbox)
        case .clear:
            interrupted.end()
            clear(at: now, into: &outbox)
        case .press(let keys):
            if presses.admit(at: now) != nil {
                outbox.append(.press(keys))
            } else if let leftOut = faults.admit(at: now) {
                outbox.append(.fault("more than ten messages a second press keys", leftOut: leftOut))
            }
        case .hangUp(let drains):
            if !drains { clear(at: now, into: &outbox) }
            drain(nil, at: now)
        case .fault(let fault):
            if let leftOut = faults.admit(at: now) { outbox.append(.fault(fault.description, leftOut: leftOut)) }
        case .failed(let fault):
            let isBegun = wire.isReady
            outbox.append(.close)
            if isBegun { drain(fault.description, at: now) } else { finish(fault.description, into: &outbox) }
        case .close: outbox.append(.close)
        }
    }

    private mutating func play(_ sound: [UInt8], _ format: WireFormat, at now: Instant) {
        guard interrupted.isStale, let rate = PortRate(rawValue: format.rateHz) else {
            return backlog.append(sound, format)
        }
        let samples = PortFormat(rate: rate, encoding: PortFormat.Encoding(format.encoding)).samples(of: sound)
        let stale = interrupted.discards(samples, rate: rate, at: now)
        if stale < samples.count { backlog.append(Array(sound.dropFirst(stale * format.sampleBytes)), format) }
    }

    /// A mark behind discarded sound is discarded with it.
    private mutating func setMark(_ name: String, at now: Instant, into outbox: inout [Output]) {
        interrupted.pass(at: now)
        if !interrupted.isStale {
            backlog.append(mark: name)
        } else if clears.isEmpty {
            give(.markDiscarded(name), at: now, into: &outbox)
        } else {
            clears[clears.count - 1].marks.append(name)
        }
    }

    private mutating func clear(at now: Instant, into outbox: inout [Output]) {
        let discarded = backlog.removeAll()
        if isClear, let newest = clears.last, newest.answers < Self.mostClears {
            clears[clears.count - 1].marks += discarded
            clears[clears.count - 1].answers += 1
            return
        }
        clears.append(Clear(marks: discarded))
        isClear = true
        if isAttached { outbox.append(.clear) } else { noteCleared(played: 0, at: now, into: &outbox) }
    }

    private mutating func noteCleared(played: Int, at now: Instant, into outbox: inout [Output]) {
        guard !clears.isEmpty else { return }
        let clear = clears.removeFirst()
        give(.played(samples: max(0, played - playedBefore)), at: now, into: &outbox)
        for mark in clear.marks { give(.markDiscarded(mark), at: now, into: &outbox) }
        for _ in 0..<clear.answers { give(.cleared, at: now, into: &outbox) }
    }

    // MARK: - The call's sound

    private mutating func take(_ frame: Frame, at now: Instant, into outbox: inout [Output]) {
        room = frame.room
        if !canHear || frame.isSuspended {
            canHear = true
            // What waited for the caller is heard from now on.
            if case .draining(let failure, let hasAsked, _) = phase {
                phase = .draining(failure: failure, hasAsked: hasAsked, until: now.advanced(by: drainTime))
            }
        }
        if case .opening = phase { missedBefore = frame.missedAt48kHz }
        guard case .open = phase else { return }
        let rate = wire.callerFormat.rateHz
        let samples = frame.sound.count / wire.callerFormat.sampleBytes
        var isLate = frame.outboundBytes > WireLimits.outboundBytes
        if isLate { missed += samples * (48_000 / rate) }
        let lost = (missed + frame.missedAt48kHz - missedBefore) * rate / 48_000
        if lost > missedTold {
            give(.missed(samples: lost - missedTold), at: now, into: &outbox)
            missedTold = lost
        }
        if isLate, !isBehind { outbox.append(.behind) }
        isBehind = isBehind || isLate
        isLate = isLate || frame.sound.isEmpty
        if !isLate { give(.sound(frame.sound), at: now, into: &outbox) }
    }

    private mutating func take(_ playback: Playback, at now: Instant, into outbox: inout [Output]) {
        switch playback {
        case .played(let mark):
            marks -= 1
            give(.markPlayed(mark), at: now, into: &outbox)
        case .discarded(let mark):
            marks -= 1
            give(.markDiscarded(mark), at: now, into: &outbox)
        case .cleared(let played): noteCleared(played: played, at: now, into: &outbox)
        case .interrupted:
            interrupted.begin(at: now)
            clears.append(Clear(marks: backlog.removeAll()))
            isClear = true
        case .ended:
            guard case .draining(let failure, hasAsked: true, _) = phase else { return }
            phase = .lingering(failure: failure, until: now.advanced(by: Self.lastWord))
        }
    }

    /// Moves what waits to the port, as far as there is room.
    private mutating func pump(into outbox: inout [Output]) {
        guard isAttached else { return }
        while let next = backlog.next {
            switch next {
            case .mark(let name):
                guard marks < Self.portMarks else { return }
                marks += 1
                backlog.takeMark()
                outbox.append(.mark(name))
            case .sound(let format):
                let sound = backlog.takeSound(samples: room * format.rateHz / 48_000)
                guard !sound.isEmpty else { return }
                room -= sound.count / format.sampleBytes * (48_000 / format.rateHz)
                outbox.append(.write(sound, format))
            }
            isClear = false
        }
        guard case .draining(let failure, hasAsked: false, let until) = phase else { return }
        phase = .draining(failure: failure, hasAsked: true, until: until)
        outbox.append(.endPlayback)
    }

    /// Reads no more while too much waits.
    private mutating func regulate(into outbox: inout [Output]) {
        let limit = isPaused ? wire.backlogBytes / 2 : wire.backlogBytes
        let isFull = backlog.cost >= limit || clears.count >= Self.mostClears
        guard isFull != isPaused else { return }
        isPaused = isFull
        outbox.append(isFull ? .pause : .resume)
    }

    // MARK: - The end

    private var isOpen: Bool {
        guard case .open = phase else { return false }
        return true
    }

    /// The bot has not taken part, so there is nothing to be heard.
    private mutating func finish(_ failure: String, into outbox: inout [Output]) {
        phase = .over
        outbox.append(.over(failure: failure))
    }

    private mutating func drain(_ failure: String?, at now: Instant) {
        switch phase {
        case .opening, .open:
            let longest = drainTime + (canHear ? .zero : Self.hearingLimit)
            phase = .draining(failure: failure, hasAsked: false, until: now.advanced(by: longest))
        case .draining, .lingering, .over: break
        }
    }

    /// The longest that the sound so far may take.
    private var drainTime: Duration { backlog.duration + Self.portDuration + Self.drainMargin }

    private mutating func timeOut(at now: Instant, into outbox: inout [Output]) {
        guard let deadline = nextDeadline, now >= deadline else { return }
        switch phase {
        case .opening, .open, .over: return
        case .draining(let failure, _, _), .lingering(let failure, _):
            give(.ended(.detached), at: now, into: &outbox)
            phase = .over
            outbox.append(.over(failure: failure))
        }
    }
}

extension PortFormat.Encoding {
    init(_ encoding: WireFormat.Encoding) {
        switch encoding {
        case .mulaw: self = .muLaw
        case .alaw: self = .aLaw
        case .linear: self = .linear
        }
    }
}
