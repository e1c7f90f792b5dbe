// What programs need of the modules below to use this one: with `import CallAgent` they name it without further imports.

/// Policies, invites, calls and their records.
@_exported public import CallControl
/// How secrets are handed over.
@_exported public import struct ConfigReader.Secret
/// The data of invites and signals.
@_exported public import enum JSON.JSONValue
/// What calls sound like, and what became of them.
@_exported public import MediaEngine
