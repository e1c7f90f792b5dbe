// Playout: from packets that come when they like to sound that flows. Jitter buffer, concealment, time-stretching.

public import AudioKit
public import Core

/// Plays one stream of packets, of Opus or G.711: waits as little as the path allows, and conceals what does not
/// arrive.
///
/// `insert` packets as they arrive and `pull` a frame whenever sound is due; both take bounded time, allocate nothing
/// and never fail. One thread at a time. All memory is taken by `init`: about 230 kB, of which only the pages that
/// packets were ever stored in become resident.
public struct PlayoutBuffer: ~Copyable {
    /// Counters and delays since the buffer was made.
    public private(set) var statistics = PlayoutStatistics()
    /// How long after a request a lost packet comes; nil if none is asked for. What waiting for it is worth then counts
    /// when the delay is chosen.
    public var repairNanoseconds: Int64?
    /// By how much this pull and all later ones would be delayed if sound is missing that may only be late
    /// (``mayAwait(forPull:)``). Packets that are late by less are then no reason for a whole step of delay.
    public var pullPatienceNanoseconds: Int64 = 0

    private var decoders: FormatDecoders
    private var stream: ReceivedStream
    private var queue = PacketQueue()
    private var losses = LossDetector()
    private var delay: DelayEstimator
    private var position = PlayoutPosition()
    private var sound = DecodedSound()

    /// A buffer that plays the Opus that `decoder` decodes; it must be a mono decoder.
    public init(configuration: PlayoutConfiguration, decoder: consuming OpusDecoder) {
        self.init(configuration: configuration, stream: StreamDecoder(decoder))
    }

    /// A buffer that plays what `decoder` decodes.
    public init(configuration: PlayoutConfiguration, stream decoder: consuming StreamDecoder) {
        stream = ReceivedStream(samplesPerTick: decoder.samplesPerTick)
        decoders = FormatDecoders(decoder)
        delay = DelayEstimator(configuration)
    }

    // MARK: Packets

    /// Takes one packet, copying its payload. Nothing a peer sends can trap.
    ///
    /// - Parameters:
    ///   - payload: One Opus packet, without RTP header and padding.
    ///   - number: The sequence number of the RTP header, extended so that it never wraps.
    ///   - timestamp: From the RTP header, at 48 kHz (RFC 7587 §4.1).
    ///   - marker: From the RTP header; the first packet after silence has it set. Not relied upon.
    ///   - ssrc: From the RTP header; another one starts the buffer afresh.
    ///   - format: Which of the formats that ``change(to:)`` has counted the packet is of; nil: the newest.
    ///   - arrival: When the packet came, as exactly as is known: by the kernel's timestamp if there is one.
    @_noAllocation @_noLocks
    public mutating func insert(
        payload: RawSpan, number: Int64, timestamp: UInt32, marker: Bool, ssrc: UInt32, format: UInt8? = nil,
        arrival: Instant
    ) {
        let format = format ?? decoders.newestFormat
        insert(
            payload, decoders.samples(in: payload, of: format), isNoise: false, format, number, timestamp, ssrc,
            arrival)
    }

    /// Takes one packet of comfort noise (RFC 3389): the sender is silent from then on. For streams of G.711.
    ///
    /// Parameters are those of ``insert(payload:number:timestamp:marker:ssrc:arrival:)``.
    @_noAllocation @_noLocks
    public mutating func insertNoise(
        payload: RawSpan, number: Int64, timestamp: UInt32, ssrc: UInt32, format: UInt8? = nil,
        arrival: Instant
    ) {
        // Played for a frame's length; the noise continues by itself.
        insert(
            payload, Self.noiseSamples, isNoise: true, format ?? decoders.newestFormat, number, timestamp, ssrc,
            arrival)
    }

    /// 10 ms: senders may resume sound that soon.
    private static var noiseSamples: Int { @_noAllocation @_noLocks get { 480 } }

    @_noAllocation @_noLocks
    private mutating func insert(
        _ payload: RawSpan, _ duration: Int, isNoise: Bool, _ format: UInt8, _ number: Int64,
        _ timestamp: UInt32, _ ssrc: UInt32, _ arrival: Instant
    ) {
        statistics.packetsReceived &+= 1
        guard payload.byteCount > 0 else { return passOver(number, ssrc, isPadding: true) }
        guard duration > 0, payload.byteCount <= PacketStore.blockSize else {
            statistics.packetsDiscarded &+= 1
            return
        }
        if stream.identify(by: ssrc) { startAfresh(with: format) }
        guard let time = mediaTime(of: number, timestamp, format, arrival) else {
            statistics.packetsDiscarded &+= 1
            return
        }
        var entry = decoders.entry(number, time, payload, duration, of: format, arrival: arrival)
        if isNoise {
            entry.isNoise = true
            entry.isDiscontinuous = true
            entry.restorableSamples = 0
        }
        take(entry, payload)
    }

    /// A packet's media time in the stream, which starts afresh if the packet cannot belong to what came before; nil if its
    /// format is known no more.
    @_noAllocation @_noLocks
    private mutating func mediaTime(
        of number: Int64, _ timestamp: UInt32, _ format: UInt8, _ arrival: Instant
    ) -> Int64? {
        if !stream.isTimed(by: format), format == decoders.newestFormat {
            let goesOn = stream.change(
                to: format, samplesPerTick: decoders.samplesPerTick(of: format), at: number, timestamp,
                arrival: arrival, baseline: delay.baseline)
            if !goesOn { decoders.use(format) }
        }
        guard let time = stream.extend(timestamp, of: format) else { return nil }
        guard stream.isJump(number, time, arrival, baseline: delay.baseline) else { return time }
        startAfresh(with: format)
        return stream.extend(timestamp, of: format)
    }

    @_noAllocation @_noLocks
    private mutating func take(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        guard !queue.contains(entry.sequence) else {
            statistics.packetsDuplicate &+= 1
            return
        }
        let missing = stream.gap(before: entry.sequence)
        delay.learn(from: entry, missing: missing, queue, repairNanoseconds: repairNanoseconds)
        if missing < 0 { statistics.packetsReordered &+= 1 }
        stream.noteArrival(of: entry)

        if position.isPast(entry.sequence) {
            statistics.packetsLate &+= 1
            statistics.recordNotLost()
            return
        }
        position.begin(with: entry, isFirst: queue.count == 0)
        keep(entry, payload)
    }

    @_noAllocation @_noLocks
    private mutating func keep(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        if queue.insert(entry, payload: payload) {
            statistics.packetsDiscarded &+= 1
            passEvicted()
        }
        stream.noteSound(of: entry)
    }

    /// Moves past packets that gave way to newer ones before they were played: the gap that they leave is no loss to conceal, for
    /// what waits behind it is late by all that the queue holds, and each packet to come would take the place of another one.
    @_noAllocation @_noLocks
    private mutating func passEvicted() {
        guard let first = queue.firstStorable, position.nextSequence < first,
            let entry = queue.first(from: first)
        else { return }
        // Of those before it one gave way, and is counted.
        statistics.packetsLost &+= max(queue.missing(from: position.nextSequence, to: entry.sequence) &- 1, 0)
        sound.release(position.pass(upTo: entry))
        decoders.discardSaved()
    }

    /// Takes a copy of an earlier packet that another carries (RFC 2198). It is used if that packet has not come, and its sound
    /// is still to be played. Call it before the packet that carries the copy is inserted.
    ///
    /// The timestamp alone identifies the packet that it copies: a sender may repeat any of its earlier packets.
    /// - Parameters:
    ///   - payload: The copy.
    ///   - timestampOffset: By how many ticks it is older than the packet that carries it.
    ///   - number: The extended sequence number of the packet that carries it; the three that follow are that packet's, too.
    @_noAllocation @_noLocks
    public mutating func insertCopy(
        payload: RawSpan, timestampOffset: UInt32, number: Int64, timestamp: UInt32, ssrc: UInt32,
        format: UInt8? = nil, arrival: Instant
    ) {
        let format = format ?? decoders.newestFormat
        let duration = decoders.samples(in: payload, of: format)
        // A copy from before a change comes with a packet from after it: its timestamp counts in other ticks.
        guard duration > 0, timestampOffset > 0, payload.byteCount <= PacketStore.blockSize,
            stream.isTimed(by: format), stream.contains(number, ssrc: ssrc),
            let (sequence, time) = stream.place(
                ofCopy: timestampOffset, before: timestamp, duration, in: number, queue)
        else { return }
        delay.learn(
            fromCopyOf: sequence, in: number, transit: arrival.nanoseconds &- StreamClock.nanoseconds(samples: time),
            isMissing: stream.gap(before: sequence) >= 0)
        guard sequence >= position.nextSequence, !queue.contains(sequence), !queue.isSoundless(sequence) else { return }
        let entry = decoders.entry(sequence, time, payload, duration, of: format, arrival: arrival)
        statistics.packetsRepaired &+= 1
        keep(entry, payload)
    }

    /// Takes note of a packet of the stream that holds no sound, such as a telephone event: it is not waited for, and
    /// the sender is silent in its place.
    @_noAllocation @_noLocks
    public mutating func passOver(number: Int64, ssrc: UInt32) {
        passOver(number, ssrc, isPadding: false)
    }

    /// - Parameter isPadding: The packet is empty, as those that probe a path (RFC 3550 §5.1): the sound continues.
    @_noAllocation @_noLocks
    private mutating func passOver(_ number: Int64, _ ssrc: UInt32, isPadding: Bool) {
        guard stream.contains(number, ssrc: ssrc) else { return }
        if position.isPast(number) { return statistics.recordNotLost() }
        queue.insertSoundless(number, isPadding: isPadding)
        stream.noteSoundless(number)
    }

    /// Begins with another stream: keeps what was learnt of the path's jitter, and what is decoded already.
    @_noAllocation @_noLocks
    private mutating func startAfresh(with format: UInt8) {
        statistics.resets &+= 1
        statistics.packetsDiscarded &+= queue.count
        queue.removeAll()
        decoders.reset(to: format)
        stream.startAfresh(in: format, samplesPerTick: decoders.samplesPerTick)
        delay.startAfresh()
        position.startAfresh()
        sound.startAfresh()
    }

    // MARK: Changes of format

    /// Continues the stream in another format, which `decoder` decodes (RFC 3264 §8.3.2). What waits, and packets of the
    /// format before that still come, are decoded as before; the change is heard where the first packet of the new format has
    /// its place.
    ///
    /// Leaves a decoder that is not needed any more in `decoder`, to be freed elsewhere. An empty one changes nothing.
    ///
    /// - Returns: The format's number, which its packets are inserted with.
    @_noAllocation @_noLocks
    public mutating func change(to decoder: inout StreamDecoder) -> UInt8 { decoders.change(to: &decoder) }

    // MARK: Missing packets

    /// The next packet that has not come though a later one has, and whose place has not been played.
    ///
    /// A packet that was overtaken less than 2 ms ago is not missing yet.
    /// - Parameters:
    ///   - number: The first that is asked about; `.min` for all.
    ///   - nextPull: When the next pull takes place.
    ///   - frameSamples: How much each pull takes.
    @_noAllocation @_noLocks
    public mutating func nextMissing(
        from number: Int64, nextPull: Instant, frameSamples: Int, at now: Instant
    ) -> MissingPacket? {
        guard position.isPlaying, frameSamples > 0,
            let (sequence, after) = losses.nextMissing(
                from: number, in: queue, from: position.nextSequence, to: stream.endSequence, at: now)
        else { return nil }
        let mediaTime = after.timestamp &- (after.sequence &- sequence) &* Int64(stream.packetSamples)
        let played = position.mediaTime(decoded: sound.count)
        let pulls = max(mediaTime &- played, 0) / Int64(frameSamples)
        let wait = StreamClock.nanoseconds(samples: pulls &* Int64(frameSamples))
        return MissingPacket(number: sequence, dueAt: Instant(nanoseconds: nextPull.nanoseconds &+ wait))
    }

    /// When a packet that has just been overtaken counts as missing; nil if there is none. As of the last time that all
    /// missing packets were asked about.
    public var nextMissingAt: Instant? {
        @_noAllocation @_noLocks mutating get { losses.nextMissingAt }
    }

    /// A packet was asked for again: it comes late for reasons of its own.
    @_noAllocation @_noLocks
    public mutating func noteRequest(for packet: MissingPacket) { delay.noteRequest(for: packet.number) }

    // MARK: When to pull

    /// How much earlier pulls of `pullSamples` samples should take place, so that packets wait the least without coming late:
    /// in nanoseconds, from 0 to below a pull's length. 0 until enough is known.
    @_noAllocation @_noLocks
    public func worthwhileAdvance(pullSamples: Int, at now: Instant) -> Int64 {
        // Only on target does the delay show the position of the grid.
        guard position.isPlaying, sound.samplesOffTarget < 48_000, stream.receivedNanoseconds > 2_500_000_000 else {
            return 0
        }
        return delay.worthwhileAdvance(grid(now, pullSamples))
    }

    /// Notes that pulls come earlier from now on, as ``worthwhileAdvance(pullSamples:at:)`` requested, or later if the
    /// number is negative.
    @_noAllocation @_noLocks
    public mutating func advancePulls(nanoseconds: Int64) { delay.advancePulls(nanoseconds: nanoseconds) }

    /// Whether all the sound of a pull of `pullSamples` samples is here.
    @_noAllocation @_noLocks
    public func hasSound(forPull pullSamples: Int) -> Bool { soundAhead(pullSamples).samples >= pullSamples }

    /// Whether a pull of `pullSamples` samples would need concealment though the missing packets may only be late: nothing
    /// indicates a loss or the sender's silence.
    @_noAllocation @_noLocks
    public func mayAwait(forPull pullSamples: Int) -> Bool {
        guard position.isPlaying, !position.isDiscontinuous else { return false }
        let ahead = soundAhead(pullSamples)
        return ahead.samples < pullSamples && ahead.next >= stream.endSequence && !ahead.isDiscontinuous
    }

    /// How much later than the fastest a packet may come for a pull of `pullSamples` samples at `now`, in nanoseconds.
    @_noAllocation @_noLocks
    public func room(forPull pullSamples: Int, at now: Instant) -> Int64 {
        playoutTransit(now) &- delay.baseline &- grid(now, pullSamples).lead
    }

    @_noAllocation @_noLocks
    private func soundAhead(_ pullSamples: Int) -> (samples: Int, next: Int64, isDiscontinuous: Bool) {
        queue.soundAhead(from: position.nextSequence, decoded: sound.count, wanted: pullSamples)
    }

    /// How long after its media time the next sample to be handed out is played.
    @_noAllocation @_noLocks
    private func playoutTransit(_ now: Instant) -> Int64 {
        now.nanoseconds &- StreamClock.nanoseconds(samples: position.mediaTime(decoded: sound.count))
    }

    @_noAllocation @_noLocks
    private func grid(_ now: Instant, _ wanted: Int) -> TargetDelay.Grid {
        TargetDelay.Grid(
            transit: playoutTransit(now), waiting: sound.count, pullSamples: wanted,
            packetSamples: stream.packetSamples,
            patience: pullPatienceNanoseconds)
    }

    // MARK: Pulls

    /// More steps than any frame can need: a bound against our own mistakes, after which the rest is silence.
    private static var stepLimit: Int { @_noAllocation @_noLocks get { 64 } }

    /// Fills `output` with the sound that is due at `now`: 10 to 60 ms, independent of the packets' own length.
    ///
    /// - Parameter now: When this frame begins to be played, on the clock of the packets' arrivals. It should advance
    ///   by the frame's duration from pull to pull, as a timer's deadlines do, not by when the thread woke.
    /// - Returns: What the frame is made of.
    @_noAllocation @_noLocks
    public mutating func pull(into output: inout MutableSpan<Int16>, at now: Instant) -> PulledFrame {
        var frame = PulledFrame()
        let wanted = min(output.count, 2_880)
        sound.beginPull()
        delay.settleGap(at: now.nanoseconds, queue, repairNanoseconds: repairNanoseconds)
        startIfDue(now, wanted)
        if position.isPlaying {
            updateTarget(now, wanted)
            var steps = 0
            while steps < Self.stepLimit {
                position.passSoundless(in: queue)
                let decision = PlayoutPolicy.decide(status(now, wanted))
                if case .handOut = decision { break }
                carryOut(decision, now, &frame)
                steps &+= 1
            }
        }
        sound.handOut(&output, wanted, &frame)
        statistics.record(frame, samples: output.count)
        return frame
    }

    /// Starts the stream when its first packet has waited as long as the target says.
    @_noAllocation @_noLocks
    private mutating func startIfDue(_ now: Instant, _ wanted: Int) {
        guard !position.isPlaying, queue.count > 0 else { return }
        updateTarget(now, wanted)
        if playoutTransit(now) >= delay.targetTransit &- StreamClock.nanoseconds(samples: 120) { position.start() }
    }

    @_noAllocation @_noLocks
    private mutating func updateTarget(_ now: Instant, _ wanted: Int) {
        delay.update(grid(now, wanted), received: stream.receivedNanoseconds)
        statistics.targetDelayNanoseconds = delay.targetTransit &- delay.baseline
    }

    @_noAllocation @_noLocks
    private mutating func status(_ now: Instant, _ wanted: Int) -> PlayoutStatus {
        var status = PlayoutStatus()
        let transit = playoutTransit(now)
        status.frameSamples = wanted
        status.isDiscontinuous = position.isDiscontinuous
        status.excessSamples = StreamClock.samples(nanoseconds: transit &- delay.targetTransit)
        status.mayHaveStepped = delay.mayHaveStepped
        status.overflowSamples = max(StreamClock.samples(nanoseconds: transit &- delay.longestTransit), 0)
        sound.describe(&status)
        if let entry = queue.first(from: position.nextSequence) { position.describe(entry, in: queue, &status) }
        return status
    }

    @_noAllocation @_noLocks
    private mutating func carryOut(_ decision: PlayoutDecision, _ now: Instant, _ frame: inout PulledFrame) {
        switch decision {
        case .play: play(now)
        case .conceal(let count): sound.hold(count, with: &decoders, &frame)
        case .coverLoss(let count): coverLoss(count, &frame)
        case .recoverWithFEC(let count): recover(count, &frame)
        case .discard: discardNext()
        case .skip(let count):
            position.skip(count)
            sound.release(count)
        case .jump(let count):
            position.jump(count)
            sound.release(count)
            decoders.discardSaved()
        case .comfortNoise(let count):
            sound.makeUp(count, with: &decoders)
            frame.silentSamples &+= count
        case .accelerate(let most): sound.accelerate(atMost: most, &frame)
        case .decelerate(let shortest, _): sound.decelerate(atLeast: shortest, &frame)
        case .handOut: break
        }
    }

    /// Decodes the next packet. What `skip` asked for is decoded too, for the decoder's sake, but not played.
    @_noAllocation @_noLocks
    private mutating func play(_ now: Instant) {
        guard let entry = queue.first(from: position.nextSequence) else { return }
        noteLost(before: entry)
        let dropped = position.drop(from: entry)
        if dropped < Int(entry.samples) {
            statistics.playoutDelayNanoseconds = playoutTransit(now) &- delay.baseline
            let due = now.nanoseconds &+ StreamClock.nanoseconds(samples: Int64(sound.count))
            statistics.recordBufferDelay(nanoseconds: due &- entry.arrivalNanoseconds)
        } else {
            statistics.packetsLate &+= 1
        }
        sound.decode(entry, in: queue, with: &decoders, dropping: dropped)
        queue.remove(entry.sequence)
        position.move(past: entry)
    }

    /// Throws the next packet away: it has waited beyond the maximum delay.
    @_noAllocation @_noLocks
    private mutating func discardNext() {
        guard let entry = queue.first(from: position.nextSequence) else { return }
        queue.remove(entry.sequence)
        statistics.packetsDiscarded &+= 1
        position.discard(entry)
    }

    /// Restores `count` lost samples before the next packet from that packet.
    @_noAllocation @_noLocks
    private mutating func recover(_ count: Int, _ frame: inout PulledFrame) {
        guard let entry = queue.first(from: position.nextSequence) else { return }
        let dropped = position.drop(atMost: count)
        sound.recover(count, from: entry, in: queue, with: &decoders, dropping: dropped)
        noteLost(before: entry)
        position.jump(count)
        position.move(to: entry)
        frame.recoveredSamples &+= count &- dropped
    }

    /// Makes up `count` samples that are lost for good.
    @_noAllocation @_noLocks
    private mutating func coverLoss(_ count: Int, _ frame: inout PulledFrame) {
        let dropped = position.drop(atMost: count)
        position.jump(sound.coverLoss(count, with: &decoders, dropping: dropped))
        frame.concealedSamples &+= count &- dropped
    }

    @_noAllocation @_noLocks
    private mutating func noteLost(before entry: PacketStore.Entry) {
        statistics.packetsLost &+= queue.missing(from: position.nextSequence, to: entry.sequence)
    }
}

/// How a ``PlayoutBuffer`` trades delay against sound that comes too late. All times in milliseconds.
public struct PlayoutConfiguration: Equatable, Sendable {
    /// Floor for the delay above the fastest path, 0 to 1 000. Default 0: on a clean path a packet is played at the
    /// first pull after its arrival.
    public var minimumDelayMilliseconds = 0
    /// Ceiling for the delay above the fastest path, 20 to 1 000. Sound that waits longer is skipped. Default 500.
    public var maximumDelayMilliseconds = 500
    /// Least delay while the path is not known: until 2 s of sound were received. Default 20: what more would cover is
    /// less than what stretching it away costs, since on most paths it must go again.
    public var initialDelayMilliseconds = 20
    /// The cost of one percent of late packets, in milliseconds of delay. A higher value makes calls smoother, with
    /// more delay. Default 10.
    public var millisecondsPerLatePercent = 10
    /// How long a delay is remembered, 1 000 to 60 000: the time after which it counts 1/e. Default 15 000.
    public var memoryMilliseconds = 15_000

    /// The defaults, which suit a conversation.
    public init() {}
}
