import Foundation

/// Names that programs and people outside this repository rely on, as a file of Tests/Frozen lists them: a line each.
///
/// Tests/Frozen/README.md says how a list is changed.
public struct FrozenList {
    /// The file, from the repository's root.
    public let file: String
    private let lines: Set<String>

    /// Reads a list.
    ///
    /// - Parameter name: The file in Tests/Frozen, without its ending.
    public init(_ name: String) throws {
        file = "Tests/Frozen/\(name).txt"
        let text = try String(contentsOf: Self.root.appendingPathComponent(file), encoding: .utf8)
        lines = Set(
            text.split(separator: "\n").map { String($0).trimmingCharacters(in: .whitespaces) }
                .filter { !$0.isEmpty && !$0.hasPrefix("#") })
    }

    /// What differs between the list and what there is now, and what to do about it; empty if nothing does.
    public func differences(from present: Set<String>) -> [String] {
        let gone = lines.subtracting(present).sorted().map {
            "\(file): gone or renamed: \($0)\n  Somebody outside relies on it. Bring it back, or read Tests/Frozen/README.md."
        }
        let new = present.subtracting(lines).sorted()
        guard !new.isEmpty else { return gone }
        return gone + ["\(file): new; if it is to stay for good, add:\n" + new.joined(separator: "\n")]
    }

    private static var root: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }
}

/// The members of JSON values, as paths with the kinds of value that were seen there, such as `calls[].peer: string`.
public struct JSONMembers {
    private var kinds: [String: Set<String>] = [:]

    /// Knows of none.
    public init() {}

    /// One line for each member that was seen, with `prefix` before it.
    public func lines(_ prefix: String = "") -> Set<String> {
        Set(kinds.map { "\(prefix)\($0.key): \($0.value.sorted().joined(separator: " or "))" })
    }

    /// One line for each member that was seen, whatever its value, with `prefix` before it.
    public func names(_ prefix: String = "") -> Set<String> {
        Set(kinds.filter { $0.value != ["empty"] }.map { prefix + $0.key })
    }

    /// Looks at one more value.
    public mutating func take(_ bytes: some Sequence<UInt8>) throws {
        note(try JSONDecoder().decode(Value.self, from: Data(bytes)), at: "")
    }

    private mutating func note(_ value: Value, at path: String) {
        switch value {
        case .leaf(let kind): kinds[path, default: []].insert(kind)
        case .list(let values):
            if values.isEmpty { kinds[path + "[]", default: []].insert("empty") }
            for value in values { note(value, at: path + "[]") }
        case .object(let members):
            for (name, value) in members { note(value, at: path.isEmpty ? name : "\(path).\(name)") }
        }
    }

    private enum Value: Decodable {
        case leaf(String)
        case list([Value])
        case object([String: Value])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .leaf("null")
            } else if (try? container.decode(Bool.self)) != nil {
                self = .leaf("bool")
            } else if (try? container.decode(Double.self)) != nil {
                self = .leaf("number")
            } else if (try? container.decode(String.self)) != nil {
                self = .leaf("string")
            } else if let values = try? container.decode([Value].self) {
                self = .list(values)
            } else {
                self = .object(try container.decode([String: Value].self))
            }
        }
    }
}
