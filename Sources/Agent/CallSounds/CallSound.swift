public import AudioPort
public import Core

/// The sound of a call for a participant that plays one sound after another, and hears the caller. Used by the calls' thread alone.
public struct CallSound: ~Copyable {
    /// What happened to the sound.
    public enum Event: Sendable {
        /// The first sound of the caller has come, so the call's media runs.
        case answered
        /// The caller's next samples, at the port's rate.
        case heard([Int16])
        /// The caller has begun or ended to speak, at this sample of all that were heard.
        case speech(isOver: Bool, at: Int)
        /// The sound of this number was played to its end.
        case ended(Int)
        /// It cannot be played on.
        case failed(Int, SoundFault)
        /// What was played when ``CallSound/playOut()`` was called has been heard.
        case playedOut
    }

    private var port: AudioPort
    /// The sound that is put into the port, with its number.
    private var source: (sound: SoundSource, number: Int)?
    /// Sounds whose end the port is to report, in order; nil for what is played out.
    private var ends: [Int?] = []
    private var isAnswered = false

    /// Takes a call's port.
    public init(port: consuming AudioPort) { self.port = port }

    /// Samples a second of what is heard.
    public var rate: Int { port.rate.rawValue }

    /// Plays a sound in place of the present one.
    public mutating func play(_ sound: SoundSource, number: Int) { source = (sound, number) }

    /// Stops what is played.
    public mutating func stop() {
        source = nil
        port.clear()
    }

    /// Puts no more into the port, which plays what it has.
    public mutating func drop() { source = nil }

    /// Has what was put into the port so far be heard, and puts nothing more into it.
    public mutating func playOut() {
        source = nil
        port.end()
        ends.append(nil)
    }

    /// Takes what the caller said, and what the port has played.
    public mutating func receive(at now: Instant, into events: inout [Event]) {
        var samples: [Int16] = []
        port.read(into: &samples)
        if !samples.isEmpty, !isAnswered {
            isAnswered = true
            events.append(.answered)
        }
        events.append(.heard(samples))
        var turns: [TurnEvent] = []
        port.takeTurns(into: &turns)
        for turn in turns {
            switch turn {
            case .speechBegan(let place): events.append(.speech(isOver: false, at: place - port.start))
            case .speechEnded(let place): events.append(.speech(isOver: true, at: place - port.start))
            case .lowered, .restored, .answered: continue
            }
        }
        var played: [PlaybackEvent] = []
        port.update(at: now, isFinal: source == nil, into: &played)
        for event in played {
            guard case .ended = event, !ends.isEmpty else { continue }
            events.append(ends.removeFirst().map { .ended($0) } ?? .playedOut)
        }
    }

    /// Puts more of the present sound into the port.
    public mutating func send(at now: Instant, into events: inout [Event]) {
        guard let (sound, number) = source else { return }
        switch sound.write(into: &port, at: now) {
        case .continuing: return
        case .ended:
            source = nil
            ends.append(number)
            port.end()
        case .failed(let fault):
            source = nil
            events.append(.failed(number, fault))
        }
    }
}
