internal import CallAgent
internal import ConfigReader

extension ConfigurationKind {
    /// The kinds that `handset check` knows, one for each command that reads a configuration.
    static let all = [device]

    private static let device = ConfigurationKind(command: "run", signature: ["account"]) { path throws(ConfigError) in
        _ = try DeviceConfiguration.read(path: path)
    }
}
