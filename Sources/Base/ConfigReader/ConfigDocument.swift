// ConfigReader: YAML configuration read into typed values, with every problem located by file, line and key.

internal import Yams

/// Where a configuration comes from: its name, and what its references may look at.
struct ConfigOrigin: Sendable {
    let file: String
    /// Relative paths in the file are taken from here; empty for the working directory.
    let directory: String
    let environment: @Sendable (String) -> String?
}

/// Reads configuration files.
public enum ConfigDocument {
    /// Configurations longer than this are refused.
    public static let maximumBytes = 1 << 20

    /// Reads the file at `path`.
    ///
    /// - Parameters:
    ///   - path: A YAML file. Paths inside it are taken from its folder.
    ///   - environment: Looks up an environment variable, for secrets given as `…_env`.
    /// - Throws: ``ConfigError`` with the file, the line and, where there is one, the key.
    public static func read(
        path: String, environment: @escaping @Sendable (String) -> String? = SmallFile.environmentVariable
    ) throws(ConfigError) -> ConfigSection {
        switch SmallFile.read(path: path, maximumBytes: maximumBytes) {
        case .failure(let failure):
            throw ConfigError([ConfigProblem(file: path, message: "cannot be read: \(failure.message)")])
        case .success(let text):
            let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
            return try parse(text, ConfigOrigin(file: path, directory: directory, environment: environment))
        }
    }

    /// Reads `text` as if it were the contents of `file`.
    ///
    /// - Throws: ``ConfigError`` with the line of a syntax error, or of a key that is given twice.
    public static func read(
        text: String, file: String = "configuration",
        environment: @escaping @Sendable (String) -> String? = SmallFile.environmentVariable
    ) throws(ConfigError) -> ConfigSection {
        try parse(text, ConfigOrigin(file: file, directory: "", environment: environment))
    }

    private static func parse(_ text: String, _ origin: ConfigOrigin) throws(ConfigError) -> ConfigSection {
        let root: Node?
        do {
            root = try Yams.Parser(yaml: text, encoding: .utf8).singleRoot()
        } catch {
            throw ConfigError([problem(of: error, in: text, file: origin.file)])
        }
        var problems: [ConfigProblem] = []
        let section: ConfigSection
        switch root.map({ ConfigValue($0, path: "", fallbackLine: 1, depth: 0, origin, &problems) }) {
        case nil, .empty?:
            section = ConfigSection(origin: origin, path: "", line: 1, entries: [])
        case .section(let found)?:
            section = found
        case .scalar?, .list?:
            throw ConfigError([
                ConfigProblem(file: origin.file, line: 1, message: "must be a mapping of keys to values, `key: value`")
            ])
        }
        guard problems.isEmpty else { throw ConfigError(problems) }
        return section
    }

    private static func problem(of error: any Error, in text: String, file: String) -> ConfigProblem {
        guard let error = error as? YamlError else {
            return ConfigProblem(file: file, message: "is not valid YAML")
        }
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let place = context.map { " (\($0.text) on line \($0.mark.line))" } ?? ""
            return ConfigProblem(file: file, line: mark.line, message: "is not valid YAML: \(problem)\(place)")
        case .reader(let problem, let offset, _, _):
            let line = offset.map { text.prefix($0).count { $0 == "\n" } + 1 } ?? 0
            return ConfigProblem(file: file, line: line, message: "is not readable text: \(problem)")
        case .duplicatedKeysInMapping(let duplicates, let context):
            return duplicateProblem(duplicates, context.mark, in: text, file: file)
        case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded:
            return ConfigProblem(file: file, message: "cannot be parsed as YAML")
        }
    }

    /// Yams tells where the key stands first; the later one, which is the line to edit, is looked for in the text.
    private static func duplicateProblem(_ keys: [String], _ mark: Mark, in text: String, file: String)
        -> ConfigProblem
    {
        let key = keys.first ?? ""
        let indent = mark.column - 1
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated().dropFirst(mark.line) {
            guard line.prefix(indent).allSatisfy({ $0 == " " || $0 == "-" }) else { break }
            if line.dropFirst(indent).hasPrefix("\(key):") {
                return ConfigProblem(
                    file: file, line: index + 1, key: key,
                    message: "is given twice in this section, first on line \(mark.line); keep one of them")
            }
        }
        return ConfigProblem(
            file: file, line: mark.line, key: key, message: "is given twice in this section; keep one of them")
    }
}
