internal import Yams

/// One value of a document, with the line it begins on. Our own tree, so that Yams stays inside this module.
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

    /// Deeper nesting is refused: no section of ours needs it, and aliases could make it endless.
    static let maximumDepth = 16

    init(
        _ node: Node, path: String, fallbackLine: Int, depth: Int, _ origin: ConfigOrigin,
        _ problems: inout [ConfigProblem]
    ) {
        let line = node.mark?.line ?? fallbackLine
        guard depth < Self.maximumDepth else {
            problems.append(
                ConfigProblem(
                    file: origin.file, line: line, key: path,
                    message: "is nested more than \(Self.maximumDepth) levels deep"))
            self = .empty
            return
        }
        switch node {
        case .scalar(let scalar):
            let isPlain = scalar.style == .plain || scalar.style == .any
            let isNull = isPlain && ["", "~", "null", "Null", "NULL"].contains(scalar.string)
            self = isNull ? .empty : .scalar(scalar.string)
        case .sequence(let sequence):
            var items: [Item] = []
            for (index, element) in sequence.enumerated() {
                let elementLine = element.mark?.line ?? line
                items.append(
                    Item(
                        line: elementLine,
                        value: ConfigValue(
                            element, path: "\(path)[\(index + 1)]", fallbackLine: elementLine, depth: depth + 1,
                            origin, &problems)))
            }
            self = .list(items)
        case .mapping(let mapping):
            var entries: [Entry] = []
            for (key, value) in mapping {
                let keyLine = key.mark?.line ?? line
                guard let name = key.scalar?.string else {
                    problems.append(
                        ConfigProblem(
                            file: origin.file, line: keyLine, key: path, message: "has a key that is not plain text"))
                    continue
                }
                let keyPath = path.isEmpty ? name : "\(path).\(name)"
                entries.append(
                    Entry(
                        key: name, line: keyLine,
                        value: ConfigValue(
                            value, path: keyPath, fallbackLine: keyLine, depth: depth + 1, origin, &problems)))
            }
            self = .section(ConfigSection(origin: origin, path: path, line: line, entries: entries))
        case .alias:
            self = .empty
        }
    }
}
