// Identifiers: the one form of every name from outside, for client, wire, exchange and database.

/// Limits of an ``Identifier``.
public enum IdentifierLimits {
    /// Bytes of UTF-8.
    public static let bytes = 256
}
