import ConfigReader

@testable import handset

/// docs/configuration.md: every key of every kind of configuration file, as the code declares it.
struct ConfigurationPage {
    private(set) var text = """
        # Configuration

        Every key of every configuration file. The code declares each key once, reads it by that declaration, and this page is
        written from the declarations: a test compares them, and `HANDSET_RENEW=1 scripts/test --filter ConfigurationPage` writes
        the page again.

        `handset check FILE` finds every problem of a file. Examples with comments are
        [config/device.yaml](../config/device.yaml), [config/exchange.yaml](../config/exchange.yaml),
        [config/loopback.yaml](../config/loopback.yaml) and those in [config/examples](../config/examples).

        A file is YAML. Relative paths are taken from its folder. A secret never stands in the file itself: `NAME_file` names a
        file that holds it, or `NAME_env` an environment variable. A key without a default may be left out unless it is required.

        """
    private var sections: [[String]: String] = [:]

    init(_ kinds: [ConfigurationKind]) {
        for kind in kinds {
            text += "\n## `handset \(kind.command)`\n"
            if let note = Self.notes[kind.command] { text += "\n\(note)\n" }
            add(kind.keys, at: "", of: kind.command)
        }
    }

    private static let notes = [
        "run": "The device. `handset call --config` and `handset logout` read the same file.",
        "serve": "The exchange.",
        "user": "The users file, which `handset user` writes and `users_file` of the exchange names.",
        "loopback": "Thresholds, given by `--thresholds`.",
    ]

    private mutating func add(_ entries: [ConfigKeyEntry], at path: String, of command: String) {
        if !path.isEmpty { text += "\n### `\(path)`\n" }
        let names = entries.flatMap(\.names)
        if let earlier = sections[names] {
            text += "\nThe keys of \(earlier).\n"
            return
        }
        sections[names] = "`\(path)` of `handset \(command)`"
        text += "\n| Key | Type | Unit | Range | Default | Meaning |\n| --- | --- | --- | --- | --- | --- |\n"
        for entry in entries {
            let names = entry.names.map { "`\($0)`" }.joined(separator: "<br>")
            let cells = [
                names, entry.kind, entry.unit ?? "", entry.range ?? "", Self.words(entry.fallback), entry.text,
            ]
            text += "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |\n"
        }
        for entry in entries {
            let inner = (path.isEmpty ? "" : path + ".") + entry.names[0]
            switch entry.inner {
            case .none: break
            case .section(let entries): add(entries, at: inner, of: command)
            case .list(let entries): add(entries, at: inner + "[]", of: command)
            }
        }
    }

    private static func words(_ fallback: ConfigKeyEntry.Fallback) -> String {
        switch fallback {
        case .nothing: ""
        case .required: "required"
        case .value(let value): "`\(value)`"
        case .words(let words): words
        }
    }
}
