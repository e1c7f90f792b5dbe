import ConfigReader
import SignalWire

extension ConfigSection {
    /// A name.
    func identifier<Kind>(_ key: String, _ problems: inout [ConfigProblem]) -> Identifier<Kind>? {
        string(key, &problems).flatMap { identifier($0, at: key, &problems) }
    }

    /// The names in a list.
    func identifiers<Kind>(_ key: String, _ problems: inout [ConfigProblem]) -> [Identifier<Kind>] {
        (list(key, &problems) ?? []).compactMap { identifier($0, at: key, &problems) }
    }

    private func identifier<Kind>(
        _ text: String, at key: String, _ problems: inout [ConfigProblem]
    ) -> Identifier<Kind>? {
        do throws(IdentifierFault) {
            return try Identifier(text)
        } catch {
            problems.append(problem(key, "\(error)"))
            return nil
        }
    }
}
