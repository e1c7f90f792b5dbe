public import AudioKit
package import CallMedia
internal import Core

/// What the configuration said of a call when it began. Another configuration changes calls that begin later.
public struct CallRules: Equatable, Sendable {
    /// Whether the call ends when its file has been played.
    public var hangsUpAfterFile = false
    /// The longest time for which the call is established; nil for any.
    public var maximumDuration: Duration?
    /// How long nothing may arrive from the peer of a call without ICE before it is probed; nil: it is not.
    public var silenceTimeout: Duration?
    /// The format of recordings that begin in mid-call.
    public var recordingFormat = RecordingFormat()

    /// The name of the call's behaviour; empty for that of the section `behaviour`.
    public var behaviour = ""

    /// No rules.
    public init() {}
}

/// What a call plays and records, and by which rules.
package struct CallPart: Equatable, Sendable {
    /// What it plays and records.
    package var audio: AudioBehaviour
    /// What the configuration said of it.
    package var rules: CallRules

    /// Joins them.
    package init(_ audio: AudioBehaviour, _ rules: CallRules) {
        self.audio = audio
        self.rules = rules
    }
}
