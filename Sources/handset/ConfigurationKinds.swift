internal import CallAgent
internal import ConfigReader
internal import ExchangeServer
internal import Loopback
internal import TrunkGateway

extension ConfigurationKind {
    /// The kinds that `handset check` knows, one for each command that reads a configuration.
    static let all: [ConfigurationKind] = [
        ConfigurationKind(
            command: "run", signature: ["account", "accounts"], keys: DeviceConfiguration.keys,
            judge: { path, files throws(ConfigError) in
                let document = try ConfigDocument.read(path: path, fileChecks: files)
                let configuration = try AccountsConfiguration.read(document)
                return configuration.warnings + (files == .all ? configuration.cardWarnings(in: document) : [])
            }),
        ConfigurationKind(
            command: "serve", signature: ["apps", "listen", "users_file"], keys: ExchangeConfiguration.keys,
            judge: { path, files throws(ConfigError) in
                try ExchangeConfiguration.read(path: path, fileChecks: files).warnings
            }),
        ConfigurationKind(
            command: "trunk", signature: ["exchange", "network"], keys: TrunkConfiguration.keys,
            judge: { path, files throws(ConfigError) in try TrunkConfiguration.check(path: path, fileChecks: files) }),
        ConfigurationKind(
            command: "user", signature: ["users"], keys: UsersFile.keys,
            judge: { path, _ throws(ConfigError) in
                _ = try UsersFile(path: path).read()
                return []
            }),
        ConfigurationKind(
            command: "loopback", signature: ["thresholds"], keys: LoopbackLimit.keys,
            judge: { path, _ throws(ConfigError) in
                var thresholds = LoopbackThresholds(.device)
                try LoopbackLimit.read(path: path, into: &thresholds)
                return []
            }),
    ]
}
