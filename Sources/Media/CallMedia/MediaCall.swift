// CallMedia: one call's media, from datagrams to samples and back, without sockets, threads or clocks.

internal import AudioKit
package import Core
internal import Playout
internal import RTP
package import Realtime

/// One call on its worker: network half, playout, encoder, behaviour and pacer. Made and freed by the control side;
/// only the worker uses it in between, always at the same address.
@safe
package struct MediaCall: ~Copyable {
    /// The call's name.
    package let id: MediaCallID
    var peer: PeerSession
    var playout: PlayoutBuffer
    var encoder: SoundEncoder
    var audio: CallAudioEndpoint
    /// Records the inputs of the playout, if the call is captured.
    var capture: CaptureWriter?
    /// The card mixer's statistics of the call when it left.
    package var sound: SoundReport?
    var frameSamples: Int
    var sendPayloadType: UInt8
    private(set) var periodNanoseconds: Int64
    var pace: Pace
    private var framePlace = LatePacketWait()
    /// How long the call waits for the peer's first packet once there are a path and keys.
    private var connectedWaitNanoseconds: Int64 = 0
    /// Ticks of RTP timestamps in a frame: at 48 kHz for Opus (RFC 7587 §4.1), at 8 kHz for G.711.
    var frameTicks: Int
    /// Media time of the next frame, in ticks.
    var timestamp: UInt32
    /// The next packet begins a talk spurt (RFC 3551 §4.1).
    var marker = true
    var counters = CallCounters()
    var digits: DigitExchange
    var control: RateController
    var leastExpectedLossPercent: Int
    var redundancy = RedundancyWriter(depth: 0)
    /// Frames for which datagrams are still handled as they come, since packets were lost.
    var repairFrames = 0
    /// When packets that are missing are to be asked for, if that is before the next frame.
    var requestsDueAt: Instant?
    /// Whether our media, and the peer's, is wanted.
    private(set) var (sends, receives) = (true, true)
    /// Formats that are sent in once the key that is under way has been sent.
    var waitingChange: UnsafeMutablePointer<MediaCallChange>?
    /// The call plays its file and keeps its recording.
    var hasBegun = false
    /// What goes to an address from which nothing has come.
    var soundLimit: SoundLimit
    /// The call is unanswered: the peer is heard, and receives silence.
    private(set) var isEarly: Bool
    /// The call is to end, and the worker waits for room in the ring to report that it has.
    package var isLeaving = false

    enum Pace {
        /// Waits for the peer's first packet, or for this time.
        case waiting(until: Instant)
        /// Waits for a path and keys.
        case connecting
        case running(nextFrame: Instant)
    }

    init(
        id: MediaCallID, peer: consuming PeerSession, playout: consuming PlayoutBuffer,
        encoder: consuming SoundEncoder, audio: consuming CallAudioEndpoint, capture: consuming CaptureWriter?,
        plan: MediaCallPlan,
        firstTimestamp: UInt32,
        now: Instant
    ) {
        self.id = id
        self.peer = peer
        self.playout = playout
        self.encoder = encoder
        self.audio = audio
        self.capture = capture
        digits = DigitExchange(
            clockRate: plan.peer.telephoneEvents.first?.clockRate,
            frameMilliseconds: plan.encoder.frameDuration.rawValue)
        sendPayloadType = plan.peer.sendPayloadType
        frameSamples = plan.encoder.frameDuration.samples
        frameTicks = frameSamples / plan.codec.samplesPerTick
        periodNanoseconds = Int64(frameSamples) * 1_000_000_000 / 48_000
        leastExpectedLossPercent = plan.encoder.expectedLossPercent
        control = RateController(bitrateBps: plan.encoder.bitrateBps, packetNanoseconds: periodNanoseconds)
        timestamp = firstTimestamp
        isEarly = plan.isEarly
        soundLimit = SoundLimit(plan.soundCondition)
        switch plan.start {
        case .atOnce: pace = .running(nextFrame: now)
        case .withFirstPacket(let limit): pace = .waiting(until: now.advanced(by: limit))
        case .whenConnected: pace = .connecting
        }
    }

    /// Whether the call's microphone and loudspeaker are those of the sound card.
    package var usesCard: Bool {
        @_noAllocation @_noLocks get { audio.usesCard }
    }

    /// When the call must next be run.
    package var nextDeadline: Instant {
        @_noAllocation @_noLocks get {
            switch pace {
            case .waiting(let limit): limit
            case .connecting: Instant(nanoseconds: .max)
            case .running(let next): next
            }
        }
    }

    /// The grid that the call's frames are due on.
    package var grid: Pacer.Grid {
        @_noAllocation @_noLocks get { Pacer.Grid(periodNanoseconds: periodNanoseconds) }
    }

    /// Whether datagrams should be handled as they come rather than with the next frame: until media flows both ways, for
    /// some seconds at most, and while packets are lost and can be sent again in time.
    package var isSettling: Bool {
        @_noAllocation @_noLocks get { repairFrames > 0 || !peer.isFlowing && hasJustBegun }
    }

    /// A peer that sends nothing for longer than this need not be waited for at every moment.
    private static var settlingNanoseconds: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }

    private var hasJustBegun: Bool {
        @_noAllocation @_noLocks get { Int64(counters.framesRun) &* periodNanoseconds < Self.settlingNanoseconds }
    }

    /// Takes one datagram of the peer: RTP, or RTCP (control).
    ///
    /// - Returns: Why it is not taken for the peer's; then it is not counted yet, and may be half decrypted.
    @_noAllocation @_noLocks
    package mutating func receive(
        _ datagram: inout MutableRawSpan, isControl: Bool, from origin: DatagramPath, arrival: Instant
    ) -> PeerSession.Refusal? {
        switch peer.receive(&datagram, isControl: isControl, from: origin, at: arrival) {
        case .media(let packet): if receives { insert(datagram, packet, into: &playout, &capture) }
        case .telephoneEvent(let packet, let clockRate): receiveEvent(datagram, packet, clockRate: clockRate)
        case .comfortNoise(let packet): if receives { insertNoise(datagram, packet, into: &playout, &capture) }
        case .redundantMedia(let packet): receiveRedundant(datagram, packet)
        case .control:
            control.heard(at: arrival)
            takeFeedback(at: arrival)
        case .dropped: return nil
        case .refused(let refusal): return refusal
        }
        soundLimit.received(from: origin.remote, soundGoesTo: peer.path?.datagrams.remote)
        control.heard(at: arrival)
        if case .waiting = pace { pace = .running(nextFrame: arrival) }
        return nil
    }

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
        startIfConnected(at: now)
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
        if pair.precedesPeer { connectedWaitNanoseconds = Self.peerKeysNanoseconds }
        peer.install(&pair, at: now)
        startIfConnected(at: now)
    }

    /// How long the peer's first packet is awaited after a handshake whose last flight was ours: as long as an answer waits with
    /// ``MediaCallPlan/Start/withFirstPacket(noLaterThan:)``.
    package static var peerKeysNanoseconds: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }

    @_noAllocation @_noLocks
    private mutating func startIfConnected(at now: Instant) {
        guard case .connecting = pace, peer.canSend else { return }
        pace =
            connectedWaitNanoseconds > 0
            ? .waiting(until: now.advanced(byNanoseconds: connectedWaitNanoseconds)) : .running(nextFrame: now)
    }

    /// Runs frames of another length from the next on.
    @_noAllocation @_noLocks
    mutating func setFrame(samples: Int, samplesPerTick: Int) {
        frameSamples = samples
        frameTicks = samples / samplesPerTick
        periodNanoseconds = Int64(samples) * 1_000_000_000 / 48_000
    }

    /// Makes the frames that are due at `now` runnable; a call that waited long enough for its peer starts.
    @_noAllocation @_noLocks
    package mutating func prepareFrames(at now: Instant) {
        switch pace {
        case .waiting(let limit):
            if limit.nanoseconds <= now.nanoseconds { pace = .running(nextFrame: now) }
        case .connecting: break
        case .running(let next):
            let behind = next.nanoseconds(to: now) / periodNanoseconds
            if behind > Pacer.catchUpFrames { skip(frames: behind, from: next) }
        }
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
        guard case .running(let next) = pace, next.nanoseconds <= now.nanoseconds else { return .nothing }
        if postpone(frameDue: next, at: now) { return .nothing }
        let back = noteRun(frameDue: next)
        exchangeFrame(due: next, at: now, scratch: &scratch, batch: &batch)
        if back > 0 { advancePulls(nanoseconds: back) }
        counters.framesRun += 1
        repairFrames = max(repairFrames &- 1, 0)
        pace = .running(nextFrame: next.advanced(byNanoseconds: periodNanoseconds &- back))
        return counters.framesRun == 1 ? .chooseSlot : .runAgain
    }

    /// Delays the frame that is due at `next`, and all after it, if that is better. With a card, frames follow the
    /// card's ticks.
    ///
    /// - Returns: Whether it is to come later.
    @_noAllocation @_noLocks
    private mutating func postpone(frameDue next: Instant, at now: Instant) -> Bool {
        guard !usesCard else { return false }
        let wait = framePlace.wait(for: playout, frameSamples, due: next, at: now)
        guard wait > 0 else { return false }
        advancePulls(nanoseconds: -wait)
        pace = .running(nextFrame: next.advanced(byNanoseconds: wait))
        return true
    }

    /// Records that the frame due at `due` runs, and passes the next one's wait to the jitter buffer.
    ///
    /// - Returns: By how many nanoseconds earlier the next is to come.
    @_noAllocation @_noLocks
    private mutating func noteRun(frameDue due: Instant) -> Int64 {
        guard !usesCard else { return 0 }
        let back = framePlace.noteRun(playout, frameSamples)
        playout.pullPatienceNanoseconds = framePlace.patience(with: playout, frameSamples, due: due)
        return back
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

    /// Puts the second frame, and with it all later ones, where the worker has chosen.
    @_noAllocation @_noLocks
    package mutating func place(nextFrame: Instant) { pace = .running(nextFrame: nextFrame) }

    /// Delays all frames from the next one on.
    @_noAllocation @_noLocks
    package mutating func shiftFrames(byNanoseconds shift: Int64) {
        guard case .running(let next) = pace else { return }
        pace = .running(nextFrame: next.advanced(byNanoseconds: shift))
    }

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

    /// Whether the behaviour's file has just been played to its end: true once.
    @_noAllocation @_noLocks
    package mutating func takePlaybackEnd() -> Bool { audio.takeEnd() }

    /// Changes the recording, or what is heard in place of the source.
    @_noAllocation @_noLocks
    package mutating func change(_ change: UnsafeMutablePointer<AudioChange>) {
        unsafe audio.change(&change.pointee)
    }

    /// The number of an announcement that has just been played to its end: once.
    @_noAllocation @_noLocks
    package mutating func takeAnnouncementEnd() -> UInt64? { audio.takeAnnouncementEnd() }

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

    /// Takes what has happened in the network half since this was last asked.
    @_noAllocation @_noLocks
    package mutating func takeNews() -> PeerSession.News { peer.takeNews() }

    /// Counts a datagram that no call has accepted.
    @_noAllocation @_noLocks
    package mutating func count(_ refusal: PeerSession.Refusal) { peer.count(refusal) }

    /// A datagram that was counted as early was taken since.
    @_noAllocation @_noLocks
    package mutating func discountEarly() { peer.discountEarly() }

    /// Takes what the rate controller has changed that the user is to know.
    @_noAllocation @_noLocks
    package mutating func takeSendingChange() -> SendingChange? { control.takeChange() }

    /// Whether nothing has come from the peer for a while: repeatedly true, but not for each frame.
    @_noAllocation @_noLocks
    package mutating func takeSilence(at now: Instant) -> Bool { control.takeSilence(at: now) }

    /// Lets the encoder spend this effort at most, 0…10.
    @_noAllocation @_noLocks
    package mutating func limit(complexity: Int) { encoder.limit(complexity: complexity) }

    /// What the encoder is set to; nil if its effort cannot be changed.
    package var complexity: Int? {
        @_noAllocation @_noLocks get { encoder.complexity }
    }

    /// What the call has seen so far.
    @_noAllocation @_noLocks
    package func report() -> MediaReport {
        MediaReport(
            peer: peer.statistics, newestArrival: control.heardAt, playout: playout.statistics, call: counters,
            audio: audio.counters, sound: sound,
            frameSamples: frameSamples, encoderDelaySamples: encoder.delaySamples,
            decoderDelaySamples: encoder.decoderDelaySamples)
    }

    /// The machine stalled, but the peer's clock continued, so our media time must continue too.
    @_noAllocation @_noLocks
    private mutating func skip(frames: Int64, from next: Instant) {
        pace = .running(nextFrame: next.advanced(byNanoseconds: frames * periodNanoseconds))
        timestamp &+= UInt32(truncatingIfNeeded: frames * Int64(frameTicks))
        counters.framesSkipped += Int(frames)
        marker = true
    }
}

// MARK: Where its packets come from

extension MediaCall {
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
}

// MARK: Making a call

extension MediaCall {
    static func makeDecoder(_ codec: SoundCodec) throws(OpusError) -> StreamDecoder {
        if let law = codec.law { return StreamDecoder(G711Decoder(law)) }
        return StreamDecoder(try OpusDecoder())
    }

    private static func makePlayout(_ plan: MediaCallPlan) throws(OpusError) -> PlayoutBuffer {
        PlayoutBuffer(configuration: plan.playout, stream: try makeDecoder(plan.codec))
    }

    /// Makes a call in a separate allocation, with all memory that it will ever need.
    package static func make(
        id: MediaCallID, plan: MediaCallPlan, rings: consuming CallRings, at now: Instant
    ) throws(MediaStartError) -> UnsafeMutablePointer<MediaCall> {
        do {
            let call = MediaCall(
                id: id, peer: try PeerSession(plan.peer, at: now),
                playout: try makePlayout(plan),
                encoder: try SoundEncoder(
                    plan.codec, plan.encoder, describesNoise: plan.peer.sendComfortNoisePayloadType != nil),
                audio: CallAudioEndpoint(
                    plan.audio, player: rings.player, recorder: rings.recorder, sentRecorder: rings.sentRecorder,
                    line: rings.line),
                capture: rings.capture,
                plan: plan,
                firstTimestamp: UInt32(truncatingIfNeeded: plan.peer.randomSeed >> 32), now: now)
            let memory = UnsafeMutablePointer<MediaCall>.allocate(capacity: 1)
            unsafe memory.initialize(to: call)
            return unsafe memory
        } catch {
            throw MediaStartError("the call's media cannot be set up: \(error)")
        }
    }
}

// What follows hands out views of datagrams and frames. Unoptimised code counts the end of such a view as a deallocation,
// though there is nothing to free, so they are not analysed; what they call is.

@_semantics("no_performance_analysis") @inline(__always)
private func insert(
    _ datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket, into playout: inout PlayoutBuffer,
    _ capture: inout CaptureWriter?
) {
    let header = packet.header
    let payload = datagram.bytes.extracting(header.payload)
    playout.insert(
        payload: payload, number: packet.number, timestamp: header.timestamp, marker: header.marker,
        ssrc: header.ssrc, format: packet.format, arrival: packet.arrival)
    capture?.note(.packet, payload, header, format: packet.format, arrival: packet.arrival)
}

@_semantics("no_performance_analysis") @inline(__always)
private func insertNoise(
    _ datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket, into playout: inout PlayoutBuffer,
    _ capture: inout CaptureWriter?
) {
    let header = packet.header
    let payload = datagram.bytes.extracting(header.payload)
    playout.insertNoise(
        payload: payload, number: packet.number, timestamp: header.timestamp, ssrc: header.ssrc,
        format: packet.format, arrival: packet.arrival)
    capture?.note(.noise, payload, header, format: packet.format, arrival: packet.arrival)
}
