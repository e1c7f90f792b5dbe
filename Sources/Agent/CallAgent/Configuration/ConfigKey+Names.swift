internal import CallControl
internal import ConfigReader
internal import SignalingClient
internal import TLS

extension ConfigKey {
    /// A name.
    ///
    /// - Parameter member: What is named, such as `the device's id`.
    static func name<Kind>(_ name: String, of member: String, _ text: String) -> ConfigKey
    where Value == Identifier<Kind> {
        .parsed(name, "name", text) { text throws(ConfigValueFault) in try parse(text, of: member) }
    }

    /// A name that is no identifier of its own, such as a user's that a secret is for.
    static func nameText(_ name: String, of member: String, _ text: String) -> ConfigKey where Value == String {
        .parsed(name, "name", text) { text throws(ConfigValueFault) in try check(text, of: member) }
    }

    /// Names in a list.
    static func names<Kind>(_ name: String, of member: String, _ text: String) -> ConfigKey
    where Value == [Identifier<Kind>] {
        .list(name, of: "names", text) { text throws(ConfigValueFault) in try parse(text, of: member) }
    }

    /// Who may be called on a stranger's word.
    static func callees(_ text: String) -> ConfigKey where Value == [CalleePattern] {
        callerPatterns("callees", text)
    }

    /// Patterns of callers, or of what was dialled.
    static func callerPatterns(_ name: String, _ text: String) -> ConfigKey where Value == [CalleePattern] {
        .list(name, of: "patterns", text, pattern)
    }

    private static func pattern(_ text: String) throws(ConfigValueFault) -> CalleePattern {
        let plain = text.lowercased().hasPrefix("sip:") ? String(text.dropFirst(4)) : String(text)
        if let pattern = CalleePattern(plain) { return pattern }
        throw ConfigValueFault(
            "must be a user's name, the beginning of one with * behind it, or a pattern of numbers such as +4930* or 2??, each "
                + "with @ and a host behind it at most, not \"\(text.prefix(80))\"")
    }

    private static func check(_ name: String, of member: String) throws(ConfigValueFault) -> String {
        do throws(SignalingError) {
            try HandsetServiceConfiguration.check(name: name, of: member)
            return name
        } catch {
            throw ConfigValueFault("\(error.cause). \(error.advice)")
        }
    }

    private static func parse<Kind>(_ name: String, of member: String) throws(ConfigValueFault) -> Identifier<Kind> {
        Identifier(ours: try check(name, of: member))
    }
}

extension KeyedSection {
    /// The path of a file of PEM with authorities to trust.
    func certificates(
        _ key: KeyPath<Keys, ConfigKey<String>>, _ problems: inout [ConfigProblem]
    ) -> String? {
        guard let path = value(key, &problems) else { return nil }
        guard fileChecks == .all else { return path }
        do throws(TLSError) {
            try TrustRoots.file(path).check()
            return path
        } catch {
            problems.append(problem(key, "\(error)"))
            return nil
        }
    }
}
