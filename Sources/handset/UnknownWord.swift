internal import ArgumentParser
internal import ConfigReader

/// A word of the command line that no command knows, and what may have been meant by it.
///
/// The parser says so of options itself, unless it finds another fault first: with `--confg FILE` it misses `--config`.
enum UnknownWord {
    /// - Parameter arguments: The command line without the program's name.
    /// - Returns: A sentence about the first unknown word that is close to a known one; nil without any.
    static func find(in arguments: [String]) -> String? {
        var command: any ParsableCommand.Type = Handset.self
        for word in arguments {
            if word == "--" { return nil }
            if word.hasPrefix("--") {
                let name = String(word.prefix { $0 != "=" })
                let known = options(of: command)
                if known.contains(name) { continue }
                let meant = abbreviated(name, known) ?? NearestName.find(name, among: known)
                return meant.map { "Unknown option '\(name)'. Did you mean '\($0)'?" }
            }
            let commands = command.configuration.subcommands
            // Where there are no commands to choose from, it is a value.
            if commands.isEmpty || word.hasPrefix("-") { continue }
            guard let chosen = commands.first(where: { $0.configuration.commandName == word }) else {
                let names = commands.compactMap { $0.configuration.commandName }
                return NearestName.find(word, among: names).map { "Unknown command '\(word)'. Did you mean '\($0)'?" }
            }
            command = chosen
        }
        return nil
    }

    /// The one option that begins with what was given, or with that in the singular: `--secs` for `--seconds`.
    private static func abbreviated(_ name: String, _ known: [String]) -> String? {
        var stem = name
        for _ in 0..<2 {
            guard stem.count >= 4 else { return nil }
            let found = Set(known.filter { $0.hasPrefix(stem) })
            if found.count == 1 { return found.first }
            guard stem.hasSuffix("s") else { return nil }
            stem.removeLast()
        }
        return nil
    }

    /// The parser's message with `hint` for the fault that follows from it. A hint of the parser's own stays, unless it is
    /// about the same word: the parser knows no abbreviations.
    static func message(_ text: String, hint: String?) -> String {
        guard let hint else { return text }
        let word = hint.prefix { $0 != "." }
        guard !text.contains("Did you mean") || (word.contains("'") && text.contains(word)) else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return (["Error: \(hint)"] + lines.drop { !$0.hasPrefix("Usage:") }).joined(separator: "\n")
    }

    /// All options with two dashes, as the command's help lists them: `  --webrtc/--no-webrtc  Connect as …`.
    private static func options(of command: any ParsableCommand.Type) -> [String] {
        Handset.helpMessage(for: command, includeHidden: true, columns: 200).split(separator: "\n")
            .filter { $0.hasPrefix("  -") }
            .flatMap { line in
                line.dropFirst(2).split(separator: "  ", maxSplits: 1)[0]
                    .split { " ,/".contains($0) }.filter { $0.hasPrefix("--") }.map(String.init)
            }
    }
}
