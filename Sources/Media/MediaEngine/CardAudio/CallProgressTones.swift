internal import AudioKit

/// The call tones of one country, ready to sound.
struct CallProgressTones: Sendable {
    private let dial: CallToneGenerator
    private let ringBack: CallToneGenerator
    private let busy: CallToneGenerator
    private let congestion: CallToneGenerator
    private let ring: CallToneGenerator
    private var current: CallToneGenerator?
    private var tone: CallTone?

    init(_ set: CallToneSet) {
        dial = CallToneGenerator(set.pattern(.dial))
        ringBack = CallToneGenerator(set.pattern(.ringBack))
        busy = CallToneGenerator(set.pattern(.busy))
        congestion = CallToneGenerator(set.pattern(.congestion))
        ring = CallToneGenerator(set.pattern(.ring), levelDBFS: -10)
    }

    var isSounding: Bool {
        @_noAllocation @_noLocks get { if case .some = tone { true } else { false } }
    }

    /// Begins a tone, or ends all; a tone that sounds already continues.
    @_noAllocation @_noLocks
    mutating func sound(_ tone: CallTone?) {
        guard let tone else {
            self.tone = nil
            return
        }
        if let before = self.tone, before.index == tone.index { return }
        self.tone = tone
        switch tone {
        case .dial: current = dial
        case .ringBack: current = ringBack
        case .busy: current = busy
        case .congestion: current = congestion
        case .ring: current = ring
        }
    }

    /// The next samples of the tone that sounds; low beneath a call.
    @_noAllocation @_noLocks
    mutating func fill(_ samples: inout MutableSpan<Int16>, isInCall: Bool) {
        current?.fill(&samples)
        guard isInCall else { return }
        // 18 dB less.
        for index in 0..<samples.count { samples[index] /= 8 }
    }
}

extension CallTone {
    /// Distinguishes tones without comparing names.
    fileprivate var index: Int {
        @_noAllocation @_noLocks get {
            switch self {
            case .dial: 0
            case .ringBack: 1
            case .busy: 2
            case .congestion: 3
            case .ring: 4
            }
        }
    }
}
