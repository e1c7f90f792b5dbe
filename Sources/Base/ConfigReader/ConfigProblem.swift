/// One problem in a configuration file, with its position, so that an editor can jump to it.
public struct ConfigProblem: Equatable, Sendable, CustomStringConvertible {
    /// The file's name as the caller gave it.
    public let file: String
    /// 1-based; the section's own line when the key is absent; 0 when the file as a whole is meant.
    public let line: Int
    /// Dotted path of the key from the document's root, such as `media.jitter.max_delay_ms` or `users[2].id`; empty
    /// when the file as a whole is meant.
    public let key: String
    /// What is wrong and what is allowed instead. Never holds a secret's value.
    public let message: String
    /// Whether the configuration can be used nevertheless.
    public let isWarning: Bool

    /// Locates a problem.
    public init(file: String, line: Int = 0, key: String = "", message: String, isWarning: Bool = false) {
        self.file = file
        self.line = line
        self.key = key
        self.message = message
        self.isWarning = isWarning
    }

    /// `file:line: key: message`, without the parts that are not known; a warning is marked as one.
    public var description: String {
        var text = file
        if line > 0 { text += ":\(line)" }
        if !key.isEmpty { text += ": \(key)" }
        return text + ": \(isWarning ? "warning: " : "")\(message)"
    }
}

extension [ConfigProblem] {
    /// Ends the reading of a configuration with these problems.
    ///
    /// - Returns: The warnings, in the order of the file, if there is nothing worse.
    /// - Throws: ``ConfigError`` with all of them otherwise.
    public func verdict() throws(ConfigError) -> [ConfigProblem] {
        if isEmpty { return [] }
        let error = ConfigError(self)
        guard allSatisfy(\.isWarning) else { throw error }
        return error.problems
    }
}

/// Everything that is wrong with one configuration, in the order of the file.
public struct ConfigError: Error, Equatable, Sendable, CustomStringConvertible {
    /// At least one problem.
    public let problems: [ConfigProblem]

    /// Collects `problems`, put into the order of their lines.
    public init(_ problems: [ConfigProblem]) {
        self.problems = problems.enumerated()
            .sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }
            .map(\.element)
    }

    /// One line for each problem.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
