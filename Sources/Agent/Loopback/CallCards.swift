public import AudioDevices
internal import AudioKit
internal import LoopbackAnalysis
internal import Realtime

/// The cards that measure a call from outside: the mouth plays the test signal into the microphone of the call's card, and
/// the ear captures what a loudspeaker plays. They are no part of the call, and what they add to its delay is taken out.
public actor CallCards {
    /// The captured signal.
    public struct Heard: Sendable {
        /// At 48 kHz, from the moment at which the signal's first sample was handed over.
        public let samples: [Int16]
        /// The measuring cards' own delay, as reported by libasound, in milliseconds; nil if they have not run.
        public let ownMilliseconds: Double?
        let alignment: BlockAlignment
        /// How much faster the ear's clock is than the mouth's, in samples a sample.
        let clockRate: Double
        /// Captured samples in which the measuring cards were interrupted.
        let interruptions: [Range<Int>]
        let facts: [LoopbackRun.Fact]
    }

    /// Cards that have been opened, with what they are to play.
    private var session: CardSession
    private let signal: LoopbackSignal
    private let configuration: AudioDeviceConfiguration
    private let playedSamples: Int

    /// The measured value is never far from this.
    static let maximumDelay = 3 * AudioFormat.sampleRate

    /// Opens the cards; nothing sounds yet.
    ///
    /// - Parameters:
    ///   - loopback: What is played.
    ///   - cards: The mouth (`playback`) and the ear (`capture`), and how far the mouth's buffer is filled.
    ///   - call: The call's own cards, if the call belongs to this process; they are tested too.
    /// - Throws: If a card cannot be used, or the call would play on the mouth or capture from the ear.
    public init(
        _ loopback: CallLoopback, on cards: CardLoopback, besides call: AudioDeviceConfiguration?
    ) throws(LoopbackError) {
        if let call { try Self.checkApart(cards.configuration, call) }
        (signal, playedSamples) = (loopback.signal, loopback.playedSamples)
        configuration = cards.configuration
        session = try CardSession(cards, loopback.signal, followedBy: loopback.following) { error in
            LoopbackError(.cardUnusable, "\(error) \(Self.role(error.direction))")
        }
        if let call { try Self.tryOut(call) }
    }

    private static func role(_ direction: SoundDirection) -> String {
        switch direction {
        case .playback:
            "It is to be the mouth (--mouth): a card that plays, with its output wired to the microphone of the call's card."
        case .capture:
            "It is to be the ear (--ear; without it, the card of --mouth): a card that captures, with its input wired to the "
                + "call's loudspeaker."
        }
    }

    /// The call and the measurement may share a card, but not one direction of it.
    private static func checkApart(_ cards: AudioDeviceConfiguration, _ call: AudioDeviceConfiguration)
        throws(LoopbackError)
    {
        let directory = CardDirectory()
        for (measuring, calling, what) in [
            (
                cards.playback, call.playback,
                "the mouth (--mouth) and the call (--device, --playback) would both play on"
            ),
            (cards.capture, call.capture, "the ear (--ear) and the call (--device, --capture) would both capture from"),
        ] {
            guard let measuring, let calling, directory.isSamePCM(measuring, calling) else { continue }
            let names = measuring == calling ? "\"\(measuring)\"" : "\"\(measuring)\", which is \"\(calling)\""
            throw LoopbackError(
                .cardsNotApart,
                "\(what) \(names), and the measurement would hear itself and not the call. Measure with another card: its "
                    + "output wired to the microphone of the call's card, its input to the loudspeaker. `handset devices` "
                    + "lists the cards that are there.")
        }
    }

    /// A call continues without a card; a measurement of it should not begin.
    private static func tryOut(_ call: AudioDeviceConfiguration) throws(LoopbackError) {
        do throws(AudioDeviceError) {
            _ = try DuplexCard(call)
        } catch {
            throw LoopbackError(
                .cardUnusable,
                "\(error) It is to be the call's card (--device, --playback, --capture, or `audio` of the configuration)."
            )
        }
    }

    /// Plays the whole signal and the speech, and captures what returns; once.
    ///
    /// - Parameters:
    ///   - ownMilliseconds: The cards' own delay, for the report; nil: as reported by libasound.
    ///   - follows: Whether `tell` is given states, which costs some of the processor.
    ///   - mustStop: Called some fifty times a second.
    public func measure(
        ownMilliseconds: Double?, follows: Bool, mustStop: @Sendable () -> Bool,
        tell: @Sendable (LiveView.State) -> Void
    ) async throws(LoopbackError) -> Heard {
        // The last samples return later by the call's delay.
        let end = playedSamples + AudioFormat.sampleRate * 5 / 4
        var recorder = CardRecorder(
            signal, maximumDelay: Self.maximumDelay, playedSamples: playedSamples, follows: follows)
        try session.start()
        while recorder.samples.count < end, !mustStop() {
            if var state = try recorder.add(session.exchange(), session.stream.statistics, configuration) {
                state.timing = state.timing.aligned(to: session.stream.alignment, clockRate: session.stream.clockRate)
                    .without(
                        (ownMilliseconds ?? session.facts.ownMilliseconds ?? 0) * Double(AudioFormat.sampleRate) / 1_000
                    )
                tell(state)
            }
            // The rings hold hundreds of these.
            if !session.hasMore { try? await Task.sleep(for: .milliseconds(20)) }
        }
        session.stop()
        let facts = session.facts
        return Heard(
            samples: recorder.samples, ownMilliseconds: facts.ownMilliseconds, alignment: session.stream.alignment,
            clockRate: session.stream.clockRate, interruptions: session.stream.interruptions,
            facts: facts.factsOfMeasuringCards)
    }
}
