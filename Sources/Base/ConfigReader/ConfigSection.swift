/// One mapping of a configuration: asked for keys by type, it notes every problem rather than stopping at the first.
///
/// An accessor answers `nil` both when the key is absent, which is no problem, and when its value is not allowed, which
/// adds one; so `value = section.integer("port", in: 1...65_535, &problems) ?? value` keeps a default either way.
public struct ConfigSection: Sendable {
    let origin: ConfigOrigin
    let entries: [ConfigValue.Entry]
    /// Dotted path of this section from the document's root; empty for the root itself.
    public let path: String
    /// 1-based line on which the section begins.
    public let line: Int

    init(origin: ConfigOrigin, path: String, line: Int, entries: [ConfigValue.Entry]) {
        self.origin = origin
        self.path = path
        self.line = line
        self.entries = entries
    }

    /// The file this section was read from.
    public var file: String { origin.file }

    /// The keys present, in the order of the file.
    public var keys: [String] { entries.map(\.key) }

    /// The dotted paths of the keys whose values are other ones here than in `other`, or that only one of both has. Which line
    /// they are on does not matter. The value of a secret's key is the secret, if it was read from both.
    public func differences(from other: ConfigSection) -> [String] {
        let names = keys + other.keys.filter { !keys.contains($0) }
        return names.flatMap { name -> [String] in
            guard let own = entry(name)?.value, let others = other.entry(name)?.value else { return [fullKey(name)] }
            if case .section(let own) = own, case .section(let others) = others { return own.differences(from: others) }
            return own.hasSameContents(as: others) && hasSameSecret(name, as: other) ? [] : [fullKey(name)]
        }
    }

    private func hasSameSecret(_ name: String, as other: ConfigSection) -> Bool {
        guard let own = origin.secrets.secret(of: fullKey(name)),
            let others = other.origin.secrets.secret(of: other.fullKey(name))
        else { return true }
        return own == others
    }

    /// Whether `key` is present, with any value.
    func has(_ key: String) -> Bool { entry(key) != nil }

    /// A problem with `key` of this section, on the key's line or, if it is absent, the section's.
    func problem(_ key: String, _ message: String) -> ConfigProblem {
        ConfigProblem(file: origin.file, line: entry(key)?.line ?? line, key: fullKey(key), message: message)
    }

    /// The same as a warning: the configuration can be used nevertheless.
    func warning(_ key: String, _ message: String) -> ConfigProblem {
        ConfigProblem(
            file: origin.file, line: entry(key)?.line ?? line, key: fullKey(key), message: message, isWarning: true)
    }

    /// Records a problem for each of `keys` that is present although nothing uses it.
    ///
    /// - Parameter reason: Their purpose, such as `is for source: play`.
    func rejectIdleKeys(_ keys: [String], _ reason: String, _ problems: inout [ConfigProblem]) {
        for key in keys where has(key) { problems.append(problem(key, reason)) }
    }

    /// Notes a problem for each of `required` that is absent.
    func require(_ required: [String], _ problems: inout [ConfigProblem]) {
        for key in required where !has(key) {
            problems.append(problem(key, "is required here and missing"))
        }
    }

    /// Notes a problem for each key that is not in `known`, naming the nearest one that is. Of a key that has a problem
    /// already nothing more is said.
    func rejectUnknownKeys(known: [String], _ problems: inout [ConfigProblem]) {
        for entry in entries where !known.contains(entry.key) {
            let isNoted = problems.contains { $0.line == entry.line && $0.key == fullKey(entry.key) && $0.file == file }
            if isNoted { continue }
            guard !Self.secretKeys(entry.key).allSatisfy(known.contains) else {
                problems.append(secretInTheClear(entry.key))
                continue
            }
            let hint =
                if let near = NearestName.find(entry.key, among: known) {
                    "did you mean \(near)?"
                } else if known.isEmpty {
                    "this section has no keys"
                } else {
                    "this section has \(known.joined(separator: ", "))"
                }
            problems.append(problem(entry.key, "unknown key; \(hint)"))
        }
    }

    func entry(_ key: String) -> ConfigValue.Entry? { entries.first { $0.key == key } }

    func fullKey(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    /// The text of a scalar; notes a problem if `key` is present and is anything else.
    func scalar(_ key: String, expected: String, _ problems: inout [ConfigProblem]) -> String? {
        switch entry(key)?.value {
        case nil: return nil
        case .scalar(let text)?: return text
        case .empty?: problems.append(problem(key, "has no value; \(expected)"))
        case .list?: problems.append(problem(key, "is a list here; \(expected)"))
        case .section?: problems.append(problem(key, "is a section here; \(expected)"))
        }
        return nil
    }

    /// A wrong value as it is shown in a message.
    static func quoted(_ text: String) -> String {
        text.count > 40 ? "\"\(text.prefix(40))…\"" : "\"\(text)\""
    }
}

// MARK: - Sections and lists

extension ConfigSection {
    /// The section under `key`.
    func section(_ key: String, _ problems: inout [ConfigProblem]) -> ConfigSection? {
        switch entry(key)?.value {
        case nil: return nil
        case .section(let section)?: return section
        case .empty?: problems.append(problem(key, "has no value; must be a section with keys of its own"))
        case .scalar?, .list?: problems.append(problem(key, "must be a section with keys of its own"))
        }
        return nil
    }

    /// The sections listed under `key`. Elements that are not sections are noted and left out.
    func sections(_ key: String, _ problems: inout [ConfigProblem]) -> [ConfigSection]? {
        items(key, expected: "must be a list of sections, each beginning with \"- \"", &problems)?
            .compactMap { index, item in
                if case .section(let section) = item.value { return section }
                problems.append(itemProblem(key, index, item, "must be a section with keys of its own"))
                return nil
            }
    }

    /// The texts listed under `key`. Elements that are not plain values are noted and left out.
    func list(_ key: String, _ problems: inout [ConfigProblem]) -> [String]? {
        items(key, expected: "must be a list, such as [one, two]", &problems)?
            .compactMap { index, item in
                if case .scalar(let text) = item.value { return text }
                problems.append(itemProblem(key, index, item, "must be a plain value"))
                return nil
            }
    }

    private func items(_ key: String, expected: String, _ problems: inout [ConfigProblem])
        -> [(Int, ConfigValue.Item)]?
    {
        switch entry(key)?.value {
        case nil: return nil
        case .list(let items)?: return items.enumerated().map { ($0.offset + 1, $0.element) }
        case .empty?: problems.append(problem(key, "has no value; \(expected)"))
        case .scalar?, .section?: problems.append(problem(key, expected))
        }
        return nil
    }

    private func itemProblem(_ key: String, _ index: Int, _ item: ConfigValue.Item, _ message: String)
        -> ConfigProblem
    {
        ConfigProblem(file: origin.file, line: item.line, key: "\(fullKey(key))[\(index)]", message: message)
    }
}

/// Typed values. Each message names the allowed values.
extension ConfigSection {
    /// Text of at least one character.
    func string(_ key: String, _ problems: inout [ConfigProblem]) -> String? {
        guard let text = scalar(key, expected: "must be text", &problems) else { return nil }
        guard !text.isEmpty else {
            problems.append(problem(key, "must not be empty"))
            return nil
        }
        return text
    }

    /// A whole number in `range`.
    func integer(_ key: String, in range: ClosedRange<Int>, _ problems: inout [ConfigProblem]) -> Int? {
        let expected = "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
        guard let text = scalar(key, expected: expected, &problems) else { return nil }
        guard let value = Int(text.filter { $0 != "_" }), range.contains(value) else {
            problems.append(problem(key, "\(expected), not \(Self.quoted(text))"))
            return nil
        }
        return value
    }

    /// A decimal number in `range`.
    func number(_ key: String, in range: ClosedRange<Double>, _ problems: inout [ConfigProblem]) -> Double? {
        decimal(key, in: range, unit: "", &problems)
    }

    /// A duration given as a whole number of milliseconds, for a key whose name ends in `_ms`.
    func milliseconds(_ key: String, in range: ClosedRange<Int>, _ problems: inout [ConfigProblem])
        -> Duration?
    {
        let expected = "must be a whole number of milliseconds from \(range.lowerBound) to \(range.upperBound)"
        guard let text = scalar(key, expected: expected, &problems) else { return nil }
        guard let value = Int(text.filter { $0 != "_" }), range.contains(value) else {
            problems.append(problem(key, "\(expected), not \(Self.quoted(text))"))
            return nil
        }
        return .milliseconds(value)
    }

    /// A duration given as a number of seconds, which may have a fraction.
    func seconds(_ key: String, in range: ClosedRange<Double>, _ problems: inout [ConfigProblem]) -> Duration? {
        decimal(key, in: range, unit: " of seconds", &problems).map { .seconds($0) }
    }

    /// `true` or `false` (`yes`, `no`, `on` and `off` are understood).
    func bool(_ key: String, _ problems: inout [ConfigProblem]) -> Bool? {
        guard let text = scalar(key, expected: "must be true or false", &problems) else { return nil }
        switch text.lowercased() {
        case "true", "yes", "on": return true
        case "false", "no", "off": return false
        default:
            problems.append(problem(key, "must be true or false, not \(Self.quoted(text))"))
            return nil
        }
    }

    /// One of the names of an enumeration.
    func enumeration<Choice>(_ key: String, of choices: Choice.Type, _ problems: inout [ConfigProblem])
        -> Choice?
    where Choice: CaseIterable & RawRepresentable, Choice.RawValue == String {
        let names = Choice.allCases.map(\.rawValue)
        let expected = "must be one of \(names.joined(separator: ", "))"
        guard let text = scalar(key, expected: expected, &problems) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            let hint = NearestName.find(text, among: names).map { "; did you mean \($0)?" } ?? ""
            problems.append(problem(key, "\(expected), not \(Self.quoted(text))\(hint)"))
            return nil
        }
        return choice
    }

    /// An absolute URL with one of `schemes`. Only its form is checked.
    func url(_ key: String, schemes: [String], _ problems: inout [ConfigProblem]) -> String? {
        let expected = "must be a URL that begins with \(schemes.map { "\($0)://" }.joined(separator: " or "))"
        guard let text = scalar(key, expected: expected, &problems) else { return nil }
        if let fault = URLForm.fault(of: text, schemes: schemes) {
            problems.append(problem(key, fault))
            return nil
        }
        return text
    }

    private func decimal(
        _ key: String, in range: ClosedRange<Double>, unit: String, _ problems: inout [ConfigProblem]
    ) -> Double? {
        let expected = "must be a number\(unit) from \(Self.short(range.lowerBound)) to \(Self.short(range.upperBound))"
        guard let text = scalar(key, expected: expected, &problems) else { return nil }
        guard let value = Double(text), range.contains(value) else {
            problems.append(problem(key, "\(expected), not \(Self.quoted(text))"))
            return nil
        }
        return value
    }

    static func short(_ value: Double) -> String {
        Int(exactly: value).map(String.init) ?? "\(value)"
    }
}
