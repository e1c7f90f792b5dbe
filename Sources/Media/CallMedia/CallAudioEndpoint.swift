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
    /// The program's line, if one takes part in the call.
    private var line: PortLine?
    /// The call's port at the sound card, if it has one.
    var port: CardPort?
    private(set) var counters = Counters()
    /// The file has been played to its end.
    private var isOver = false
    /// And that has been reported.
    private var reportedEnd = false

    /// Samples that a ring could not give or take.
    struct Counters: BitwiseCopyable {
        /// Samples of silence sent because the player was late.
        var playUnderrun = 0
        /// Samples lost to the recording because the disk was slow.
        var recordOverrun = 0
    }

    /// - Parameters:
    ///   - player: The reading half of the ring that a file's player fills; only for a file source.
    ///   - recorder: The writing half of the ring that a recording is taken from.
    ///   - line: The worker's side of a program's port; without one, a program is silent.
    init(
        _ behaviour: AudioBehaviour, player: consuming AudioRing.Consumer?, recorder: consuming AudioRing.Producer?,
        line: consuming PortLine? = nil
    ) {
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
        self.line = line
    }

    /// Runs one frame. Both spans have the same length.
    @_noAllocation @_noLocks
    mutating func exchange(received: Span<Int16>, sending: inout MutableSpan<Int16>) {
        if let taken = recorder?.write(received) { counters.recordOverrun += received.count - taken }
        switch source {
        case .silence: Silence.fill(&sending)
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
        case .program:
            if line?.exchange(received: received, sending: &sending) == nil { Silence.fill(&sending) }
        case .card: Silence.fill(&sending)  // See the next two.
        }
    }

    /// Provides a frame to send while the peer may not hear yet: sources without a beginning that could be lost, and
    /// silence for all others.
    @_noAllocation @_noLocks
    mutating func fillBeforehand(_ sending: inout MutableSpan<Int16>) {
        switch source {
        case .tone: tone?.fill(&sending)
        case .silence, .echo, .file, .card, .program: Silence.fill(&sending)
        }
    }

    /// A call on the card: a frame from the microphone.
    @_noAllocation @_noLocks
    mutating func takeFromCard(into sending: inout MutableSpan<Int16>) { port?.take(into: &sending) }

    /// A call on the card: what it hears goes to the loudspeaker, and is recorded.
    @_noAllocation @_noLocks
    mutating func bringToCard(_ samples: Span<Int16>) {
        if let taken = recorder?.write(samples) { counters.recordOverrun += samples.count - taken }
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

    /// Whether the file has just been played to its end: true once.
    @_noAllocation @_noLocks
    mutating func takeEnd() -> Bool {
        guard isOver, !reportedEnd else { return false }
        reportedEnd = true
        return true
    }

    /// Ends the recording with the sound so far, and tells the program that there is no more.
    @_noAllocation @_noLocks
    mutating func finish() {
        recorder?.close()
        line?.finish()
    }
}
