internal import Core

/// A value that must not reach a log, an error or a screen: printing, interpolating or dumping it shows a mask.
public struct Secret: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let bytes: WipedBytes

    /// Wraps `value`.
    public init(_ value: String) { bytes = WipedBytes(value.utf8) }

    /// Wraps a text's bytes.
    init(_ bytes: some Collection<UInt8>) { self.bytes = WipedBytes(bytes) }

    /// The value itself; review every use of this property. It makes a text that is not overwritten when it is freed.
    public var revealed: String { bytes.text }

    /// Compares the value with a text that a stranger gives, in a time that depends on nothing but the lengths, without a copy of either.
    public func isEqual(to text: some Collection<UInt8>) -> Bool { bytes.isEqual(to: text) }

    /// A mask.
    public var description: String { "(secret)" }
    /// A mask.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Secrets, which are outside the configuration file: in a separate file or in an environment variable.
extension ConfigSection {
    /// The keys under which a secret `name` can be given, for the list of known keys.
    static func secretKeys(_ name: String) -> [String] { ["\(name)_file", "\(name)_env"] }

    /// The secret `name`, given by `name_file: PATH` or by `name_env: VARIABLE`.
    ///
    /// A value written into the configuration itself (`name: …`) is a problem, as is giving both. No message holds the
    /// value. Of a configuration of another machine (``FileChecks/none``) the value is nil.
    func secret(_ name: String, required: Bool = false, _ problems: inout [ConfigProblem]) -> Secret? {
        let fileKey = "\(name)_file"
        let variableKey = "\(name)_env"
        if has(name) {
            let problem = secretInTheClear(name)
            if !problems.contains(problem) { problems.append(problem) }
            return nil
        }
        switch (has(fileKey), has(variableKey)) {
        case (true, true):
            problems.append(problem(variableKey, "is given together with \(fileKey); keep one of them"))
            return nil
        case (true, false):
            return secretFromFile(fileKey, &problems)
        case (false, true):
            return secretFromEnvironment(variableKey, &problems)
        case (false, false):
            if required {
                problems.append(
                    problem(fileKey, "is required here; give \(fileKey): PATH or \(variableKey): NAME"))
            }
            return nil
        }
    }

    /// The configuration contains the secret's value instead of its file or variable.
    func secretInTheClear(_ name: String) -> ConfigProblem {
        problem(name, "must not be in this file; give \(name)_file: PATH or \(name)_env: NAME instead")
    }

    private func secretFromFile(_ key: String, _ problems: inout [ConfigProblem]) -> Secret? {
        guard let path = path(key, &problems), fileChecks != .none else { return nil }
        switch SmallFile.secret(path: path) {
        case .failure(let failure):
            problems.append(problem(key, "\"\(path)\" cannot be read: \(failure.message)"))
            return nil
        case .success(let secret):
            warnOfReaders(key, path, &problems)
            origin.secrets.note(secret, of: fullKey(key))
            return secret
        }
    }

    /// The variables that hold secrets of this section and of those in it.
    public var secretVariables: Set<String> {
        func variables(in value: ConfigValue, of key: String) -> Set<String> {
            switch value {
            case .section(let section): section.secretVariables
            case .list(let items): items.reduce(into: []) { $0.formUnion(variables(in: $1.value, of: "")) }
            case .scalar(let text): key.hasSuffix("_env") ? [text] : []
            case .empty: []
            }
        }
        return entries.reduce(into: []) { $0.formUnion(variables(in: $1.value, of: $1.key)) }
    }

    private func secretFromEnvironment(_ key: String, _ problems: inout [ConfigProblem]) -> Secret? {
        guard let name = string(key, &problems) else { return nil }
        guard SmallFile.isVariableName(name) else {
            // Someone may have put the secret itself here, so it is not shown.
            problems.append(problem(key, "must be the name of an environment variable: letters, digits and _"))
            return nil
        }
        // Another machine has another environment.
        if fileChecks == .none { return nil }
        guard let value = origin.environment(name), !value.isEmpty else {
            problems.append(problem(key, SmallFile.unsetVariable(name)))
            return nil
        }
        origin.secrets.note(Secret(value), of: fullKey(key))
        return Secret(value)
    }
}
