// CallScript: a call by a script: its language, and the caller that follows it. Pure: samples in, samples and keys out.

internal import AudioKit

/// What a call does, line by line, and what it expects of the callee.
public struct CallScript: Equatable, Sendable {
    /// A line that does something.
    public struct Statement: Equatable, Sendable {
        /// Its line in the file, from 1.
        public let line: Int
        /// Its words.
        public let text: String
        /// What it does.
        public let action: Action
        /// How long it may take, in samples at 48 kHz.
        public let limit: Int
    }

    /// What a statement does. Lengths are samples at 48 kHz.
    public enum Action: Equatable, Sendable {
        /// Nothing, for a time.
        case pause(Int)
        /// Waits until something is heard.
        case waitForSound
        /// Waits until nothing was heard for that time.
        case waitForSilence(Int)
        /// Waits until the callee hangs up.
        case waitForHangUp
        case press(KeySequence)
        /// Plays a file.
        case play(String)
        /// Plays what the voice makes of a text.
        case say(String)
        /// Waits for the answer's end, and expects this length of it.
        case expectLength(ClosedRange<Int>)
        /// Waits for the answer's end, and expects it to be as like a file as this, 0…1.
        case expectLike(String, Double)
        /// Expects that nothing is heard for that time.
        case expectSilence(Int)
        /// Records what is heard to a file from now on; nil ends that.
        case record(String?)
        case hangUp
    }

    /// The statements, in order.
    public var statements: [Statement]
    /// The silence that ends an answer, in samples.
    public var silence = Self.usualSilence
    /// The command that speaks texts, word by word; empty without one.
    public var voice: [String] = []
    /// The line of ``voice``.
    public var voiceLine = 0
    /// Whether the caller hangs up after the last statement.
    public var endsCall = true

    /// The longest time in a script, and of what is recorded and compared: ten minutes, which are 58 MB.
    static let longestTime = AudioFormat.samples(milliseconds: 600_000)
    static let usualSilence = AudioFormat.samples(milliseconds: 1_000)
    static let usualLimit = AudioFormat.samples(milliseconds: 30_000)
    static let usualLikeness = 0.7

    /// A script that presses keys, and leaves the call as it is then.
    ///
    /// - Parameter keys: Each wait for a prompt in it is limited to 30 s.
    public init(pressing keys: KeySequence) {
        statements = [
            Statement(line: 1, text: "press \(keys.text)", action: .press(keys), limit: Self.usualLimit)
        ]
        endsCall = false
    }

    init(statements: [Statement]) { self.statements = statements }

    /// Files that are played, or compared with, with the lines that name them.
    public var soundFiles: [(line: Int, path: String)] {
        statements.compactMap { statement in
            switch statement.action {
            case .play(let path), .expectLike(let path, _): (statement.line, path)
            case .pause, .waitForSound, .waitForSilence, .waitForHangUp, .press, .say, .expectLength, .expectSilence,
                .record, .hangUp:
                nil
            }
        }
    }

    /// Texts that are spoken, with their lines.
    public var texts: [(line: Int, text: String)] {
        statements.compactMap { statement in
            if case .say(let text) = statement.action { (statement.line, text) } else { nil }
        }
    }

    /// Files that are written, with their lines.
    public var recordings: [(line: Int, path: String)] {
        statements.compactMap { statement in
            if case .record(let path?) = statement.action { (statement.line, path) } else { nil }
        }
    }
}
