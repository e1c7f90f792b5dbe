// ConfigReader: YAML configuration read into typed values, with every problem located by file, line and key.

internal import Synchronization

/// The origin of a configuration: its name, and which files its references may access.
struct ConfigOrigin: Sendable {
    let file: String
    /// Relative paths in the file are taken from here; empty for the working directory.
    let directory: String
    let environment: @Sendable (String) -> String?
    var fileChecks = FileChecks.inputs
    /// The secrets that were read for the document.
    let secrets = SecretsRead()
}

/// The secrets that were read for a document, by the paths of their keys: whether one has changed shows only in its value.
final class SecretsRead: Sendable {
    private let values = Mutex<[String: Secret]>([:])

    func note(_ secret: Secret, of key: String) { values.withLock { $0[key] = secret } }

    /// The secret of a key; nil if none was read.
    func secret(of key: String) -> Secret? { values.withLock { $0[key] } }
}

/// Reads configuration files.
public enum ConfigDocument {
    /// Configurations longer than this are refused.
    public static let maximumBytes = 1 << 20

    /// Reads the file at `path`.
    ///
    /// - Parameters:
    ///   - path: A YAML file. Paths inside it are taken from its folder.
    ///   - maximumBytes: How long it may be.
    ///   - fileChecks: Which of the files that it names are checked.
    ///   - environment: Looks up an environment variable, for secrets given as `…_env`.
    /// - Throws: ``ConfigError`` with the file, the line and, where there is one, the key.
    public static func read(
        path: String, maximumBytes: Int = maximumBytes, fileChecks: FileChecks = .inputs,
        environment: @escaping @Sendable (String) -> String? = SmallFile.environmentVariable
    ) throws(ConfigError) -> ConfigSection {
        switch SmallFile.read(path: path, maximumBytes: maximumBytes) {
        case .failure(let failure):
            throw ConfigError([
                ConfigProblem(file: path, line: failure.line, message: "cannot be read: \(failure.message)")
            ])
        case .success(let text):
            return try read(text: text, at: path, fileChecks: fileChecks, environment: environment)
        }
    }

    /// Reads `text` as the contents of the file at `path`, which is not opened: another user may have replaced what is there.
    ///
    /// - Parameters:
    ///   - path: Where errors say that the text is. Paths inside it are taken from its folder.
    ///   - fileChecks: Which of the files that it names are checked.
    /// - Throws: ``ConfigError`` with the line of a syntax error, or of a key that is given twice.
    public static func read(
        text: String, at path: String, fileChecks: FileChecks = .inputs,
        environment: @escaping @Sendable (String) -> String? = SmallFile.environmentVariable
    ) throws(ConfigError) -> ConfigSection {
        let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        return try parse(
            text, ConfigOrigin(file: path, directory: directory, environment: environment, fileChecks: fileChecks))
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
        let root: YAMLNode?
        do throws(YAMLError) {
            root = try YAMLReader.read(text)
        } catch {
            throw ConfigError([ConfigProblem(file: origin.file, line: error.line, message: error.message)])
        }
        var problems: [ConfigProblem] = []
        let section: ConfigSection
        switch root.map({ ConfigValue($0, path: "", origin, &problems) }) {
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
}

/// Selects the files that are checked while a configuration that names them is read.
public enum FileChecks: Sendable, Equatable {
    /// None: they are on another machine. Secrets have no value then.
    case none
    /// Files that the configuration's reader needs, such as secrets: for commands that use a part of it.
    case inputs
    /// All that `handset run` and `handset serve` will open, write to or listen at. They and `handset check` read so.
    case all
}
