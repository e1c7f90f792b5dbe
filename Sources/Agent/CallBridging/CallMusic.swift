public import CallParticipation
public import Core

/// What calls hear that wait: music, again and again, or a whisper, once.
///
/// Files are opened elsewhere, which takes time. So what a call is to hear now and what is played to it are two facts, and this brings the
/// second to the first. A file that a user plays meanwhile ends what is played here.
public struct CallMusic: Sendable {
    /// What happened.
    public enum Input: Equatable, Sendable {
        /// The call is to hear this file, once or again and again; of a call that is to be joined to another one, until that is heard.
        case play(String, to: CallID, repeats: Bool, isUntilJoined: Bool = false)
        /// The call is to hear none.
        case stop(CallID)
        /// The file is open, and is heard from now on.
        case began(String, in: CallID)
        /// The file cannot be played.
        case failed(String, in: CallID)
        /// A file of the call is no longer heard: it was played to its end, or not.
        case ended(String, in: CallID, isPlayed: Bool)
        /// The call has ended.
        case callEnded(CallID)
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Open the file, and play it. ``Input/began(_:in:)`` or ``Input/failed(_:in:)`` follows.
        case play(String, to: CallID, isUntilJoined: Bool = false)
        /// Stop the music or whisper of the call.
        case stop(CallID)
        /// What was to be heard once has ended, or could not be played.
        case finished(CallID)
    }

    /// A shorter file is not repeated: it would keep a thread busy.
    public static let shortestRepeated = Duration.milliseconds(500)

    private struct Sound: Equatable {
        let path: String
        let repeats: Bool
        let isUntilJoined: Bool

        /// Whether what is played for the other one is what this one wants.
        func isPlayed(by other: Sound) -> Bool { path == other.path && isUntilJoined == other.isUntilJoined }
    }

    private enum Playing {
        case nothing
        case opening(Sound)
        case playing(Sound, since: Instant)
    }

    private struct Listener {
        var sound: Sound?
        var playing = Playing.nothing
    }

    private var listeners: [CallID: Listener] = [:]

    /// Plays nothing.
    public init() {}

    /// Whether a call hears something, or is about to.
    public func isHeard(in call: CallID) -> Bool { listeners[call]?.sound != nil }

    /// Whether the call hears this file as music or whisper.
    public func isPlaying(_ path: String, in call: CallID) -> Bool {
        if case .playing(let sound, _)? = listeners[call]?.playing { sound.path == path } else { false }
    }

    /// Takes what happened.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .play(let path, let call, let repeats, let isUntilJoined):
            let sound = Sound(path: path, repeats: repeats, isUntilJoined: isUntilJoined)
            listeners[call, default: Listener()].sound = sound
            if case .opening? = listeners[call]?.playing { return }
            open(sound, in: call, into: &outbox)
        case .stop(let call):
            guard listeners[call]?.sound != nil else { return }
            listeners[call]?.sound = nil
            if case .playing? = listeners[call]?.playing { outbox.append(.stop(call)) }
        case .began(let path, let call): noteBeginning(of: path, in: call, at: now, into: &outbox)
        case .failed(let path, let call):
            guard case .opening(let sound)? = listeners[call]?.playing, sound.path == path else { return }
            close(sound, in: call, into: &outbox)
        case .ended(let path, let call, let isPlayed):
            noteEnd(of: path, in: call, isPlayed: isPlayed, at: now, into: &outbox)
        case .callEnded(let call): listeners[call] = nil
        }
    }

    private mutating func open(_ sound: Sound, in call: CallID, into outbox: inout [Output]) {
        listeners[call]?.playing = .opening(sound)
        outbox.append(.play(sound.path, to: call, isUntilJoined: sound.isUntilJoined))
    }

    /// What was opened is what was wanted then, which may have changed.
    private mutating func noteBeginning(
        of path: String, in call: CallID, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .opening(let opened)? = listeners[call]?.playing, opened.path == path else { return }
        listeners[call]?.playing = .playing(opened, since: now)
        switch listeners[call]?.sound {
        case let wanted?: if !wanted.isPlayed(by: opened) { open(wanted, in: call, into: &outbox) }
        case nil: outbox.append(.stop(call))
        }
    }

    private mutating func noteEnd(
        of path: String, in call: CallID, isPlayed: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .playing(let played, let since)? = listeners[call]?.playing, played.path == path else { return }
        let sound = listeners[call]?.sound
        let isLong = since.duration(to: now) >= Self.shortestRepeated
        if isPlayed, isLong, let sound, sound.repeats { return open(sound, in: call, into: &outbox) }
        close(played, in: call, into: &outbox)
    }

    /// The file is not played any more.
    private mutating func close(_ closed: Sound, in call: CallID, into outbox: inout [Output]) {
        listeners[call]?.playing = .nothing
        guard let sound = listeners[call]?.sound else { return listeners[call] = nil }
        guard sound.isPlayed(by: closed) else { return open(sound, in: call, into: &outbox) }
        listeners[call] = nil
        if !sound.repeats { outbox.append(.finished(call)) }
    }
}
