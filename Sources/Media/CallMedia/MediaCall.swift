// CallMedia: one call's media, from datagrams to samples and back, without sockets, threads or clocks.

internal import AudioKit
internal import AudioPort
package import Core
internal import Playout
internal import RTP
package import Realtime

/// One call on its worker: the peer's datagrams become sound, and the behaviour's sound becomes datagrams, frame by frame.
///
/// Made and freed by the control side; only the worker uses it in between, always at the same address. Its parts decide: the network half
/// what a datagram is, the clock when a frame is due, the two sounds what is heard and sent, the control how much and how safely.
@safe
package struct MediaCall: ~Copyable {
    /// The call's name.
    package let id: MediaCallID
    private(set) var peer: PeerSession
    private var received: ReceivedSound
    private var sent: SentSound
    private var clock: FrameClock
    private var repairs = RepairWatch()
    /// What the call sends and records; the sound card's mixer gives and takes there.
    var audio: CallAudioEndpoint
    private(set) var control: RateController
    /// When the newest packet came from the peer, and the newest that may be a stranger's.
    private var (provenAt, guessedAt): (Instant?, Instant?) = (nil, nil)
    private var digits: DigitExchange
    private var counters = CallCounters()
    /// What goes to an address from which nothing has come.
    private var soundLimit: SoundLimit
    /// Whether our media, and the peer's, is wanted.
    private var (sends, receives) = (true, true)
    /// Formats that are sent in once the key that is under way has been sent.
    private var waitingChange: UnsafeMutablePointer<MediaCallChange>?
    /// The call plays its file and keeps its recording.
    private(set) var hasBegun = false
    /// The call is unanswered: the peer is heard, and receives silence.
    private var isEarly: Bool
    /// The card mixer's statistics of the call when it left.
    package var sound: SoundReport?
    /// The call is to end, and the worker waits for room in the ring to report that it has.
    package var isLeaving = false

    private init(
        id: MediaCallID, peer: consuming PeerSession, received: consuming ReceivedSound, sent: consuming SentSound,
        audio: consuming CallAudioEndpoint, plan: MediaCallPlan, now: Instant
    ) {
        self.id = id
        self.peer = peer
        self.received = received
        self.sent = sent
        self.audio = audio
        clock = FrameClock(plan.start, frameSamples: plan.encoder.frameDuration.samples, at: now)
        digits = DigitExchange(
            clockRate: plan.peer.telephoneEvents.first?.clockRate,
            frameMilliseconds: plan.encoder.frameDuration.rawValue)
        control = RateController(
            bitrateBps: plan.encoder.bitrateBps, packetNanoseconds: clock.periodNanoseconds)
        isEarly = plan.isEarly
        soundLimit = SoundLimit(plan.soundCondition)
    }

    /// Makes a call in a separate allocation, with all memory that it will ever need.
    package static func make(
        id: MediaCallID, plan: MediaCallPlan, rings: consuming CallRings, at now: Instant
    ) throws(MediaStartError) -> UnsafeMutablePointer<MediaCall> {
        do {
            let playout = PlayoutBuffer(configuration: plan.playout, stream: try plan.codec.makeDecoder())
            let encoder = try SoundEncoder(
                plan.codec, plan.encoder, describesNoise: plan.peer.sendComfortNoisePayloadType != nil)
            let call = MediaCall(
                id: id, peer: try PeerSession(plan.peer, at: now),
                received: ReceivedSound(playout, capture: rings.capture),
                sent: SentSound(
                    encoder, plan, firstTimestamp: UInt32(truncatingIfNeeded: plan.peer.randomSeed >> 32)),
                audio: CallAudioEndpoint(
                    plan.audio, player: rings.player, recorder: rings.recorder, sentRecorder: rings.sentRecorder,
                    line: rings.line),
                plan: plan, now: now)
            let memory = UnsafeMutablePointer<MediaCall>.allocate(capacity: 1)
            unsafe memory.initialize(to: call)
            return unsafe memory
        } catch {
            throw MediaStartError("the call's media cannot be set up: \(error)")
        }
    }

    // MARK: What is known of the call

    /// Whether the call's microphone and loudspeaker are those of the sound card.
    package var usesCard: Bool {
        @_noAllocation @_noLocks get { audio.usesCard }
    }

    /// The way of its media; nil while there is none.
    package var path: MediaPath? {
        @_noAllocation @_noLocks get { peer.path }
    }

    /// The peer's stream, once it is known.
    package var remoteSSRC: UInt32? {
        @_noAllocation @_noLocks get { peer.remoteSSRC }
    }

    /// The address that the peer's description names, of a call without ICE.
    package var describedAddress: SocketAddress? {
        @_noAllocation @_noLocks get { peer.describedAddress }
    }

    /// The call's own sockets, if it has any.
    package var sockets: CallSockets? {
        @_noAllocation @_noLocks get { peer.sockets }
    }

    /// Where the peer's RTCP comes from, if that is another address than its media's.
    package var separateControlAddress: SocketAddress? {
        @_noAllocation @_noLocks get { peer.separateControlAddress }
    }

    /// Media of the peer has come.
    package var hasReceivedMedia: Bool {
        @_noAllocation @_noLocks get { peer.hasReceivedMedia }
    }

    /// Packets are authenticated (SRTP).
    package var isProtected: Bool {
        @_noAllocation @_noLocks get { peer.isProtected }
    }

    /// What the encoder is set to; nil if its effort cannot be changed.
    package var complexity: Int? {
        @_noAllocation @_noLocks get { sent.complexity }
    }

    /// What the call has seen so far.
    @_noAllocation @_noLocks
    package func report() -> MediaReport {
        MediaReport(
            peer: peer.statistics, newestArrival: provenAt, newestGuess: guessedAt, playout: received.statistics,
            call: counters,
            audio: audio.counters, sound: sound, frameSamples: clock.frameSamples,
            encoderDelaySamples: sent.encoderDelaySamples, decoderDelaySamples: sent.decoderDelaySamples)
    }

    /// Takes what has happened in the network half since this was last asked.
    @_noAllocation @_noLocks
    package mutating func takeEvents() -> PeerSession.Events { peer.takeEvents() }

    /// Takes what the rate controller has changed that the user is to know.
    @_noAllocation @_noLocks
    package mutating func takeSendingChange() -> SendingChange? { control.takeChange() }

    /// Whether nothing has come from the peer for a while: repeatedly true, but not for each frame.
    @_noAllocation @_noLocks
    package mutating func takeSilence(at now: Instant) -> Bool { control.takeSilence(at: now) }

    /// Whether the behaviour's file has just been played to its end: true once.
    @_noAllocation @_noLocks
    package mutating func takePlaybackEnd() -> Bool { audio.takeEnd() }

    /// The number of an announcement that has just been played to its end: once.
    @_noAllocation @_noLocks
    package mutating func takeAnnouncementEnd() -> UInt64? { audio.takeAnnouncementEnd() }

    /// Whether the call hears the one that it is joined to, and that was not reported.
    package var hasBridgeOpened: Bool { @_noAllocation @_noLocks get { audio.hasBridgeOpened } }

    /// That was reported.
    @_noAllocation @_noLocks
    package mutating func noteBridgeOpeningTold() { audio.noteBridgeOpeningTold() }

    /// The next key of the peer that has not been reported.
    @_noAllocation @_noLocks
    package mutating func takeDigit() -> DigitExchange.Digit? {
        guard let digit = digits.takeHeard() else { return nil }
        counters.digitsReceived += 1
        return digit
    }

    // MARK: What the control side orders

    /// Sets the direction of media; our media time continues in any case.
    @_noAllocation @_noLocks
    package mutating func setDirection(sends: Bool, receives: Bool) {
        self.sends = sends
        self.receives = receives
        peer.setDirection(sends: sends, receives: receives)
    }

    /// Sends by this way from now on, or not at all.
    @_noAllocation @_noLocks
    package mutating func use(_ path: MediaPath?, roundTripNanoseconds: Int64?, at now: Instant) {
        peer.use(path, roundTripNanoseconds: roundTripNanoseconds)
        if peer.canSend { clock.connected(at: now) }
    }

    /// The peer has answered, so that the source of the sound begins.
    @_noAllocation @_noLocks
    package mutating func answered() { isEarly = false }

    /// Another one is at the other end: path, keys and the flow of media are those to that one.
    @_noAllocation @_noLocks
    package mutating func beginFlow() { peer.beginFlow() }

    /// Sends to where a later description of the peer wants media.
    @_noAllocation @_noLocks
    package mutating func redirect(to remote: SocketAddress, control: SocketAddress?, at now: Instant) {
        let former = peer.path?.datagrams.remote
        peer.redirect(to: remote, control: control, at: now)
        guard let former, let new = peer.path?.datagrams.remote, !new.hasSameHost(as: former) else { return }
        soundLimit.redirected()
    }

    /// The peer has shown by signaling that it is where our sound goes.
    @_noAllocation @_noLocks
    package mutating func liftSoundLimit() { soundLimit.lift() }

    /// The network has changed.
    @_noAllocation @_noLocks
    package mutating func releaseLocalAddress() { peer.releaseLocalAddress() }

    /// Uses these contexts from now on, and leaves the old ones in their place.
    @_noAllocation @_noLocks
    package mutating func install(_ pair: inout SRTPPair, at now: Instant) {
        if pair.precedesPeer { clock.awaitPeer(nanoseconds: Self.peerKeysNanoseconds) }
        peer.install(&pair, at: now)
        if peer.canSend { clock.connected(at: now) }
    }

    /// How long the peer's first packet is awaited after a handshake whose last flight was ours: as long as an answer waits with
    /// ``MediaCallPlan/Start/withFirstPacket(noLaterThan:)``.
    package static var peerKeysNanoseconds: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }

    /// Changes the recording, or what is heard in place of the source.
    @_noAllocation @_noLocks
    package mutating func change(_ change: UnsafeMutablePointer<AudioChange>) {
        unsafe audio.change(&change.pointee)
    }

    /// Sends a key in place of sound, after the waiting ones.
    @_noAllocation @_noLocks
    package mutating func press(_ code: UInt8) {
        if digits.press(code) { counters.digitsSent += 1 } else { counters.digitsDropped += 1 }
    }

    /// Lets the encoder spend this effort at most, 0…10.
    @_noAllocation @_noLocks
    package mutating func limit(complexity: Int) { sent.limit(complexity: complexity) }

    // MARK: Formats that change during a call (RFC 3264 §8.3.2)

    /// Accepts the peer's packets in the new formats in addition to the old ones from now on, and sends in the new
    /// formats from the next frame on, or after the current telephone key.
    ///
    /// - Returns: A change that is not needed any more, if there is one: this one, or one that was waiting.
    @_noAllocation @_noLocks
    package mutating func change(
        _ change: UnsafeMutablePointer<MediaCallChange>
    ) -> UnsafeMutablePointer<MediaCallChange>? {
        let number = unsafe received.change(
            to: &change.pointee.decoder, codecNumber: change.pointee.codecNumber)
        unsafe peer.expect(change.pointee.peer, decoder: number)
        guard let superseded = unsafe waitingChange else {
            unsafe waitingChange = change
            return unsafe takeUpChange()
        }
        unsafe change.pointee.takeEncoder(from: &superseded.pointee)
        unsafe waitingChange = change
        return unsafe superseded
    }

    /// Starts to send in the waiting formats, if there are any and no telephone key is being sent.
    ///
    /// - Returns: What is left of the change.
    @_noAllocation @_noLocks
    package mutating func takeUpChange() -> UnsafeMutablePointer<MediaCallChange>? {
        guard let change = unsafe waitingChange, !digits.isPressing else { return nil }
        unsafe waitingChange = nil
        unsafe send(by: &change.pointee)
        return unsafe change
    }

    /// Takes the formats that still wait, of a call that has ended.
    package mutating func takeWaitingChange() -> UnsafeMutablePointer<MediaCallChange>? {
        let change = unsafe waitingChange
        unsafe waitingChange = nil
        return unsafe change
    }

    @_noAllocation @_noLocks
    private mutating func send(by change: inout MediaCallChange) {
        peer.send(by: &change.peer)
        sent.change(by: &change)
        clock.setFrame(samples: change.settings.frameDuration.samples)
        control.change(bitrateBps: change.settings.bitrateBps, packetNanoseconds: clock.periodNanoseconds)
        sent.follow(control)
        digits.change(
            clockRate: change.eventClockRate, frameMilliseconds: change.settings.frameDuration.rawValue)
        repeatFrames(peer.takesRedundancy ? chooseCopies() : 0)
    }

    // MARK: Datagrams of the peer

    /// Whether datagrams should be handled as they come rather than with the next frame: until media flows both ways, for
    /// some seconds at most, and while packets are lost and can be sent again in time.
    package var isSettling: Bool {
        @_noAllocation @_noLocks get { repairs.isActive || !peer.isFlowing && hasJustBegun }
    }

    /// A peer that sends nothing for longer than this need not be waited for at every moment.
    private static var settlingNanoseconds: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }

    private var hasJustBegun: Bool {
        @_noAllocation @_noLocks get { runNanoseconds < Self.settlingNanoseconds }
    }

    /// For how long frames have run, without those that were skipped.
    private var runNanoseconds: Int64 {
        @_noAllocation @_noLocks get { Int64(counters.framesRun) &* clock.periodNanoseconds }
    }

    /// Takes one datagram of the peer: RTP, or RTCP (control).
    ///
    /// - Returns: Why it is not taken for the peer's; then it is not counted yet, and may be half decrypted.
    @_noAllocation @_noLocks
    package mutating func receive(
        _ datagram: inout MutableRawSpan, isControl: Bool, from origin: DatagramPath, arrival: Instant
    ) -> PeerSession.Refusal? {
        switch peer.receive(&datagram, isControl: isControl, from: origin, at: arrival) {
        case .media(let packet): if receives { received.insert(datagram, packet) }
        case .telephoneEvent(let packet, let clockRate): receiveEvent(datagram, packet, clockRate: clockRate)
        case .comfortNoise(let packet): if receives { received.insertNoise(datagram, packet) }
        case .redundantMedia(let packet):
            if receives, !received.insertBlocks(of: datagram, packet, peer.received) { counters.payloadsMalformed += 1 }
        case .control:
            heard(origin.remote, at: arrival)
            takeFeedback(at: arrival)
        case .dropped: return nil
        case .refused(let refusal): return refusal
        }
        soundLimit.received(from: origin.remote, soundGoesTo: peer.path?.datagrams.remote)
        heard(origin.remote, at: arrival)
        clock.peerHeard(at: arrival)
        return nil
    }

    @_noAllocation @_noLocks
    private mutating func heard(_ source: SocketAddress, at arrival: Instant) {
        control.heard(at: arrival)
        // A stranger must not keep a call whose peer has vanished: the peer is asked by signaling whether it is there.
        if peer.isGuess(source) { guessedAt = arrival } else { provenAt = arrival }
    }

    @_noAllocation @_noLocks
    private mutating func receiveEvent(
        _ datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket, clockRate: Int
    ) {
        let header = packet.header
        received.passOver(packet)
        guard receives, let payload = eventPayload(datagram, header) else { return }
        digits.receive(
            payload, number: packet.number, timestamp: header.timestamp, ssrc: header.ssrc, clockRate: clockRate,
            at: packet.arrival)
    }

    /// Counts a datagram that no call has accepted.
    @_noAllocation @_noLocks
    package mutating func count(_ refusal: PeerSession.Refusal) { peer.count(refusal) }

    /// A datagram that was counted as early was taken since.
    @_noAllocation @_noLocks
    package mutating func discountEarly() { peer.discountEarly() }

    // MARK: Frames

    /// When the call must next be run.
    package var nextDeadline: Instant {
        @_noAllocation @_noLocks get { clock.nextDeadline }
    }

    /// When the worker must next handle the call: for its next frame, or earlier to request missing packets.
    package var nextWakeup: Instant {
        @_noAllocation @_noLocks get {
            let frame = nextDeadline
            guard let due = repairs.requestsDueAt, due.nanoseconds < frame.nanoseconds else { return frame }
            return due
        }
    }

    /// The grid that the call's frames are due on.
    package var grid: Pacer.Grid {
        @_noAllocation @_noLocks get { Pacer.Grid(periodNanoseconds: clock.periodNanoseconds) }
    }

    /// Puts the second frame, and with it all later ones, where the worker has chosen.
    @_noAllocation @_noLocks
    package mutating func place(nextFrame: Instant) { clock.place(nextFrame: nextFrame) }

    /// Delays all frames from the next one on.
    @_noAllocation @_noLocks
    package mutating func shiftFrames(byNanoseconds shift: Int64) { clock.shift(byNanoseconds: shift) }

    /// Makes the frames that are due at `now` runnable; a call that waited long enough for its peer starts.
    @_noAllocation @_noLocks
    package mutating func prepareFrames(at now: Instant) {
        let skipped = clock.catchUp(at: now)
        guard skipped > 0 else { return }
        // The machine stalled, but the peer's clock continued, so our media time must continue too.
        sent.skip(frames: skipped)
        counters.framesSkipped += Int(skipped)
    }

    /// What follows a call's frame.
    package enum AfterFrame: BitwiseCopyable {
        /// No frame is due.
        case nothing
        /// Another may be due already.
        case runAgain
        /// The call's first frame has been run: the worker puts the next on its grid.
        case chooseSlot
    }

    /// Runs one frame if one is due: plays the peer's sound, and puts our packet into the batch, which has room.
    ///
    /// - Returns: What the worker has to do next.
    @_noAllocation @_noLocks
    package mutating func runFrame(at now: Instant, scratch: inout FrameScratch, batch: inout DatagramBatch)
        -> AfterFrame
    {
        digits.expire(at: now)
        control.check(at: now)
        // A stranger who was heard vouches for no other address.
        if peer.endGuess(at: now) { soundLimit.redirected() }
        guard let due = clock.frameDue(at: now) else { return .nothing }
        // With a card, frames follow the card's ticks.
        let wait = usesCard ? 0 : received.postponement(ofFrame: clock.frameSamples, due: due, at: now)
        if wait > 0 {
            clock.shift(byNanoseconds: wait)
            return .nothing
        }
        let back = usesCard ? 0 : received.noteFrame(clock.frameSamples, due: due)
        exchangeFrame(due: due, at: now, scratch: &scratch, batch: &batch)
        if back > 0 { received.advancePulls(nanoseconds: back) }
        counters.framesRun += 1
        repairs.noteFrame()
        clock.place(nextFrame: due.advanced(byNanoseconds: clock.periodNanoseconds &- back))
        return counters.framesRun == 1 ? .chooseSlot : .runAgain
    }

    @_noAllocation @_noLocks
    private mutating func exchangeFrame(
        due: Instant, at now: Instant, scratch: inout FrameScratch, batch: inout DatagramBatch
    ) {
        let samples = clock.frameSamples
        counters.captureRecordsLost = received.captureRecordsLost()
        // The playout's clock is the grid of the frames, not the moments at which a busy machine gets to them. On the sound card,
        // playback has its own ticks.
        let isMadeUp = usesCard || !received.hear(into: &scratch.heard, samples, due: due)
        begin()
        audio.tell(sends && !control.isStopped ? sent.sharing : .alone)
        if usesCard {
            takeFromCard(&audio, into: &scratch.sending, samples, isRecorded: hasBegun, isEarly: isEarly)
        } else if hasBegun {
            exchange(with: &audio, scratch.heard, &scratch.sending, samples, isMadeUp: isMadeUp, isEarly: isEarly)
        } else {
            fillBeforehand(&audio, &scratch.sending, samples, isEarly: isEarly)
        }
        sendFrame(scratch.sending, &scratch.encoded, at: now, batch: &batch)
        sent.endFrame()
    }

    /// Begins to play and to record, both in the same frame, once the peer is known to be ready: nothing of a file is lost
    /// before the peer can hear it.
    ///
    /// A packet from an inviter shows that it has the answer, and so the address and key of our packets. A packet from
    /// an invitee shows that our packets reach it.
    @_noAllocation @_noLocks
    private mutating func begin() {
        guard !hasBegun else { return }
        let hasWaited = peer.packetsSent > 0 && runNanoseconds >= Self.patienceNanoseconds
        hasBegun = peer.hasHeardPeer || hasWaited && !soundLimit.applies
    }

    /// The longest that a played file waits for a packet of the peer once frames run. An answer has crossed the signaling
    /// by then, and a peer that sends nothing at first may well be listening.
    private static var patienceNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }

    /// Sends the frame, or the telephone event that replaces it.
    @_noAllocation @_noLocks
    private mutating func sendFrame(
        _ samples: borrowing SampleBuffer, _ frame: inout EncodedFrame, at now: Instant, batch: inout DatagramBatch
    ) {
        let shared = audio.takeSharedFrame()
        guard sends, peer.canSend, !control.isStopped, soundLimit.allows(at: now), let path = peer.path else {
            control.paused()
            return sent.interrupt()
        }
        var packet = batch.freePacket(by: path)
        let length: Int
        if let event = digits.next(at: sent.timestamp) {
            length = peer.writeTelephoneEvent(event, mediaTime: sent.timestamp, at: now, into: &packet)
            sent.noteEvent()
        } else {
            switch sent.write(
                samples, count: clock.frameSamples, shared: shared, soundRate: audio.soundRate, through: &frame,
                to: &peer,
                at: now, into: &packet)
            {
            case .packet(let bytes): length = bytes
            case .pause:
                counters.framesNotSent += 1
                return
            case .notEncoded:
                counters.encodeErrors += 1
                return
            case .notWritten: return
            }
        }
        batch.commitPacket(byteCount: length, by: path)
        soundLimit.sent(bytes: length, at: now)
    }

    // MARK: The sound card's ticks, which are the playback's

    /// Hears 10 ms for the sound card's loudspeaker, and its recording; nothing before the peer's first packet or the call's beginning.
    @_noAllocation @_noLocks
    mutating func hearTick(at due: Instant, through work: inout SampleBuffer) {
        guard clock.isRunning else { return }
        _ = received.hear(into: &work, CardPort.tickSamples, due: due)
        if peer.hasHeardPeer || hasBegun { bring(work, CardPort.tickSamples, to: &audio) }
    }

    /// By how many nanoseconds the ticks should come earlier, because packets wait.
    @_noAllocation @_noLocks
    func worthwhileAdvance(at due: Instant) -> Int64 {
        received.worthwhileAdvance(pullSamples: CardPort.tickSamples, due: due)
    }

    /// Advances the ticks from now on.
    @_noAllocation @_noLocks
    mutating func advanceTicks(nanoseconds: Int64) { received.advancePulls(nanoseconds: nanoseconds) }

    // MARK: RTCP

    /// Whether an RTCP report is due.
    @_noAllocation @_noLocks
    package func isControlDue(at now: Instant) -> Bool { peer.canSend && peer.isControlDue(at: now) }

    /// Appends an RTCP report to the batch, which has room.
    ///
    /// - Parameter wallNanoseconds: The time of day, in nanoseconds since 1970.
    @_noAllocation @_noLocks
    package mutating func sendControl(at now: Instant, wallNanoseconds: Int64, into batch: inout DatagramBatch) {
        guard let path = peer.controlPath else { return }
        var packet = batch.freePacket(by: path)
        let length = peer.writeControl(at: now, wallNanoseconds: wallNanoseconds, into: &packet)
        batch.commitPacket(byteCount: length, by: path)
    }

    /// Appends an RTCP packet with the arrival times of the peer's packets to the batch, which has room, if one is due.
    @_noAllocation @_noLocks
    package mutating func sendFeedbackIfDue(at now: Instant, into batch: inout DatagramBatch) {
        guard peer.canSend, peer.isFeedbackDue(at: now), let path = peer.controlPath else { return }
        var packet = batch.freePacket(by: path)
        let length = peer.writeFeedback(at: now, into: &packet)
        batch.commitPacket(byteCount: length, by: path)
    }

    /// Says goodbye to the peer (RTCP BYE) and ends the recording. The batch has room.
    ///
    /// - Parameter wallNanoseconds: The time of day, in nanoseconds since 1970.
    @_noAllocation @_noLocks
    package mutating func leave(at now: Instant, wallNanoseconds: Int64, batch: inout DatagramBatch) {
        audio.finish()
        guard peer.canSend, let path = peer.controlPath else { return }
        var packet = batch.freePacket(by: path)
        let length = peer.writeGoodbye(at: now, wallNanoseconds: wallNanoseconds, into: &packet)
        batch.commitPacket(byteCount: length, by: path)
    }

    /// Takes the peer's feedback on our stream.
    @_noAllocation @_noLocks
    private mutating func takeFeedback(at arrival: Instant) {
        var isChanged = false
        if let seen = peer.takeObservation(), control.feedback.observed(seen, at: arrival) { isChanged = true }
        let missing = peer.takeMissing()
        if missing > 0 { watchForRepairs() }
        if control.feedback.asked(missing: missing, packetsSent: peer.packetsSent, at: arrival) { isChanged = true }
        if let report = peer.takeReport() {
            let steers = control.reported(
                report, roundTripNanoseconds: peer.roundTripNanoseconds, packetsSent: peer.packetsSent, at: arrival)
            if steers { isChanged = true }
        }
        if isChanged { protect() }
    }

    /// Sends as the control says from the next frame on.
    @_noAllocation @_noLocks
    private mutating func protect() {
        sent.follow(control)
        if peer.takesRedundancy { repeatFrames(chooseCopies()) }
    }

    /// Repeats this many earlier frames in each packet.
    @_noAllocation @_noLocks
    mutating func repeatFrames(_ count: Int) {
        sent.repeatFrames(count)
        control.feedback.noteRedundancy(sent.repeatsFrames)
    }

    /// How many earlier frames each packet repeats. None while the peer can ask for what it misses and has it within
    /// 150 ms: copies take bits from the sound, and with both the jitter buffer changes its delay too often.
    @_noAllocation @_noLocks
    mutating func chooseCopies() -> Int {
        let roundTrip = peer.roundTripNanoseconds ?? .max
        return peer.resendsPackets && roundTrip <= 150_000_000 ? 0 : control.redundancyDepth
    }

    // MARK: Packets that are lost on the way, and sent again (RFC 4585 §6.2.1)

    @_noAllocation @_noLocks
    private mutating func watchForRepairs() {
        if peer.repairsLoss { repairs.begin(framePeriodNanoseconds: clock.periodNanoseconds) }
    }

    /// How long after we ask for a packet it comes; nil while that is not known, or if the peer does not answer.
    @_noAllocation @_noLocks
    mutating func repairNanoseconds(at now: Instant) -> Int64? { peer.repairNanoseconds(at: now) }

    /// Whether missing packets are to be asked for before the next frame.
    @_noAllocation @_noLocks
    package func areRequestsDue(at now: Instant) -> Bool { repairs.areRequestsDue(at: now) }

    /// Appends a request for packets of the peer that are missing, and that can still come in time, to the batch, which
    /// has room.
    @_noAllocation @_noLocks
    package mutating func sendRequestsIfDue(at now: Instant, into batch: inout DatagramBatch) {
        repairs.schedule(nil)
        guard peer.repairsLoss, receives, peer.canSend, let path = peer.controlPath else { return }
        received.setRepair(nanoseconds: repairNanoseconds(at: now))
        let nextPull = nextDeadline
        var number = Int64.min
        while let missing = received.nextMissing(
            from: number, nextPull: nextPull, frameSamples: clock.frameSamples, at: now)
        {
            number = missing.number + 1
            let left = now.nanoseconds(to: missing.dueAt)
            if peer.ask(for: missing.sequenceNumber, nanosecondsLeft: left, at: now) {
                received.noteRequest(for: missing)
                watchForRepairs()
            }
        }
        repairs.schedule(received.nextMissingAt)
        var packet = batch.freePacket(by: path)
        let length = peer.writeRequests(into: &packet)
        batch.commitPacket(byteCount: length, by: path)
    }

    /// Appends a packet that the peer has asked for to the batch, which has room.
    ///
    /// - Returns: Whether there was one.
    @_noAllocation @_noLocks
    package mutating func sendRepair(at now: Instant, into batch: inout DatagramBatch) -> Bool {
        guard peer.repairsLoss, sends, peer.canSend, !control.isStopped, let path = peer.path else { return false }
        var packet = batch.freePacket(by: path)
        let length = peer.writeRepair(at: now, into: &packet)
        return batch.commitPacket(byteCount: length, by: path)
    }
}

// What follows hands out views of datagrams and frames. Unoptimised code counts the end of such a view as a deallocation,
// though there is nothing to free, so they are not analysed; what they call is.

@_semantics("no_performance_analysis") @inline(__always)
private func eventPayload(_ datagram: borrowing MutableRawSpan, _ header: RTPHeader) -> TelephoneEventPayload? {
    TelephoneEventPayload(header.payload, of: datagram.bytes)
}

@_semantics("no_performance_analysis") @inline(__always)
private func bring(_ heard: borrowing SampleBuffer, _ count: Int, to audio: inout CallAudioEndpoint) {
    audio.bringToCard(heard.samples(count))
}

@_semantics("no_performance_analysis") @inline(__always)
private func takeFromCard(
    _ audio: inout CallAudioEndpoint, into sending: inout SampleBuffer, _ count: Int, isRecorded: Bool, isEarly: Bool
) {
    var samples = sending.mutableSamples(count)
    audio.takeFromCard(into: &samples, isRecorded: isRecorded, isEarly: isEarly)
}

@_semantics("no_performance_analysis") @inline(__always)
private func exchange(
    with audio: inout CallAudioEndpoint, _ heard: borrowing SampleBuffer, _ sending: inout SampleBuffer, _ count: Int,
    isMadeUp: Bool, isEarly: Bool
) {
    var samples = sending.mutableSamples(count)
    if isEarly {
        audio.listen(received: heard.samples(count), sending: &samples)
    } else {
        audio.exchange(received: heard.samples(count), isMadeUp: isMadeUp, sending: &samples)
    }
}

@_semantics("no_performance_analysis") @inline(__always)
private func fillBeforehand(
    _ audio: inout CallAudioEndpoint, _ frame: inout SampleBuffer, _ count: Int, isEarly: Bool
) {
    var samples = frame.mutableSamples(count)
    audio.fillBeforehand(&samples, isEarly: isEarly)
}
