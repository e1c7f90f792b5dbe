internal import CallAgent
internal import MediaEngine

/// From where and how a command calls: the options that `handset call` and `handset loopback call` have in common.
struct CallerConfiguration {
    /// Path of the account's configuration.
    let config: String?
    /// Which of several accounts in it.
    var account: String?
    /// Base URL of the server, over what the configuration says.
    let server: String?
    /// Whether to call as browsers do, over what the configuration says.
    let webrtc: Bool?

    /// Reads the configuration; without one it is the demo's account on the callee's server.
    func read(for callee: String) throws -> DeviceConfiguration {
        var configuration: DeviceConfiguration
        if let config {
            try ConfigurationCheck.expect("run", path: config)
            configuration = try DeviceConfiguration.read(path: config, server: server, account: account)
        } else {
            configuration = DeviceConfiguration(account: .demoCaller)
            if let server = try server ?? CalleeAddress(callee).server { configuration.account.use(server: server) }
        }
        if let webrtc { configuration.media.offers = webrtc ? .webRTC : .sdes }
        return configuration
    }
}
