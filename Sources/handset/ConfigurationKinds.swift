internal import CallAgent
internal import ConfigReader
internal import Exchange
internal import Loopback
internal import LoopbackReport

extension ConfigurationKind {
    /// The kinds that `handset check` knows, one for each command that reads a configuration.
    static let all: [ConfigurationKind] = [
        ConfigurationKind(
            command: "run", signature: ["account"],
            validate: { path, files throws(ConfigError) in
                _ = try DeviceConfiguration.read(path: path, fileChecks: files)
            }),
        ConfigurationKind(
            command: "serve", signature: ["apps", "listen", "users_file"],
            validate: { path, files throws(ConfigError) in
                _ = try ExchangeConfiguration.read(path: path, fileChecks: files)
            }),
        ConfigurationKind(
            command: "user", signature: ["users"],
            validate: { path, _ throws(ConfigError) in _ = try UsersFile(path: path).read() }),
        ConfigurationKind(
            command: "loopback", signature: ["thresholds"],
            validate: { path, _ throws(ConfigError) in
                var thresholds = LoopbackThresholds(.device)
                try LoopbackLimit.read(path: path, into: &thresholds)
            }),
    ]
}
