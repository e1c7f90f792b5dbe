internal import AudioKit
internal import Glibc
public import Realtime
internal import Synchronization
internal import Core

/// Tries a sound card: a tone that comes and goes is played, and the level of what is captured is measured meanwhile.
public struct SoundTrial: Sendable {
    /// The card to try.
    public var configuration: AudioDeviceConfiguration
    /// How long from the moment at which sound flows, in seconds; at least two.
    public var seconds = 4
    /// Whether a tone is played; without one, silence is.
    public var playsTone = true

    /// The tone is there in every other half second.
    private static let frameSamples = 480
    private static let framesInHalf = 50
    /// How long a card may take until sound flows: a sound server may need a second and more to open both directions.
    private static let framesUntilFlow = 500

    /// Tries the card that `configuration` names.
    public init(_ configuration: AudioDeviceConfiguration) { self.configuration = configuration }

    /// Runs the trial; takes as long as ``seconds`` says, and the card until sound flows.
    public func run() throws(RealtimeError) -> SoundTrialResult {
        let box = EventBox()
        let device = try AudioDevice(configuration) { event in box.add(event) }
        guard var line = device.takeLine() else { preconditionFailure("a new device has its line") }
        var tone = ToneGenerator(frequencyHz: 440, levelDBFS: -20)
        var frame = [Int16](repeating: 0, count: Self.frameSamples)
        var (withTone, without) = (LevelMeter(), LevelMeter())
        let start = MonotonicClock.now
        var first: Int?
        var number = 0
        while number - (first ?? number) < max(2, seconds) * 100 {
            if first == nil, box.hasSettled || number >= Self.framesUntilFlow { first = number }
            let place = number - (first ?? number)
            let due = start.advanced(byNanoseconds: Int64(number) * 10_000_000)
            let left = MonotonicClock.now.nanoseconds(to: due)
            if left > 0 { usleep(UInt32(left / 1_000)) }
            number += 1
            let isOn = place / Self.framesInHalf % 2 == 1
            var space = frame.mutableSpan
            if isOn, playsTone { tone.fill(&space) } else { Silence.fill(&space) }
            line.play(frame.span, at: due)
            space = frame.mutableSpan
            line.capture(into: &space, at: due)
            // Captured sound lags behind played sound, so the first half of each half second is left out.
            guard first != nil, place % Self.framesInHalf >= Self.framesInHalf / 2 else { continue }
            if isOn { withTone.add(frame.span) } else { without.add(frame.span) }
        }
        let statistics = device.statistics
        device.stop()
        return result(box.events, statistics, withTone, without)
    }

    private func result(
        _ events: [CardEvent], _ statistics: CardStatistics, _ withTone: LevelMeter, _ without: LevelMeter
    ) -> SoundTrialResult {
        var result = SoundTrialResult(configuration: configuration)
        for event in events {
            switch event {
            case .opened(let playback, let capture):
                result.playback = playback
                result.capture = capture
            case .unavailable(let failure):
                let name = failure.direction == .playback ? configuration.playback : configuration.capture
                result.failure = AudioDeviceError(
                    device: name ?? "", direction: failure.direction, errno: failure.errno)
            case .stalled(let direction): result.stalled = direction
            case .running, .lost, .xruns, .suspended, .resumed, .priorityRefused, .report, .stopped: break
            }
        }
        result.statistics = statistics
        result.levelDBFS = without.rmsDBFS
        result.levelWithToneDBFS = withTone.rmsDBFS
        result.peakDBFS = max(without.peakDBFS, withTone.peakDBFS)
        return result
    }

    private final class EventBox: Sendable {
        private let list = Mutex<[CardEvent]>([])
        var events: [CardEvent] { list.withLock { $0 } }
        /// Whether sound flows, or it is known that it does not.
        var hasSettled: Bool {
            events.contains { event in
                switch event {
                case .running, .unavailable, .lost, .stalled: true
                case .opened, .xruns, .suspended, .resumed, .priorityRefused, .report, .stopped: false
                }
            }
        }
        func add(_ event: CardEvent) { list.withLock { $0.append(event) } }
    }
}

/// The result of a trial of a sound card.
public struct SoundTrialResult: Equatable, Sendable {
    /// The card that was tried.
    public var configuration: AudioDeviceConfiguration
    /// The granted playback settings; nil if it was not opened or not requested.
    public var playback: CardGrant?
    /// The granted capture settings; nil if it was not opened or not requested.
    public var capture: CardGrant?
    /// Why it could not be opened.
    public var failure: AudioDeviceError?
    /// The direction that did not move, if one did not.
    public var stalled: SoundDirection?
    /// How the card was doing at the end.
    public var statistics = CardStatistics()
    /// Level of what was captured without the tone.
    public var levelDBFS = -100.0
    /// Level of what was captured while the tone was played.
    public var levelWithToneDBFS = -100.0
    /// The loudest of what was captured.
    public var peakDBFS = -100.0

    init(configuration: AudioDeviceConfiguration) { self.configuration = configuration }

    /// Whether everything that was asked for has moved, and what was captured is not all zeros.
    public var isWell: Bool {
        failure == nil && stalled == nil && statistics.isRunning && (capture == nil || peakDBFS > -100)
    }

    /// Whether the microphone hears the loudspeaker.
    public var hearsItself: Bool { capture != nil && levelWithToneDBFS > levelDBFS + 6 && levelWithToneDBFS > -70 }

    /// Advice in whole sentences; empty if there is none.
    public var advice: [String] {
        if let failure, playback == nil, capture == nil { return ["\(failure)"] }
        var advice: [String] = []
        if let stalled {
            advice.append(
                "The card was opened for \(stalled) and moves nothing. Unplug it and plug it in again; or choose another "
                    + "device of it, for some are there without being wired to anything.")
        }
        if capture != nil, stalled == nil {
            if peakDBFS <= -100 {
                advice.append(
                    "The microphone gives nothing but zeros: it is muted, or not chosen. Look at the capture controls "
                        + "of `alsamixer` (F4), and at a switch on the headset.")
            } else if max(levelDBFS, levelWithToneDBFS) < -70 {
                advice.append("The microphone is very quiet: raise the capture level in `alsamixer` (F4).")
            } else if peakDBFS > -0.5 {
                advice.append("The microphone is too loud, and clips: lower the capture level in `alsamixer` (F4).")
            }
        }
        if playback != nil, capture != nil, stalled == nil, !hearsItself {
            advice.append(
                "The microphone does not hear the tone, as is right with a headset. If you did not hear it either, look "
                    + "at the playback controls of `alsamixer` (F3); MM beside a control says that it is muted.")
        }
        if statistics.playback.xruns + statistics.capture.xruns > 0 {
            advice.append(
                "The card's buffer ran empty or over. Allow real-time priority (CAP_SYS_NICE, or rtprio in limits.conf), "
                    + "or choose a longer period.")
        }
        return advice
    }
}
