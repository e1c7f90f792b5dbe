/// One key of a section, declared once: reading, the check of its value, the check for unknown keys and
/// docs/configuration.md all come from the declaration.
///
/// The factories in `ConfigKey+Kinds.swift` make one. Without ``defaulting(to:)`` the key's absence is a separate
/// value.
public struct ConfigKey<Value: Sendable>: ReadableKey {
    /// The key's declaration.
    public private(set) var entry: ConfigKeyEntry
    let read: @Sendable (ConfigSection, inout [ConfigProblem]) -> Value?
    /// A value as written in a file; nil for values that have no short form.
    let show: @Sendable (Value) -> String?

    init(
        _ entry: ConfigKeyEntry, show: @escaping @Sendable (Value) -> String? = { _ in nil },
        read: @escaping @Sendable (ConfigSection, inout [ConfigProblem]) -> Value?
    ) {
        self.entry = entry
        self.show = show
        self.read = read
    }

    /// The key must be there.
    public var required: Self { with { $0.fallback = .required } }

    /// Describes the value of an absent key as text, such as `an eighth of all`.
    public func unset(_ words: String) -> Self { with { $0.fallback = .words(words) } }

    /// The value if the key is absent or its value is not allowed.
    public func defaulting(to value: Value) -> DefaultedKey<Value> {
        DefaultedKey(key: with { $0.fallback = .value(show(value) ?? "") }, fallback: value)
    }

    /// The value; nil if there is none, or none that is allowed, of which a problem is noted.
    public func value(in section: ConfigSection, _ problems: inout [ConfigProblem]) -> Value? {
        read(section, &problems)
    }

    private func with(_ change: (inout ConfigKeyEntry) -> Void) -> Self {
        var copy = self
        change(&copy.entry)
        return copy
    }
}

/// A key that always has a value.
public struct DefaultedKey<Value: Sendable>: ReadableKey {
    let key: ConfigKey<Value>
    let fallback: Value

    /// The key's declaration.
    public var entry: ConfigKeyEntry { key.entry }

    /// The value; nil if there is none, or none that is allowed, of which a problem is noted.
    public func value(in section: ConfigSection, _ problems: inout [ConfigProblem]) -> Value? {
        key.value(in: section, &problems)
    }
}

/// A key whose value can be read.
public protocol ReadableKey<Value>: DeclaredKey {
    associatedtype Value: Sendable

    /// The value; nil if there is none, or none that is allowed, of which a problem is noted.
    func value(in section: ConfigSection, _ problems: inout [ConfigProblem]) -> Value?
}

/// A key that a section knows, of any type of value.
public protocol DeclaredKey: Sendable {
    /// The key's declaration.
    var entry: ConfigKeyEntry { get }
}

/// A key's declaration, for documentation and checks.
public struct ConfigKeyEntry: Sendable {
    /// The value of an absent key.
    public enum Fallback: Equatable, Sendable {
        /// No description is needed.
        case nothing
        /// The key must be there.
        case required
        /// This value, as written in a file.
        case value(String)
        /// This description.
        case words(String)
    }

    /// The keys of a section under this key.
    public enum Inner: Sendable {
        /// It has a value and no section.
        case none
        /// It is a section with these keys.
        case section([ConfigKeyEntry])
        /// It is a list of sections with these keys.
        case list([ConfigKeyEntry])
    }

    /// The names of the key in a file: one, except for a secret, which has `NAME_file` and `NAME_env`.
    public let names: [String]
    /// The kind of value, such as `whole number`.
    public let kind: String
    /// The unit of a number, such as `ms`; nil for other values.
    public var unit: String?
    /// The allowed values, such as `1 to 100`; nil if the kind says it.
    public var range: String?
    /// Its purpose: a line of text, without a full stop.
    public let text: String
    /// The value of an absent key.
    public var fallback = Fallback.nothing
    /// The keys under it.
    public var inner = Inner.none
    /// A secret's name, which as a key would hold the secret itself.
    var secret: String?
    /// Whether that name is suggested, for the problem that names what to write instead.
    var suggestsSecret = false

    init(_ names: [String], _ kind: String, _ text: String) {
        self.names = names
        self.kind = kind
        self.text = text
    }

    /// The names that a slip may have been meant for.
    var known: [String] { suggestsSecret ? names + (secret.map { [$0] } ?? []) : names }
}

/// The keys of one kind of section, each a stored property: a key that can be asked for is known and documented.
///
/// ```swift
/// struct Keys: ConfigKeys {
///     let port = ConfigKey.integer("port", in: 0...65_535, "UDP port; 0 for any").defaulting(to: 0)
/// }
/// ```
public protocol ConfigKeys: Sendable {
    /// Declares the keys.
    init()

    /// The keys, in the order of the documentation: the stored properties, unless a type overrides it.
    var declared: [any DeclaredKey] { get }
}

extension ConfigKeys {
    /// The stored properties.
    public var declared: [any DeclaredKey] {
        Mirror(reflecting: self).children.map { child in
            guard let key = child.value as? any DeclaredKey else {
                preconditionFailure("\(Self.self).\(child.label ?? "?") is no key: a type of keys has nothing else")
            }
            return key
        }
    }

    /// The declarations of the keys.
    public static var entries: [ConfigKeyEntry] { Self().declared.map(\.entry) }
}

/// The keys of a kind of section, made once for all sections of the kind.
final class KeySchema<Keys: ConfigKeys>: Sendable {
    let keys: Keys
    let entries: [ConfigKeyEntry]
    let known: [String]
    /// Except secrets: reading a secret reports how it can be given.
    let required: [String]

    init() {
        keys = Keys()
        entries = keys.declared.map(\.entry)
        known = entries.flatMap(\.known)
        required = entries.filter { $0.fallback == .required && $0.secret == nil }.flatMap(\.names)
    }
}
