internal import ConfigReader
internal import SecureTransport
internal import SignalingClient

extension ConfigKey {
    /// A name that the service takes.
    ///
    /// - Parameter member: What is named, such as `the device's id`.
    static func name(_ name: String, of member: String, _ text: String) -> ConfigKey where Value == String {
        .parsed(name, "name", text) { text throws(ConfigValueFault) in try judge(text, of: member) }
    }

    /// Names in a list, all of which the service takes.
    static func names(_ name: String, of member: String, _ text: String) -> ConfigKey where Value == [String] {
        .list(name, of: "names", text) { text throws(ConfigValueFault) in try judge(text, of: member) }
    }

    private static func judge(_ name: String, of member: String) throws(ConfigValueFault) -> String {
        do throws(SignalingError) {
            try HandsetServiceConfiguration.check(name: name, of: member)
            return name
        } catch {
            throw ConfigValueFault("\(error.cause). \(error.advice)")
        }
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
            try TLSTrust.file(path).check()
            return path
        } catch {
            problems.append(problem(key, "\(error)"))
            return nil
        }
    }
}
