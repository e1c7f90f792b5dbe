internal import AudioKit
internal import AudioPort
internal import Realtime

/// A behaviour's audio side on the media thread: takes each received frame and provides the frame to send.
struct CallAudioEndpoint: ~Copyable {
    private enum Source: BitwiseCopyable {
        case silence, echo, tone, file, card, program
    }

    private let source: Source
    /// Microphone and loudspeaker are those of the sound card.
    var usesCard: Bool {
        @_noAllocation @_noLocks get { if case .card = source { true } else { false } }
    }
    private var tone: ToneGenerator?
    private var player: AudioRing.Consumer?
    private var recorder: AudioRing.Producer?
    /// For what is sent, if that is recorded too.
    private var sentRecorder: AudioRing.Producer?
    private var recordsSent = false
    /// The program's line, if one takes part in the call. It is heard in place of the source.
    private var line: PortLine?
    private var hasLine = false
    /// The line of another call or a room, which is heard in place of the source and of a program.
    private var bridge: PortLine?
    private var bridging = Bridging.none
    /// The program's line is paused while the bridge is heard.
    private var bridgeSuspendsLine = false
    /// The bridge is heard although a file is being played.
    private var bridgeHidesAnnouncement = false
    /// The call hears the one that it is joined to, and that was not reported.
    private(set) var hasBridgeOpened = false
    /// Samples of the call's sound so far, for programs that join it.
    private var position = 0
    /// A file that is heard in place of the source, and of a program.
    private var announcement: AudioRing.Consumer?
    private var announcementNumber: UInt64 = 0
    private var announces = false
    private var announcementIsOver = false
    /// It is not heard while the bridge is.
    private var announcementYields = false
    /// Joins what is heard one after the other.
    private var edge = SoundEdge()
    /// The call's port at the sound card, if it has one.
    var port: CardPort?
    private(set) var counters = Counters()
    /// The file has been played to its end.
    private var isOver = false
    /// And that has been reported.
    private var reportedEnd = false

    private enum Bridging: BitwiseCopyable {
        case none
        /// The other call has no sound yet.
        case waiting
        case heard
    }

    private var isBridged: Bool {
        @_noAllocation @_noLocks get { if case .heard = bridging { true } else { false } }
    }
    private var isLineSuspended: Bool { @_noAllocation @_noLocks get { isBridged && bridgeSuspendsLine } }
    private var isAnnouncementHeard: Bool {
        @_noAllocation @_noLocks get { announces && !(isBridged && (bridgeHidesAnnouncement || announcementYields)) }
    }

    /// Samples that a ring could not give or take.
    struct Counters: BitwiseCopyable {
        /// Samples of silence sent because the player was late.
        var playUnderrun = 0
        /// Samples lost to the recording because the disk was slow.
        var recordOverrun = 0
        /// What was sent, and what was received and played.
        var sent = SoundTrace()
        var received = SoundTrace()
    }

    /// - Parameters:
    ///   - player: The reading half of the ring that a file's player fills; only for a file source.
    ///   - recorder: The writing half of the ring that a recording is taken from.
    ///   - line: The worker's side of a program's port; without one, a program is silent.
    init(
        _ behaviour: AudioBehaviour, player: consuming AudioRing.Consumer?, recorder: consuming AudioRing.Producer?,
        sentRecorder: consuming AudioRing.Producer? = nil, line: consuming PortLine? = nil
    ) {
        recordsSent = sentRecorder != nil
        hasLine = line != nil
        switch behaviour.source {
        case .silence: source = .silence
        case .echo: source = .echo
        case .tone(let frequency, let level):
            source = .tone
            tone = ToneGenerator(frequencyHz: frequency, levelDBFS: level)
        case .file: source = .file
        case .card:
            source = .card
            port = CardPort()
        case .program: source = .program
        }
        self.player = player
        self.recorder = recorder
        self.sentRecorder = sentRecorder
        self.line = line
    }

    /// Runs one frame. Both spans have the same length.
    ///
    /// - Parameter isMadeUp: None of what was received came from a packet of the peer. A call that is joined to this one does not take
    ///   that for the first sound.
    @_noAllocation @_noLocks
    mutating func exchange(received: Span<Int16>, isMadeUp: Bool = false, sending: inout MutableSpan<Int16>) {
        bridge?.note(isMadeUp: isMadeUp)
        if case .waiting = bridging, bridge?.hasSound(lookingInto: &sending) ?? true { openBridge() }
        if case .waiting = bridging { bridge?.offer(received: received) }
        let announced = isAnnouncementHeard
        if announced {
            announce(&sending)
            // What the program says waits.
            if !isLineSuspended { line?.hold(received: received, sending: sending) }
            if isBridged { bridge?.hold(received: received, sending: sending) }
        } else if isBridged {
            bridge?.exchange(received: received, sending: &sending)
            if !isLineSuspended { line?.hold(received: received, sending: sending) }
        } else if hasLine {
            line?.exchange(received: received, sending: &sending)
        } else {
            fill(&sending, received: received)
        }
        position &+= received.count
        if announced || !edge.isAtRest {
            line?.changeFrame()
            bridge?.changeFrame()
        }
        edge.join(&sending)
        if announced, !announces { edge.expectCut() }
        note(sending, in: &counters.sent)
        counters.received.note(received)
        record(received, sending)
    }

    /// The frame of the last ``exchange(received:isMadeUp:sending:)`` as a mixer has encoded it for several calls: once.
    @_noAllocation @_noLocks
    mutating func takeSharedFrame() -> SharedFrame? {
        let hearsBridge = isBridged
        return hearsBridge ? bridge?.takeSharedFrame() : line?.takeSharedFrame()
    }

    /// Notifies the mixer that the call hears, if it hears one, of how the call sends.
    @_noAllocation @_noLocks
    mutating func tell(_ sharing: FrameSharing) {
        let (hearsAnnouncement, hearsBridge) = (isAnnouncementHeard, isBridged)
        line?.note(hearsAnnouncement || hearsBridge ? .alone : sharing)
        bridge?.note(hearsAnnouncement || !hearsBridge ? .alone : sharing)
    }

    @_noAllocation @_noLocks
    private mutating func openBridge() {
        bridging = .heard
        hasBridgeOpened = true
        edge.expectCut()
    }

    /// Samples a second that hold all of what is sent now: those of the program's sound, or 48 kHz.
    var soundRate: Int {
        @_noAllocation @_noLocks mutating get {
            guard hasLine, !isBridged, !announces, let rate = line?.widestRate else { return 48_000 }
            return rate
        }
    }

    /// Runs one frame of an unanswered call: it is heard and recorded, and its source waits.
    @_noAllocation @_noLocks
    mutating func listen(received: Span<Int16>, sending: inout MutableSpan<Int16>) {
        Silence.fill(&sending)
        position &+= received.count
        record(received, sending)
    }

    @_noAllocation @_noLocks
    private mutating func fill(_ sending: inout MutableSpan<Int16>, received: Span<Int16>) {
        switch source {
        case .silence, .program: Silence.fill(&sending)
        case .echo:
            for index in 0..<sending.count { sending[index] = received[index] }
        case .tone: tone?.fill(&sending)
        case .file:
            let read = player?.read(into: &sending) ?? 0
            if read < sending.count {
                for index in read..<sending.count { sending[index] = 0 }
                isOver = player?.hasEnded() ?? true
                if !isOver { counters.playUnderrun += sending.count - read }
            }
        case .card: Silence.fill(&sending)  // See `takeFromCard` and `bringToCard`.
        }
    }

    /// Plays a frame of the announcement.
    @_noAllocation @_noLocks
    private mutating func announce(_ sending: inout MutableSpan<Int16>) {
        let read = announcement?.read(into: &sending) ?? 0
        guard read < sending.count else { return }
        for index in read..<sending.count { sending[index] = 0 }
        guard announcement?.hasEnded() ?? true else {
            counters.playUnderrun += sending.count - read
            return
        }
        announces = false
        announcementIsOver = true
    }

    /// Keeps a frame of both sides, or of neither, so that they stay aligned.
    @_noAllocation @_noLocks
    private mutating func record(_ received: Span<Int16>, _ sent: borrowing MutableSpan<Int16>) {
        guard recordsSent else { return recordReceived(received) }
        guard recorder?.hasSpace(for: received.count) ?? false, sentRecorder?.hasSpace(for: sent.count) ?? false else {
            counters.recordOverrun += received.count
            recorder?.noteRefused(received.count)
            return
        }
        _ = recorder?.write(received)
        _ = write(sent, to: &sentRecorder)
    }

    /// Keeps what was received, as far as there is space.
    @_noAllocation @_noLocks
    private mutating func recordReceived(_ received: Span<Int16>) {
        guard let taken = recorder?.write(received), taken < received.count else { return }
        counters.recordOverrun += received.count - taken
        recorder?.noteRefused(received.count - taken)
    }

    /// Provides a frame to send while the peer may not hear yet: sources without a beginning that could be lost, and
    /// silence for all others.
    @_noAllocation @_noLocks
    mutating func fillBeforehand(_ sending: inout MutableSpan<Int16>, isEarly: Bool = false) {
        switch source {
        case .tone where !isEarly: tone?.fill(&sending)
        case .tone: Silence.fill(&sending)
        case .silence, .echo, .file, .card, .program: Silence.fill(&sending)
        }
    }

    /// A call on the card: a frame from the microphone, or of the announcement.
    ///
    /// - Parameters:
    ///   - isRecorded: The peer has been heard, so that its channel of the recording has begun.
    ///   - isEarly: The call is unanswered, so the microphone is not sent.
    @_noAllocation @_noLocks
    mutating func takeFromCard(into sending: inout MutableSpan<Int16>, isRecorded: Bool = true, isEarly: Bool = false) {
        port?.take(into: &sending)
        if isEarly { Silence.fill(&sending) }
        let announced = announces
        if announced { announce(&sending) }
        edge.join(&sending)
        if announced, !announces { edge.expectCut() }
        note(sending, in: &counters.sent)
        guard recordsSent, isRecorded else { return }
        let refused = sending.count - write(sending, to: &sentRecorder)
        counters.recordOverrun += refused
        sentRecorder?.noteRefused(refused)
    }

    /// A call on the card: what it hears goes to the loudspeaker, and is recorded.
    @_noAllocation @_noLocks
    mutating func bringToCard(_ samples: Span<Int16>) {
        counters.received.note(samples)
        recordReceived(samples)
        port?.bring(samples)
    }

    /// Gives `body` a view of what a call on the card contributed to the mixer's last tick.
    ///
    /// Unoptimised code counts the end of such a view as a deallocation, so this is not analysed.
    @_semantics("no_performance_analysis") @inline(__always)
    func withContribution(_ body: (Span<Int16>) -> Void) {
        switch port {
        case .some(let port): body(port.contribution)
        case .none: break
        }
    }

    /// Exchanges what belongs to a part, and ends the former rings.
    @_noAllocation @_noLocks
    mutating func change(_ change: inout AudioChange) {
        switch change.part {
        case .announcement(let number):
            // One that has ended by itself may be taken away when the next has come already.
            guard change.installs || number == announcementNumber else { return }
            exchangeEnds(&announcement, &change.player)
            announcementNumber = number
            let wasHeard = isAnnouncementHeard
            announces = change.installs
            announcementIsOver = false
            bridgeHidesAnnouncement = false
            announcementYields = change.yieldsToBridge
            // One that is not heard begins and ends without a trace.
            if wasHeard || isAnnouncementHeard { edge.expectCut() }
        case .recording:
            recorder?.close()
            sentRecorder?.close()
            exchangeEnds(&recorder, &change.recorder)
            exchangeEnds(&sentRecorder, &change.sentRecorder)
            recordsSent = change.recordsSent
        case .line:
            line?.finish()
            exchangeEnds(&line, &change.line)
            line?.begin(at: position)
            hasLine = change.installs
            edge.expectCut()
        case .bridge:
            bridge?.finish()
            exchangeEnds(&bridge, &change.line)
            bridge?.begin(at: position)
            bridgeSuspendsLine = change.suspendsLine
            bridgeHidesAnnouncement = change.installs && change.outlivesAnnouncement
            // What was heard before another bridge comes back after this one, and not in between.
            if change.installs, change.waitsForSound, !isBridged {
                bridging = .waiting
            } else if change.installs {
                openBridge()
            } else {
                bridging = .none
                edge.expectCut()
            }
        }
    }

    /// The number of an announcement that has just been played to its end: once.
    @_noAllocation @_noLocks
    mutating func takeAnnouncementEnd() -> UInt64? {
        guard announcementIsOver else { return nil }
        announcementIsOver = false
        return announcementNumber
    }

    /// The beginning of what is heard of the other call was reported.
    @_noAllocation @_noLocks
    mutating func noteBridgeOpeningTold() { hasBridgeOpened = false }

    /// Whether the file has just been played to its end: true once.
    @_noAllocation @_noLocks
    mutating func takeEnd() -> Bool {
        guard isOver, !reportedEnd else { return false }
        reportedEnd = true
        return true
    }

    /// Ends the recording with the sound so far, and notifies the program that there is no more.
    @_noAllocation @_noLocks
    mutating func finish() {
        recorder?.close()
        sentRecorder?.close()
        line?.finish()
        bridge?.finish()
    }
}

// A view of samples, which unoptimised code counts as a deallocation.
@_semantics("no_performance_analysis") @inline(__always)
private func write(_ samples: borrowing MutableSpan<Int16>, to ring: inout AudioRing.Producer?) -> Int {
    ring?.write(samples.span) ?? 0
}

// A view of samples, which unoptimised code counts as a deallocation.
@_semantics("no_performance_analysis") @inline(__always)
private func note(_ samples: borrowing MutableSpan<Int16>, in trace: inout SoundTrace) { trace.note(samples.span) }

// Swaps in place, so that nothing is freed here.
@_semantics("no_performance_analysis") @inline(__always)
private func exchangeEnds<End: ~Copyable>(_ one: inout End?, _ other: inout End?) { swap(&one, &other) }
