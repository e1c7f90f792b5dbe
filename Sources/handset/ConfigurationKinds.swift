extension ConfigurationKind {
    /// The kinds that `handset check` knows, one for each command that reads a configuration.
    static let all: [ConfigurationKind] = []
}
