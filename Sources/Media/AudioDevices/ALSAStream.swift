internal import CALSA
internal import Glibc
internal import Realtime

/// One direction of a card, opened through libasound: the owner of its handle. Non-blocking throughout.
@safe
struct ALSAStream: ~Copyable {
    private let pcm: OpaquePointer
    private let frames: CardFrames
    /// What the card has granted.
    let grant: CardGrant
    /// The channels that what is written goes to.
    var outputs = CardOutputs.both
    /// The number of the card behind it; nil if there is none, as with a sound server.
    let cardNumber: Int?
    /// The card's device.
    let deviceNumber: Int

    /// Opens and configures `name`.
    init(
        _ name: String, _ direction: SoundDirection, periodMilliseconds: Int, leastBufferMilliseconds: Int = 0,
        channels: Int = 1
    ) throws(AudioDeviceError) {
        let stream = direction == .playback ? SND_PCM_STREAM_PLAYBACK : SND_PCM_STREAM_CAPTURE
        var opened: OpaquePointer?
        let result = unsafe snd_pcm_open(&opened, name, stream, SND_PCM_NONBLOCK)
        guard result >= 0, let handle = unsafe opened else {
            throw AudioDeviceError(device: name, direction: direction, errno: result < 0 ? -result : ENODEV)
        }
        let grant: CardGrant
        switch unsafe Self.setUp(handle, direction, periodMilliseconds, leastBufferMilliseconds, channels)
        {
        case .success(let granted): grant = granted
        case .failure(let failure):
            _ = unsafe snd_pcm_close(handle)
            throw AudioDeviceError(device: name, direction: direction, errno: failure.errno, step: failure.step)
        }
        unsafe pcm = handle
        self.grant = grant
        frames = CardFrames(capacity: grant.bufferFrames, format: grant.format, channels: grant.channels)
        (cardNumber, deviceNumber) = unsafe Self.numbers(handle)
    }

    private static func setUp(
        _ pcm: OpaquePointer, _ direction: SoundDirection, _ periodMilliseconds: Int, _ leastBufferMilliseconds: Int,
        _ channels: Int
    ) -> Result<CardGrant, ALSAFailure> {
        Result { () throws(ALSAFailure) in
            let setup = unsafe ALSASetup(pcm)
            let grant = try setup.apply(
                periodMilliseconds: periodMilliseconds, leastBufferMilliseconds: leastBufferMilliseconds,
                channels: channels)
            try setup.setThresholds(
                start: direction == .playback ? grant.periodFrames : nil, wakeAvailable: grant.periodFrames)
            return grant
        }
    }

    deinit {
        // Dropped first: closing may wait until all is played.
        _ = unsafe snd_pcm_drop(pcm)
        _ = unsafe snd_pcm_close(pcm)
    }

    private static func numbers(_ pcm: OpaquePointer) -> (Int?, Int) {
        var info: OpaquePointer?
        guard unsafe snd_pcm_info_malloc(&info) >= 0, let info = unsafe info else { return (nil, 0) }
        defer { unsafe snd_pcm_info_free(info) }
        guard unsafe snd_pcm_info(pcm, info) >= 0 else { return (nil, 0) }
        let card = unsafe snd_pcm_info_get_card(info)
        return (card < 0 ? nil : Int(card), unsafe Int(snd_pcm_info_get_device(info)))
    }

    // MARK: Life

    mutating func prepare() -> Int32 {
        // A stream that does not run has nothing to drop, which is not a failure.
        _ = unsafe snd_pcm_drop(pcm)
        return unsafe snd_pcm_prepare(pcm)
    }

    mutating func start() -> Int32 {
        // The silence written first may have started it.
        unsafe snd_pcm_state(pcm) == SND_PCM_STATE_RUNNING ? 0 : unsafe snd_pcm_start(pcm)
    }

    mutating func resume() -> Int32 { unsafe snd_pcm_resume(pcm) }

    /// Makes the card wake its thread once its queue is no longer than `frames`.
    mutating func setWakeQueue(frames: Int, startFrames: Int) {
        let available = max(1, grant.bufferFrames - frames)
        // If the card refuses, its present settings stay.
        do throws(ALSAFailure) {
            try unsafe ALSASetup(pcm).setThresholds(start: startFrames, wakeAvailable: available)
        } catch {}
    }

    mutating func condition() -> LineCondition {
        var available: snd_pcm_sframes_t = 0
        var delay: snd_pcm_sframes_t = 0
        let result = unsafe snd_pcm_avail_delay(pcm, &available, &delay)
        if result < 0 { return LineCondition(errno: -result) }
        switch unsafe snd_pcm_state(pcm) {
        case SND_PCM_STATE_DISCONNECTED: return LineCondition(errno: ENODEV)
        case SND_PCM_STATE_XRUN: return LineCondition(errno: EPIPE)
        case SND_PCM_STATE_SUSPENDED: return LineCondition(errno: ESTRPIPE)
        default: return LineCondition(errno: 0, availableFrames: max(0, available), delayFrames: max(0, delay))
        }
    }

    // MARK: Samples

    mutating func write(_ samples: borrowing SampleBuffer, from start: Int, to end: Int) -> Int {
        let count = min(end - start, frames.capacity)
        guard count > 0 else { return 0 }
        frames.encode(samples.samples(end), from: start, to: start + count, on: outputs)
        return grant.isMemoryMapped
            ? unsafe snd_pcm_mmap_writei(pcm, frames.base, snd_pcm_uframes_t(count))
            : unsafe snd_pcm_writei(pcm, frames.base, snd_pcm_uframes_t(count))
    }

    mutating func read(into samples: inout SampleBuffer, count: Int) -> Int {
        let wanted = min(count, frames.capacity, samples.capacity)
        guard wanted > 0 else { return 0 }
        let read =
            grant.isMemoryMapped
            ? unsafe snd_pcm_mmap_readi(pcm, frames.base, snd_pcm_uframes_t(wanted))
            : unsafe snd_pcm_readi(pcm, frames.base, snd_pcm_uframes_t(wanted))
        guard read > 0 else { return read }
        var space = samples.mutableSamples(read)
        frames.decode(&space, count: read)
        return read
    }

    /// The first two channels of the first `count` frames that were read last.
    mutating func readPairs(into samples: inout SampleBuffer, count: Int) {
        var space = samples.mutableSamples(2 * count)
        frames.decodePairs(&space, count: count)
    }

    // MARK: Waiting

    /// Writes the descriptors to poll to `descriptors`. Returns how many.
    mutating func describePoll(_ descriptors: UnsafeMutablePointer<pollfd>, capacity: Int) -> Int {
        max(0, Int(unsafe snd_pcm_poll_descriptors(pcm, descriptors, UInt32(capacity))))
    }

    /// Lets libasound take in what poll(2) said; some of its plug-ins clear their wake-ups here.
    mutating func finishPoll(_ descriptors: UnsafeMutablePointer<pollfd>, count: Int) {
        var events: UInt16 = 0
        _ = unsafe snd_pcm_poll_descriptors_revents(pcm, descriptors, UInt32(count), &events)
    }
}

/// A step of setting a card up that failed, with a positive errno.
struct ALSAFailure: Error {
    let step: String
    let errno: Int32
}
