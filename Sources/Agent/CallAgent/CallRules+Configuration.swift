internal import AudioKit
internal import Call
internal import CallMedia

extension CallRules {
    /// - Parameter audio: What the call plays, which need not be what is configured.
    init(_ behaviour: BehaviourConfiguration, for audio: AudioBehaviour, silenceTimeout: Duration? = nil) {
        self.init()
        self.silenceTimeout = silenceTimeout
        hangsUpAfterFile = behaviour.hangsUpAfterFile && audio.source == behaviour.audio(named: "").source
        maximumDuration = behaviour.maximumDuration
        recordingFormat = behaviour.recordingFormat
    }
}
