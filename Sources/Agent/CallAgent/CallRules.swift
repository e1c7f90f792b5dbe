internal import AudioKit
internal import CallMedia

/// What the configuration said of a call when it began. Another configuration changes calls that begin later.
struct CallRules: Equatable, Sendable {
    /// The call ends when the configured file has been played.
    private(set) var hangsUpAfterFile = false
    /// The longest time for which media flows.
    private(set) var maximumDuration: Duration?
    /// How long nothing may arrive from the peer of a call without ICE before it is probed; nil: it is not.
    private(set) var silenceTimeout: Duration?
    /// The format of recordings that begin in mid-call.
    private(set) var recordingFormat = RecordingFormat()

    /// No rules.
    init() {}

    /// - Parameter audio: What the call plays, which need not be what is configured.
    init(_ behaviour: BehaviourConfiguration, for audio: AudioBehaviour, silenceTimeout: Duration? = nil) {
        self.silenceTimeout = silenceTimeout
        hangsUpAfterFile = behaviour.hangsUpAfterFile && audio.source == behaviour.audio(named: "").source
        maximumDuration = behaviour.maximumDuration
        recordingFormat = behaviour.recordingFormat
    }
}
