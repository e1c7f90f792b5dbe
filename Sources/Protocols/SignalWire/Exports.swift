/// The names in every message.
@_exported public import Identifiers
