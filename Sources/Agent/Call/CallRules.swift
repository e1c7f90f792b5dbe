public import AudioKit
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
