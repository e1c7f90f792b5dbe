internal import AudioKit
internal import Call
internal import CallControl
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

extension DeviceConfiguration {
    /// What is configured for a call that begins now.
    ///
    /// - Parameters:
    ///   - name: Of its behaviour.
    ///   - longest: The longest time for which it may be established; nil as its behaviour has it.
    func rules(for audio: AudioBehaviour, behaviour name: String = "", longest: Duration? = nil) -> CallRules {
        var rules = CallRules(behaviour(named: name), for: audio, silenceTimeout: media.silenceTimeout)
        rules.behaviour = name
        if let longest { rules.maximumDuration = longest }
        return rules
    }

    /// Times and limits of the calls' machines.
    var callTimings: CallTimings {
        var timings = CallTimings()
        timings.invite = invites.timings
        timings.invite.answerLimit = answer.ringLimit
        // What a program or bot was promised ends before the machine's own limit, so that the fallback is still played.
        timings.prepareTimeout += participantTimeout
        return timings
    }

    /// The same for invites that are no calls.
    var inviteTimings: InviteTimings {
        var timings = invites.timings
        if let limit = answer.inviteLimit { timings.answerLimit = limit }
        return timings
    }
}
