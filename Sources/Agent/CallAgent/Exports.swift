// Re-exports what programs need of the modules below, so that `import CallAgent` is enough.

/// Policies, invites, calls and their records.
@_exported public import CallControl
/// How secrets are handed over.
@_exported public import struct ConfigReader.Secret
/// The data of invites and signals.
@_exported public import enum JSON.JSONValue
/// Sound settings of calls, and their reports.
@_exported public import CallMedia
/// Why recordings have ended.
@_exported public import enum Call.RecordingEndReason
/// The names of calls, and their sound in this process.
@_exported public import struct CallParticipation.CallID
@_exported public import class CallParticipation.CallPort
@_exported public import struct CallParticipation.CallPortError
/// Calls that are handed over to a person.
@_exported public import struct CallParticipation.HandoverReport
@_exported public import struct CallParticipation.HandoverRequest
@_exported public import enum CallParticipation.HandoverState
@_exported public import enum CallParticipation.PortEvent
@_exported public import struct CallParticipation.PortPlan
@_exported public import enum AudioPort.BargeInMode
@_exported public import struct AudioPort.PortFormat
@_exported public import enum AudioPort.PortRate
@_exported public import MediaEngine
