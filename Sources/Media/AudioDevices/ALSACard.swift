internal import CALSA
internal import Glibc
internal import Realtime

/// A sound card through libasound, in one or both directions.
struct ALSACard: SoundCard, ~Copyable {
    private let configuration: AudioDeviceConfiguration
    private let directory: CardDirectory
    private var playback: ALSAStream?
    private var capture: ALSAStream?
    private var playbackGrant: CardGrant?
    private var captureGrant: CardGrant?
    /// Where the card of each direction was found, to find it again under another number.
    private var homes = InlineArray<2, CardHome?>(repeating: nil)
    private var wakeFrames = 0
    /// State of the configuration files when libasound last read them.
    private var surroundings: CardDirectory.Surroundings?
    /// Times that libasound was made to read its configuration.
    private(set) var configurationReads = 0
    private var poll: PollSet
    /// Openings since libasound last read its configuration.
    private var openings = 0
    /// Openings after which libasound reads its configuration again though nothing seems to have changed: every ten
    /// seconds or so while a card is missing. Some files that it reads are not watched (``ConfigurationStamps``).
    private static let openingsPerReading = 5

    init(_ configuration: AudioDeviceConfiguration, directory: CardDirectory = CardDirectory()) {
        handset_alsa_be_quiet()
        self.configuration = configuration
        self.directory = directory
        poll = PollSet()
    }

    /// Opens the card. While none is there this is tried again and again, and libasound is slow: it is no work for a thread
    /// that others wait for.
    mutating func open() -> CardFailure? {
        close()
        let priority = RealtimeThread.suspendPriority()
        defer { RealtimeThread.resumePriority(priority) }
        readConfiguration()
        do throws(AudioDeviceError) {
            if let name = configuration.playback {
                let stream = try stream(name, .playback)
                playbackGrant = stream.grant
                playback = consume stream
            }
            if let name = configuration.capture {
                let stream = try stream(name, .capture)
                captureGrant = stream.grant
                capture = consume stream
            }
            return nil
        } catch {
            close()
            return CardFailure(direction: error.direction, errno: error.errno)
        }
    }

    /// Lets libasound read its configuration again if the cards or the configuration have changed, and for each fifth
    /// opening in any case: a card that was plugged in is in no list that it read before.
    private mutating func readConfiguration() {
        let found = directory.surroundings
        guard found != surroundings || openings == Self.openingsPerReading else {
            openings += 1
            return
        }
        surroundings = found
        openings = 1
        configurationReads += 1
        _ = snd_config_update_free_global()
    }

    private mutating func stream(_ name: String, _ direction: SoundDirection) throws(AudioDeviceError) -> ALSAStream {
        let index = Int(direction.rawValue)
        guard let resolved = directory.pcmName(for: name, lastSeen: homes[index]) else {
            throw AudioDeviceError(device: name, direction: direction, errno: ENOENT)
        }
        let stream = try ALSAStream(
            resolved, direction, periodMilliseconds: configuration.periodMilliseconds,
            leastBufferMilliseconds: configuration.leastBufferMilliseconds, channels: configuration.channels)
        if let card = stream.cardNumber {
            homes[index] = directory.home(ofCard: card, device: stream.deviceNumber)
        }
        return stream
    }

    mutating func close() {
        playback = nil
        capture = nil
        playbackGrant = nil
        captureGrant = nil
        wakeFrames = 0
    }

    func grant(_ direction: SoundDirection) -> CardGrant? {
        switch direction {
        case .playback: playbackGrant
        case .capture: captureGrant
        }
    }

    mutating func prepare(_ direction: SoundDirection) -> Int32 {
        switch direction {
        case .playback: playback?.prepare() ?? -ENODEV
        case .capture: capture?.prepare() ?? -ENODEV
        }
    }

    mutating func start(_ direction: SoundDirection) -> Int32 {
        switch direction {
        case .playback: playback?.start() ?? -ENODEV
        case .capture: capture?.start() ?? -ENODEV
        }
    }

    mutating func resume(_ direction: SoundDirection) -> Int32 {
        switch direction {
        case .playback: playback?.resume() ?? -ENODEV
        case .capture: capture?.resume() ?? -ENODEV
        }
    }

    mutating func condition(_ direction: SoundDirection) -> LineCondition {
        switch direction {
        case .playback: playback?.condition() ?? LineCondition(errno: ENODEV)
        case .capture: capture?.condition() ?? LineCondition(errno: ENODEV)
        }
    }

    mutating func write(_ samples: borrowing SampleBuffer, from start: Int, to end: Int) -> Int {
        playback?.write(samples, from: start, to: end) ?? -Int(ENODEV)
    }

    mutating func read(into samples: inout SampleBuffer, count: Int) -> Int {
        capture?.read(into: &samples, count: count) ?? -Int(ENODEV)
    }

    mutating func setOutputs(_ outputs: CardOutputs) { playback?.outputs = outputs }

    mutating func readPairs(into samples: inout SampleBuffer, count: Int) {
        capture?.readPairs(into: &samples, count: count)
    }

    mutating func setWakeQueue(frames: Int, startFrames: Int) {
        guard frames != wakeFrames else { return }
        wakeFrames = frames
        playback?.setWakeQueue(frames: frames, startFrames: startFrames)
    }

    /// The time from one interrupt to the next, in ms; the shorter of both directions'.
    var periodMilliseconds: Double {
        min(playbackGrant?.periodMilliseconds ?? 10, captureGrant?.periodMilliseconds ?? 10)
    }

    /// Waits until the card has something to do, `wakeup` is signalled, or the time has passed.
    ///
    /// - Parameter watchesCard: Without that, only the wake-up and the time count.
    /// - Returns: Whether `wakeup` was signalled, and is to be cleared.
    mutating func wait(_ wakeup: Int32, milliseconds: Int32, watchesCard: Bool) -> Bool {
        poll.begin(wakeup)
        var (playing, capturing) = (0, 0)
        if watchesCard {
            playing = unsafe playback?.describePoll(poll.next, capacity: poll.room) ?? 0
            poll.count += playing
            capturing = unsafe capture?.describePoll(poll.next, capacity: poll.room) ?? 0
            poll.count += capturing
        }
        poll.wait(milliseconds: milliseconds)
        if playing > 0 { unsafe playback?.finishPoll(poll.base + 1, count: playing) }
        if capturing > 0 { unsafe capture?.finishPoll(poll.base + 1 + playing, count: capturing) }
        return poll.isFirstReadable
    }
}

/// The descriptors that a device's thread waits on, in memory taken once.
@safe
struct PollSet: ~Copyable {
    let base: UnsafeMutablePointer<pollfd>
    var count = 0
    private static let capacity = 32

    init() {
        unsafe base = .allocate(capacity: Self.capacity)
        unsafe base.initialize(repeating: pollfd(), count: Self.capacity)
    }

    deinit { unsafe base.deallocate() }

    /// Where the next descriptors go.
    var next: UnsafeMutablePointer<pollfd> { unsafe base + count }
    /// How many more there is room for.
    var room: Int { Self.capacity - count }

    /// Starts with one descriptor to read from.
    mutating func begin(_ descriptor: Int32) {
        unsafe base[0] = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        count = 1
    }

    /// Whether the first descriptor was readable when the last wait ended.
    var isFirstReadable: Bool { unsafe base.pointee.revents != 0 }

    mutating func wait(milliseconds: Int32) { _ = unsafe Glibc.poll(base, nfds_t(count), milliseconds) }
}
