internal import CallControl
internal import MediaEngine
internal import AudioKit

/// The sound card as a device's calls share it: how loud it is, and which tone its loudspeaker sounds.
struct CardControl {
    private enum FailureTone {
        case silent
        /// A call that this device made has failed for this reason; the task ends the tone.
        case sounding(CallEndReason, Task<Void, Never>)
    }

    private let engine: MediaEngine
    private let soundsTones: Bool
    /// How loud the card is; nil without one.
    private(set) var settings: SoundSettings?
    private var phases: [CallID: CallTonePolicy.Phase] = [:]
    private var failureTone = FailureTone.silent

    /// - Parameter sound: How loud the card is at the beginning; nil without one.
    init(_ configuration: DeviceConfiguration, sound: CallSound?, engine: MediaEngine) {
        self.engine = engine
        soundsTones = configuration.audio.soundsTones
        settings = sound.map(SoundSettings.init)
    }

    // MARK: How loud

    mutating func setMuted(_ isMuted: Bool) {
        settings?.isMuted = isMuted
        engine.setMuted(isMuted)
    }

    mutating func setVolume(decibels: Double) {
        settings?.volumeDB = SoundSettings.limited(decibels)
        engine.setVolume(decibels: decibels)
    }

    mutating func setMicrophoneVolume(decibels: Double) {
        settings?.microphoneDB = SoundSettings.limited(decibels)
        engine.setMicrophoneVolume(decibels: decibels)
    }

    // MARK: Tones

    /// A call that uses the card has reached another phase.
    mutating func note(_ phase: CallTonePolicy.Phase, of id: CallID) {
        guard soundsTones else { return }
        phases[id] = phase
        updateTone()
    }

    /// A call that used the card uses it no more.
    mutating func leave(_ id: CallID) {
        guard phases.removeValue(forKey: id) != nil else { return }
        updateTone()
    }

    /// A call that used the card has ended. A tone signals the failure of an unanswered call of this device.
    ///
    /// - Parameter endTone: Makes the task that ends this tone.
    mutating func noteEnd(
        of id: CallID, isOutgoing: Bool, reason: CallEndReason, endTone: () -> Task<Void, Never>
    ) {
        guard soundsTones else { return }
        let wasAnswered = phases.removeValue(forKey: id) == .talking
        if isOutgoing, !wasAnswered, CallTonePolicy.tone(of: reason) != nil {
            cancelFailureTone()
            failureTone = .sounding(reason, endTone())
        }
        updateTone()
    }

    /// Ends the tone of a failed call.
    mutating func endFailureTone() {
        failureTone = .silent
        updateTone()
    }

    /// Cancels the action at the end of the tone of a failed call.
    func cancelFailureTone() { failureToneEnd?.cancel() }

    /// Ends with the tone of a failed call; nil while there is none.
    var failureToneEnd: Task<Void, Never>? {
        guard case .sounding(_, let end) = failureTone else { return nil }
        return end
    }

    private func updateTone() {
        var phases = Array(phases.values)
        if case .sounding(let reason, _) = failureTone { phases.append(.refused(reason)) }
        engine.sound(CallTonePolicy.tone(for: phases))
    }
}

extension SoundSettings {
    /// How loud the card is to be at the beginning.
    init(_ sound: CallSound) {
        self.init(isMuted: sound.isMuted, volumeDB: sound.volumeDB, microphoneDB: sound.microphoneDB)
    }
}

extension CallSound {
    /// Is as loud as another time.
    mutating func use(_ settings: SoundSettings) {
        isMuted = settings.isMuted
        volumeDB = settings.volumeDB
        microphoneDB = settings.microphoneDB
    }
}
