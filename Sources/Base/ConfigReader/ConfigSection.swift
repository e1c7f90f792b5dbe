internal import Glibc
internal import Files

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

/// Files and folders. What is checked depends on how the configuration is read: see ``FileChecks``.
extension ConfigSection {
    /// Which files are checked.
    var fileChecks: FileChecks { origin.fileChecks }

    /// The path of a file, taken from the configuration's folder unless it is absolute.
    ///
    /// - Parameter readable: Also note a problem if it is no regular file that may be read.
    func path(_ key: String, readable: Bool = false, _ problems: inout [ConfigProblem]) -> String? {
        guard let text = string(key, &problems) else { return nil }
        let path = resolve(text)
        guard readable, fileChecks != .none, let failure = SmallFile.unreadable(path) else { return path }
        problems.append(problem(key, "\"\(path)\" cannot be read: \(failure.message)"))
        return nil
    }

    /// Warns if every user of this machine may read the file at `path`, which holds a secret.
    func warnOfReaders(_ key: String, _ path: String, _ problems: inout [ConfigProblem]) {
        guard fileChecks != .none, RegularFile.isReadableByAll(path) else { return }
        problems.append(
            warning(key, "every user of this machine may read \"\(path)\"; `chmod 600` keeps it to its owner"))
    }

    /// The path of a file that the program writes to, and creates if it does not exist.
    ///
    /// - Parameter advice: What to try if it cannot be written to, a whole sentence.
    func outputFile(_ key: String, advice: String = "", _ problems: inout [ConfigProblem]) -> String? {
        guard let path = path(key, &problems) else { return nil }
        return note(key, path, advice: advice, &problems) { path throws(RegularFileError) in
            if unsafe access(path, F_OK) == 0 {
                try RegularFile.check(path)
                try RegularFile.checkAccess(path, R_OK | W_OK)
            } else {
                try WritableFolder.checkExisting(WritableFolder.parent(of: path))
            }
        }
    }

    /// The path of a folder that the program writes files into, and makes if it is not there.
    func outputFolder(_ key: String, _ problems: inout [ConfigProblem]) -> String? {
        guard let path = path(key, &problems) else { return nil }
        return note(key, path, &problems) { path throws(RegularFileError) in try WritableFolder.check(path) }
    }

    /// The path of a socket that the program listens at. Its folder is made if it is not there, but none above that.
    func outputSocket(_ key: String, _ problems: inout [ConfigProblem]) -> String? {
        guard let path = path(key, &problems) else { return nil }
        return note(key, path, &problems) { path throws(RegularFileError) in
            let folder = WritableFolder.parent(of: path)
            let exists = unsafe access(folder, F_OK) == 0
            try WritableFolder.checkExisting(exists ? folder : WritableFolder.parent(of: folder))
            try RegularFile.checkSocket(path)
        }
    }

    /// A program and its arguments; the program is searched like in a shell.
    func command(_ key: String, _ problems: inout [ConfigProblem]) -> [String]? {
        guard let words = list(key, &problems) else { return nil }
        guard let program = words.first, !program.isEmpty else {
            problems.append(problem(key, "must name a program"))
            return nil
        }
        // As in a shell: a name without a slash is looked up in PATH. Any other is a path.
        let path = program.contains("/") ? resolve(program) : program
        if fileChecks == .all, !Self.isThere(path, path: origin.environment("PATH") ?? "/usr/bin:/bin") {
            let place = path == program ? "" : ": \"\(path)\""
            let message =
                if program.contains("/"), RegularFile.isThere(path) {
                    "\"\(path)\" may not be run; `chmod +x` allows it"
                } else {
                    "there is no program \"\(program)\" that may be run\(place)"
                }
            problems.append(problem(key, message))
        }
        return [path] + words.dropFirst()
    }

    func resolve(_ path: String) -> String { path.hasPrefix("/") ? path : origin.directory + path }

    private func note(
        _ key: String, _ path: String, advice: String = "", _ problems: inout [ConfigProblem],
        _ check: (String) throws(RegularFileError) -> Void
    ) -> String? {
        guard fileChecks == .all else { return path }
        do throws(RegularFileError) {
            try check(path)
            return path
        } catch {
            let more = advice.isEmpty ? "" : ". \(advice)"
            problems.append(problem(key, "\"\(path)\" cannot be written to: \(error.message)\(more)"))
            return nil
        }
    }

    private static func isThere(_ program: String, path: String) -> Bool {
        let places =
            program.contains("/") ? [program] : path.split(separator: ":").map { "\($0)/\(program)" }
        return places.contains { RegularFile.mayBeRun($0) }
    }
}

extension ConfigSection {
    /// The section's keys and values to be shown to others: without what may be secret.
    ///
    /// Omitted are values of keys that are not among `keys`, of keys whose names suggest secrets, the arguments of
    /// programs, and of addresses everything except scheme, host and port. Of a secret the file's path or the
    /// variable's name is shown.
    ///
    /// - Parameter keys: Those that are known here, with the ones under them.
    public func outline(of keys: [ConfigKeyEntry]) -> [String] {
        entries.flatMap { entry -> [String] in
            guard let known = keys.first(where: { $0.names.contains(entry.key) }) else {
                return ["\(Self.printable(entry.key)): (left out: an unknown key)"]
            }
            return Self.lines("\(entry.key):", entry.value, known, name: entry.key)
        }
    }

    private static let secretWords = [
        "secret", "token", "password", "credential", "hash", "payload", "header", "email",
    ]
    /// Keys of permissions and identities, whose values are private.
    private static let privateKeys = [
        "allow", "deny", "users", "id", "user", "session", "rooms", "callees", "parameters",
    ]

    private static func lines(
        _ label: String, _ value: ConfigValue, _ key: ConfigKeyEntry, name: String
    ) -> [String] {
        let speaksOfSecret = secretWords.contains { name.contains($0) } && !name.hasSuffix("_file")
        let isHarmless = key.secret != nil || ["whole number", "number", "true or false"].contains(key.kind)
        let isSecret = speaksOfSecret && !isHarmless || privateKeys.contains(name)
        switch (value, key.inner) {
        case (.empty, _): return ["\(label) (empty)"]
        case _ where isSecret: return ["\(label) (left out)"]
        case (.section(let section), .section(let inner)):
            return [label] + section.outline(of: inner).map { "  " + $0 }
        case (.list(let items), .list(let inner)):
            return [label]
                + items.flatMap { item -> [String] in
                    guard case .section(let section) = item.value else { return ["  - (left out: no section)"] }
                    return section.outline(of: inner).enumerated().map {
                        ($0.offset == 0 ? "  - " : "    ") + $0.element
                    }
                }
        case (.scalar, .section), (.scalar, .list): return ["\(label) (left out)"]
        case (.scalar(let text), .none): return ["\(label) \(shown(text))"]
        case (.list, .section): return ["\(label) (left out)"]
        case (.list(let items), .none):
            let texts = items.map { item in
                if case .scalar(let text) = item.value { shown(text) } else { "(left out)" }
            }
            guard name == "command", texts.count > 1 else { return ["\(label) [\(texts.joined(separator: ", "))]"] }
            return ["\(label) [\(texts[0]), (\(texts.count - 1) left out)]"]
        case (.section, _): return ["\(label) (left out)"]
        }
    }

    private static func shown(_ text: String) -> String {
        guard let scheme = text.firstRange(of: "://") else { return printable(text) }
        let rest = text[scheme.upperBound...]
        let authority = rest.prefix { !"/?#".contains($0) }
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        return printable(text[..<scheme.upperBound] + host + (authority.endIndex < rest.endIndex ? "/…" : ""))
    }

    private static func printable(_ text: some StringProtocol) -> String {
        let isPlain =
            !text.isEmpty && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0 != "\"" && $0.value != 0x7F }
        guard !isPlain else { return String(text) }
        let safe = text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F || $0 == "\"" ? "?" : String($0) }
        return "\"\(safe.joined())\""
    }
}
