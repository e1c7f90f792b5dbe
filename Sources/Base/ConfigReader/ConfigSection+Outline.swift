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
