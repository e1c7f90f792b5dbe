/// One value of a document, with the line it begins on. The configuration's own tree, with paths and problems.
indirect enum ConfigValue: Sendable {
    /// Nothing was given (`key:` or `key: ~`).
    case empty
    case scalar(String)
    case list([Item])
    case section(ConfigSection)

    struct Item: Sendable {
        let line: Int
        let value: ConfigValue
    }

    struct Entry: Sendable {
        let key: String
        let line: Int
        let value: ConfigValue
    }

    init(_ node: YAMLNode, path: String, _ origin: ConfigOrigin, _ problems: inout [ConfigProblem]) {
        switch node {
        case .scalar(let text, let isPlain, _):
            let isNull = isPlain && ["", "~", "null", "Null", "NULL"].contains(text)
            self = isNull ? .empty : .scalar(text)
        case .sequence(let elements, _):
            self = .list(
                elements.enumerated().map { index, element in
                    Item(
                        line: element.line,
                        value: ConfigValue(element, path: "\(path)[\(index + 1)]", origin, &problems))
                })
        case .mapping(let pairs, let line):
            let entries = Self.entries(pairs, path: path, origin, &problems)
            self = .section(ConfigSection(origin: origin, path: path, line: line, entries: entries))
        }
    }

    /// Whether both have the same contents, at any position.
    func hasSameContents(as other: ConfigValue) -> Bool {
        switch (self, other) {
        case (.empty, .empty): true
        case (.scalar(let own), .scalar(let others)): own == others
        case (.list(let own), .list(let others)):
            own.count == others.count && zip(own, others).allSatisfy { $0.value.hasSameContents(as: $1.value) }
        case (.section(let own), .section(let others)): own.differences(from: others).isEmpty
        case (.empty, _), (.scalar, _), (.list, _), (.section, _): false
        }
    }

    private static func entries(
        _ pairs: [(key: YAMLNode, value: YAMLNode)], path: String, _ origin: ConfigOrigin,
        _ problems: inout [ConfigProblem]
    ) -> [Entry] {
        var entries: [Entry] = []
        for (key, value) in pairs {
            guard case .scalar(let name, _, let line) = key else {
                problems.append(
                    ConfigProblem(
                        file: origin.file, line: key.line, key: path, message: "has a key that is not plain text"))
                continue
            }
            let keyPath = path.isEmpty ? name : "\(path).\(name)"
            if let first = entries.first(where: { $0.key == name }) {
                problems.append(
                    ConfigProblem(
                        file: origin.file, line: line, key: keyPath,
                        message: "is given twice in this section, first on line \(first.line); keep one of them"))
                continue
            }
            entries.append(Entry(key: name, line: line, value: ConfigValue(value, path: keyPath, origin, &problems)))
        }
        return entries
    }
}
