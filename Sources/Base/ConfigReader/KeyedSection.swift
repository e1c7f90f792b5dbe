/// A section of a configuration whose keys are declared: values are read only through it.
///
/// It guarantees that missing required keys, and undeclared keys, are recorded as problems.
public struct KeyedSection<Keys: ConfigKeys>: Sendable {
    private let section: ConfigSection
    private let schema: KeySchema<Keys>

    /// Takes a whole section, and records missing and unknown keys.
    public init(_ section: ConfigSection, _ keys: Keys.Type, _ problems: inout [ConfigProblem]) {
        self.init(section, KeySchema(), &problems)
    }

    init(_ section: ConfigSection, _ schema: KeySchema<Keys>, _ problems: inout [ConfigProblem]) {
        self.section = section
        self.schema = schema
        section.require(schema.required, &problems)
        section.rejectUnknownKeys(known: schema.known, &problems)
    }

    private init(part section: ConfigSection, _ keys: Keys.Type) {
        self.section = section
        schema = KeySchema()
    }

    /// Takes a section of which only a part is needed: other keys are ignored.
    public static func part(of section: ConfigSection) -> Self { Self(part: section, Keys.self) }

    // MARK: - Values

    /// The value of a key; nil if there is none, or none that is allowed, of which a problem is noted.
    public func value<Value>(_ key: KeyPath<Keys, ConfigKey<Value>>, _ problems: inout [ConfigProblem]) -> Value? {
        schema.keys[keyPath: key].value(in: section, &problems)
    }

    /// The value of a key, or its default if there is none, or none that is allowed, of which a problem is noted.
    public func value<Value>(_ key: KeyPath<Keys, DefaultedKey<Value>>, _ problems: inout [ConfigProblem]) -> Value {
        let key = schema.keys[keyPath: key]
        return key.value(in: section, &problems) ?? key.fallback
    }

    /// Reads the value of a key into `place`, which stays unchanged if there is none, or none that is allowed.
    public func read<Key: ReadableKey>(
        _ key: KeyPath<Keys, Key>, into place: inout Key.Value, _ problems: inout [ConfigProblem]
    ) {
        if let value = schema.keys[keyPath: key].value(in: section, &problems) { place = value }
    }

    /// A secret that must be there.
    public func requiredSecret(
        _ key: KeyPath<Keys, ConfigKey<Secret>>, _ problems: inout [ConfigProblem]
    ) -> Secret? {
        guard let name = schema.keys[keyPath: key].entry.secret else {
            preconditionFailure("a key of a secret is made by ConfigKey.secret")
        }
        return section.secret(name, required: true, &problems)
    }

    /// The path of the file that a secret is in; nil if it is not given by one.
    public func file(of key: KeyPath<Keys, ConfigKey<Secret>>) -> String? {
        guard let name = schema.keys[keyPath: key].entry.names.first, section.has(name) else { return nil }
        var ignored: [ConfigProblem] = []  // Reading the secret reports them.
        return section.path(name, &ignored)
    }

    /// Records a problem if the value of `key` is not a readable regular file.
    public func isReadable(
        _ key: KeyPath<Keys, ConfigKey<String>>, _ problems: inout [ConfigProblem]
    ) -> Bool {
        guard let name = schema.keys[keyPath: key].entry.names.first else { return false }
        return section.path(name, readable: true, &problems) != nil
    }

    // MARK: - Keys

    /// The line on which the section begins; 1-based.
    public var line: Int { section.line }

    /// Whether a key is present, with any value; a secret, if its file or variable is named.
    public func has<Key: DeclaredKey>(_ key: KeyPath<Keys, Key>) -> Bool { name(key) != nil }

    /// The name under which a key is there.
    public func name<Key: DeclaredKey>(_ key: KeyPath<Keys, Key>) -> String? {
        schema.keys[keyPath: key].entry.names.first(where: section.has)
    }

    /// Whether the value of a key is a list, with or without elements.
    public func isList<Key: DeclaredKey>(_ key: KeyPath<Keys, Key>) -> Bool {
        guard let name = name(key), case .list? = section.entry(name)?.value else { return false }
        return true
    }

    /// Whether the file contains the secret itself.
    public func isInTheClear(_ key: KeyPath<Keys, ConfigKey<Secret>>) -> Bool {
        schema.keys[keyPath: key].entry.secret.map(section.has) ?? false
    }

    /// A problem with a key, on the key's line or, if it is absent, the section's.
    public func problem<Key: DeclaredKey>(_ key: KeyPath<Keys, Key>, _ message: String) -> ConfigProblem {
        section.problem(name(key) ?? schema.keys[keyPath: key].entry.names[0], message)
    }

    /// The same as a warning: the configuration can be used all the same.
    public func warning<Key: DeclaredKey>(_ key: KeyPath<Keys, Key>, _ message: String) -> ConfigProblem {
        section.warning(name(key) ?? schema.keys[keyPath: key].entry.names[0], message)
    }

    /// Notes a problem if a key is absent, where that depends on others; ``ConfigKey/required`` declares it for good.
    public func require<Key: DeclaredKey>(_ key: KeyPath<Keys, Key>, _ problems: inout [ConfigProblem]) {
        section.require(schema.keys[keyPath: key].entry.names, &problems)
    }

    /// Records a problem for a key that is present although nothing uses it.
    ///
    /// - Parameter reason: Its purpose, such as `is for source: play`.
    public func rejectIdle<Key: DeclaredKey>(
        _ key: KeyPath<Keys, Key>, _ reason: String, _ problems: inout [ConfigProblem]
    ) {
        section.rejectIdleKeys(schema.keys[keyPath: key].entry.names, reason, &problems)
    }

    /// Warns if every user of this machine may read the file at `path`, which holds a secret.
    public func warnOfReaders<Key: DeclaredKey>(
        _ key: KeyPath<Keys, Key>, _ path: String, _ problems: inout [ConfigProblem]
    ) {
        section.warnOfReaders(schema.keys[keyPath: key].entry.names[0], path, &problems)
    }

    /// The keys, from this section, whose values are other ones than in `other` (``ConfigSection/differences(from:)``).
    public func differences(from other: Self) -> [String] {
        let prefix = section.path.isEmpty ? "" : section.path + "."
        let others = other.section.path.isEmpty ? "" : other.section.path + "."
        return section.differences(from: other.section).map { key in
            if key.hasPrefix(prefix) { return String(key.dropFirst(prefix.count)) }
            return key.hasPrefix(others) ? String(key.dropFirst(others.count)) : key
        }
    }

    /// Which files are checked.
    public var fileChecks: FileChecks { section.fileChecks }
}
