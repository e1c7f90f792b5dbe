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
