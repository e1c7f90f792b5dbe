internal import AudioKit
internal import Core
internal import Playout
internal import RTP
internal import Realtime

// One frame of a call: the peer's sound is played, and the behaviour's sound is encoded and sent.
extension MediaCall {
    /// The longest that a played file waits for a packet of the peer once frames run. An answer has crossed the signaling
    /// by then, and a peer that sends nothing at first may well be listening.
    private static var patienceNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }

    /// Hears 10 ms for the sound card's loudspeaker, and its recording; nothing before the peer's first packet or the call's beginning.
    @_noAllocation @_noLocks
    mutating func hearTick(at due: Instant, through work: inout SampleBuffer) {
        guard case .running = pace else { return }
        hear(from: &playout, into: &work, &capture, CardPort.tickSamples, at: due)
        if peer.hasHeardPeer || hasBegun { bring(work, CardPort.tickSamples, to: &audio) }
    }

    /// Advances pulls from now on; delays them if the number is negative.
    @_noAllocation @_noLocks
    mutating func advancePulls(nanoseconds: Int64) {
        playout.advancePulls(nanoseconds: nanoseconds)
        capture?.note(.advance, nanoseconds)
    }

    @_noAllocation @_noLocks
    mutating func exchangeFrame(
        due: Instant, at now: Instant, scratch: inout FrameScratch, batch: inout DatagramBatch
    ) {
        // The playout's clock is the grid of the frames, not the moments at which a busy machine gets to them.
        counters.captureRecordsLost = capture?.countLost() ?? 0
        // On the sound card, playback has its own ticks.
        if !usesCard { hear(from: &playout, into: &scratch.heard, &capture, frameSamples, at: due) }
        begin()
        if usesCard {
            takeFromCard(&audio, into: &scratch.sending, frameSamples, isRecorded: hasBegun, isEarly: isEarly)
        } else {
            if hasBegun {
                exchange(with: &audio, scratch.heard, &scratch.sending, frameSamples, isEarly: isEarly)
            } else {
                fillBeforehand(&audio, &scratch.sending, frameSamples, isEarly: isEarly)
            }
        }
        sendFrame(scratch.sending, &scratch.encoded, at: now, batch: &batch)
        timestamp &+= UInt32(truncatingIfNeeded: frameTicks)
    }

    /// Begins to play and to record, both in the same frame, once the peer is known to be ready: nothing of a file is lost
    /// before the peer can hear it.
    ///
    /// A packet from an inviter shows that it has the answer, and so the address and key of our packets. A packet from
    /// an invitee shows that our packets reach it.
    @_noAllocation @_noLocks
    private mutating func begin() {
        guard !hasBegun else { return }
        let elapsed = Int64(counters.framesRun) &* periodNanoseconds
        let hasWaited = peer.packetsSent > 0 && elapsed >= Self.patienceNanoseconds
        hasBegun = peer.hasHeardPeer || hasWaited && !soundLimit.applies
    }

    @_noAllocation @_noLocks
    private mutating func sendFrame(
        _ samples: borrowing SampleBuffer, _ frame: inout EncodedFrame, at now: Instant, batch: inout DatagramBatch
    ) {
        guard sends, peer.canSend, !control.isStopped, soundLimit.allows(at: now), let path = peer.path else {
            control.paused()
            marker = true
            return
        }
        if sendEvent(by: path, at: now, batch: &batch) { return }
        var packet = batch.freePacket(by: path)
        let room = peer.mediaHeaderBytes..<(packet.byteCount - PeerSession.maximumProtectionBytes)
        let repeats = redundancy.depth > 0
        encoder.expect(soundRate: audio.soundRate)
        let encoded =
            repeats
            ? encode(samples, frameSamples, with: &encoder, into: &frame)
            : encode(samples, frameSamples, with: &encoder, into: &packet, room)
        guard encoded > 0 else {
            counters.encodeErrors += 1
            return
        }
        // One or two bytes that describe no noise: DTX (RFC 6716 §2.1.9). The first of a pause is sent, so that the
        // peer does not mistake the pause for loss; the others are suppressed. Media time continues.
        let isPause = encoded <= 2 && !encoder.isNoise
        if isPause, marker {
            counters.framesNotSent += 1
            return
        }
        let payloadBytes =
            repeats
            ? redundancy.write(
                frame, count: encoded, payloadType: sendPayloadType, timestamp: timestamp, into: &packet, room)
            : encoded
        let length = peer.writeMedia(
            payloadBytes: payloadBytes, timestamp: timestamp, marker: marker && !encoder.isNoise, isRedundant: repeats,
            isNoise: encoder.isNoise,
            level: peer.sendsAudioLevel ? level(samples, frameSamples) : .silence, at: now, into: &packet)
        guard length > 0 else { return }
        marker = encoder.isNoise || isPause
        batch.commitPacket(byteCount: length, by: path)
        soundLimit.sent(bytes: length, at: now)
    }
}

// What follows hands out views of datagrams and frames. Unoptimised code counts the end of such a view as a deallocation,
// though there is nothing to free, so they are not analysed; what they call is.

@_semantics("no_performance_analysis") @inline(__always)
private func encode(
    _ samples: borrowing SampleBuffer, _ count: Int, with encoder: inout SoundEncoder, into slot: inout MutableRawSpan,
    _ room: Range<Int>
) -> Int {
    var bytes = slot._mutatingExtracting(room)
    var payload = unsafe bytes._unsafeMutableView(as: UInt8.self)
    return encoder.encode(samples.samples(count), into: &payload)
}

@_semantics("no_performance_analysis") @inline(__always)
private func encode(
    _ samples: borrowing SampleBuffer, _ count: Int, with encoder: inout SoundEncoder, into frame: inout EncodedFrame
) -> Int {
    var bytes = frame.mutableSpan
    return encoder.encode(samples.samples(count), into: &bytes)
}

@_semantics("no_performance_analysis") @inline(__always)
private func hear(
    from playout: inout PlayoutBuffer, into frame: inout SampleBuffer, _ capture: inout CaptureWriter?, _ count: Int,
    at now: Instant
) {
    capture?.noteSettings(patience: playout.pullPatienceNanoseconds, repair: playout.repairNanoseconds)
    var samples = frame.mutableSamples(count)
    _ = playout.pull(into: &samples, at: now)
    capture?.notePull(samples.span, at: now)
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
    isEarly: Bool
) {
    var samples = sending.mutableSamples(count)
    if isEarly {
        audio.listen(received: heard.samples(count), sending: &samples)
    } else {
        audio.exchange(received: heard.samples(count), sending: &samples)
    }
}

@_semantics("no_performance_analysis") @inline(__always)
private func level(_ frame: borrowing SampleBuffer, _ count: Int) -> AudioLevel { AudioLevel(of: frame.samples(count)) }

@_semantics("no_performance_analysis") @inline(__always)
private func fillBeforehand(
    _ audio: inout CallAudioEndpoint, _ frame: inout SampleBuffer, _ count: Int, isEarly: Bool
) {
    var samples = frame.mutableSamples(count)
    audio.fillBeforehand(&samples, isEarly: isEarly)
}
