/// Why a text is no value of a key.
public struct ConfigValueFault: Error, Equatable, Sendable {
    /// What the value must be, or what is wrong with it, to be read after the key.
    public let message: String

    /// Makes a fault.
    public init(_ message: String) { self.message = message }
}

/// Numbers, words and texts. Each is declared by its name, its range and, last, its purpose.
extension ConfigKey {
    /// Text of at least one character.
    public static func string(_ name: String, _ text: String) -> Self where Value == String {
        Self(ConfigKeyEntry([name], "text", text), show: \.self) { $0.string(name, &$1) }
    }

    /// A whole number in `range`.
    public static func integer(_ name: String, in range: ClosedRange<Int>, unit: String? = nil, _ text: String) -> Self
    where Value == Int {
        var entry = ConfigKeyEntry([name], "whole number", text)
        entry.unit = unit
        entry.range = "\(range.lowerBound) to \(range.upperBound)"
        return Self(entry, show: { "\($0)" }) { $0.integer(name, in: range, &$1) }
    }

    /// A decimal number in `range`.
    public static func number(
        _ name: String, in range: ClosedRange<Double>, unit: String? = nil, _ text: String
    ) -> Self where Value == Double {
        Self(decimalEntry(name, range, unit, text), show: ConfigSection.short) { $0.number(name, in: range, &$1) }
    }

    /// A duration given as a whole number of milliseconds, for a key whose name ends in `_ms`.
    public static func milliseconds(_ name: String, in range: ClosedRange<Int>, _ text: String) -> Self
    where Value == Duration {
        var entry = ConfigKeyEntry([name], "whole number", text)
        entry.unit = "ms"
        entry.range = "\(range.lowerBound) to \(range.upperBound)"
        return Self(entry, show: { ConfigSection.short($0 / .milliseconds(1)) }) {
            $0.milliseconds(name, in: range, &$1)
        }
    }

    /// A duration given as a number of seconds, which may have a fraction.
    public static func seconds(_ name: String, in range: ClosedRange<Double>, _ text: String) -> Self
    where Value == Duration {
        Self(decimalEntry(name, range, "s", text), show: { ConfigSection.short($0 / .seconds(1)) }) {
            $0.seconds(name, in: range, &$1)
        }
    }

    /// `true` or `false`.
    public static func bool(_ name: String, _ text: String) -> Self where Value == Bool {
        Self(ConfigKeyEntry([name], "true or false", text), show: { "\($0)" }) { $0.bool(name, &$1) }
    }

    /// One of the names of an enumeration.
    public static func choice(_ name: String, of choices: Value.Type, _ text: String) -> Self
    where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
        var entry = ConfigKeyEntry([name], "word", text)
        entry.range = words(choices.allCases)
        return Self(entry, show: \.rawValue) { $0.enumeration(name, of: choices, &$1) }
    }

    /// An absolute URL with one of `schemes`. Only its form is checked.
    public static func url(_ name: String, schemes: [String], _ text: String) -> Self where Value == String {
        var entry = ConfigKeyEntry([name], "URL", text)
        entry.range = schemes.map { "\($0)://" }.joined(separator: ", ")
        return Self(entry, show: \.self) { $0.url(name, schemes: schemes, &$1) }
    }

    /// A host and a port, `host:port`; port 0 is the system's choice.
    public static func endpoint(_ name: String, _ text: String) -> Self where Value == ConfigEndpoint {
        Self(ConfigKeyEntry([name], "HOST:PORT", text), show: \.description) { $0.endpoint(name, &$1) }
    }

    /// A text that `parse` turns into a value.
    ///
    /// - Parameters:
    ///   - kind: What the text is, such as `SHA-256 digest`.
    ///   - range: The allowed values, as text; nil if the kind says it.
    ///   - show: Writes a value as in a file.
    public static func parsed(
        _ name: String, _ kind: String, in range: String? = nil, unit: String? = nil, _ text: String,
        show: @escaping @Sendable (Value) -> String? = { _ in nil },
        _ parse: @escaping @Sendable (String) throws(ConfigValueFault) -> Value
    ) -> Self {
        var entry = ConfigKeyEntry([name], kind, text)
        entry.range = range
        entry.unit = unit
        return Self(entry, show: show) { section, problems in
            section.string(name, &problems).flatMap { section.parse($0, at: name, &problems, parse) }
        }
    }

    private static func decimalEntry(
        _ name: String, _ range: ClosedRange<Double>, _ unit: String?, _ text: String
    ) -> ConfigKeyEntry {
        var entry = ConfigKeyEntry([name], "number", text)
        entry.unit = unit
        entry.range = "\(ConfigSection.short(range.lowerBound)) to \(ConfigSection.short(range.upperBound))"
        return entry
    }
}

/// Lists and sections.
extension ConfigKey {
    /// Texts.
    public static func list(_ name: String, _ text: String) -> Self where Value == [String] {
        Self(ConfigKeyEntry([name], "list", text), show: brackets) { $0.list(name, &$1) }
    }

    /// Texts, each of which `parse` turns into an element. Invalid ones are recorded as problems and left out.
    ///
    /// - Parameter kind: What the texts are, such as `names`.
    public static func list<Element>(
        _ name: String, of kind: String, _ text: String,
        _ parse: @escaping @Sendable (String) throws(ConfigValueFault) -> Element
    ) -> Self where Value == [Element] {
        let entry = ConfigKeyEntry([name], "list of \(kind)", text)
        return Self(entry, show: { brackets($0.map { "\($0)" }) }) { section, problems in
            section.list(name, &problems)?.compactMap { section.parse($0, at: name, &problems, parse) }
        }
    }

    /// Names of an enumeration, at least one.
    public static func choices<Choice>(_ name: String, of choices: Choice.Type, _ text: String) -> Self
    where
        Value == [Choice], Choice: CaseIterable & RawRepresentable & Sendable, Choice.RawValue == String,
        Choice.AllCases: Sendable
    {
        var entry = ConfigKeyEntry([name], "list of words", text)
        entry.range = words(choices.allCases)
        return Self(entry, show: { brackets($0.map(\.rawValue)) }) { section, problems in
            guard let names = section.list(name, &problems) else { return nil }
            let known = choices.allCases.map(\.rawValue).joined(separator: ", ")
            if names.isEmpty { problems.append(section.problem(name, "needs at least one of \(known)")) }
            return names.compactMap { text in
                if let choice = Choice(rawValue: text) { return choice }
                problems.append(section.problem(name, "\"\(text)\" is unknown; allowed: \(known)"))
                return nil
            }
        }
    }

    /// A section with its own keys.
    public static func section<Keys>(_ name: String, _ keys: Keys.Type, _ text: String) -> Self
    where Value == KeyedSection<Keys> {
        let schema = KeySchema<Keys>()
        var entry = ConfigKeyEntry([name], "section", text)
        entry.inner = .section(schema.entries)
        return Self(entry) { section, problems in
            section.section(name, &problems).map { KeyedSection($0, schema, &problems) }
        }
    }

    /// A list of sections with their own keys.
    public static func sections<Keys>(_ name: String, _ keys: Keys.Type, _ text: String) -> Self
    where Value == [KeyedSection<Keys>] {
        let schema = KeySchema<Keys>()
        var entry = ConfigKeyEntry([name], "list of sections", text)
        entry.inner = .list(schema.entries)
        return Self(entry) { section, problems in
            section.sections(name, &problems)?.map { KeyedSection($0, schema, &problems) }
        }
    }

    private static func brackets(_ texts: [String]) -> String { "[\(texts.joined(separator: ", "))]" }

    private static func words<Choice>(_ choices: some Collection<Choice>) -> String
    where Choice: RawRepresentable, Choice.RawValue == String {
        choices.map(\.rawValue).joined(separator: ", ")
    }
}

/// Files, programs and secrets.
extension ConfigKey {
    /// The path of a file, taken from the configuration's folder unless it is absolute.
    ///
    /// - Parameter readable: Also note a problem if it is no regular file that may be read.
    public static func path(_ name: String, readable: Bool = false, _ text: String) -> Self where Value == String {
        Self(ConfigKeyEntry([name], "file", text)) { $0.path(name, readable: readable, &$1) }
    }

    /// The path of a file that the program writes to, and creates if it does not exist.
    ///
    /// - Parameter advice: What to try if it cannot be written to, a whole sentence.
    public static func outputFile(_ name: String, advice: String = "", _ text: String) -> Self where Value == String {
        Self(ConfigKeyEntry([name], "file to write", text)) { $0.outputFile(name, advice: advice, &$1) }
    }

    /// The path of a folder that the program writes files into, and makes if it is not there.
    public static func outputFolder(_ name: String, _ text: String) -> Self where Value == String {
        Self(ConfigKeyEntry([name], "folder to write", text)) { $0.outputFolder(name, &$1) }
    }

    /// The path of a socket that the program listens at, or `word`, which is no path.
    public static func outputSocket(_ name: String, or word: String, _ text: String) -> Self where Value == String {
        Self(ConfigKeyEntry([name], "`\(word)` or a socket's path", text)) { section, problems in
            section.string(name, &problems) == word ? word : section.outputSocket(name, &problems)
        }
    }

    /// A program and its arguments; the program is searched like in a shell.
    public static func command(_ name: String, _ text: String) -> Self where Value == [String] {
        Self(ConfigKeyEntry([name], "list: program and arguments", text)) { $0.command(name, &$1) }
    }

    /// A secret, given by `NAME_file: PATH` or by `NAME_env: VARIABLE`.
    ///
    /// - Parameter suggestsName: Whether the nearest name to an unknown key may be `NAME`, which is then refused with
    ///   the name to write instead.
    public static func secret(_ name: String, suggestsName: Bool = false, _ text: String) -> Self
    where Value == Secret {
        var entry = ConfigKeyEntry(ConfigSection.secretKeys(name), "file · variable", text)
        entry.secret = name
        entry.suggestsSecret = suggestsName
        return Self(entry) { $0.secret(name, &$1) }
    }
}

extension ConfigSection {
    fileprivate func parse<Value>(
        _ text: String, at key: String, _ problems: inout [ConfigProblem],
        _ parse: (String) throws(ConfigValueFault) -> Value
    ) -> Value? {
        do throws(ConfigValueFault) {
            return try parse(text)
        } catch {
            problems.append(problem(key, error.message))
            return nil
        }
    }
}
