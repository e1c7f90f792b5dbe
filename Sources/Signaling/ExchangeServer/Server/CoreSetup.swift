import ExchangeCore
import Core

/// What the core is made with: the accounts of the configuration and of the users file, and the settings.
struct CoreSetup {
    private(set) var configuration: ExchangeConfiguration
    private(set) var signedTokens: SignedTokenReader
    /// The accounts of the users file, as it was read last.
    private var fileUsers: [Account]

    init(_ configuration: ExchangeConfiguration) {
        self.configuration = configuration
        signedTokens = Self.reader(configuration)
        fileUsers = configuration.fileUsers
    }

    private static func reader(_ configuration: ExchangeConfiguration) -> SignedTokenReader {
        SignedTokenReader(configuration.apiKeys, maximumLifetime: configuration.signedTokenLifetime.seconds)
    }

    /// Takes another configuration, but not its accounts of the users file, which may be older than those read since.
    mutating func adopt(_ configuration: ExchangeConfiguration) {
        self.configuration = configuration
        signedTokens = Self.reader(configuration)
    }

    mutating func replaceFileUsers(_ users: [Account]) { fileUsers = users }

    var accounts: [Account] { configuration.users + fileUsers }

    func makeCore() -> ExchangeCore {
        var generator = SystemRandomNumberGenerator()
        return ExchangeCore(accounts: accounts, settings: settings, run: RunSeed(using: &generator))
    }

    var settings: ExchangeCore.Settings {
        var settings = ExchangeCore.Settings()
        settings.keepalive = configuration.keepalive
        settings.resumeWindow = configuration.resumeWindow
        settings.tokenLifetime = configuration.tokenLifetime
        settings.refreshLifetime = configuration.refreshLifetime
        settings.signedTokenLifetime = configuration.signedTokenLifetime
        settings.tokenNotice = configuration.tokenNotice
        settings.messages = TokenBucket.Rate(
            burst: configuration.messageBurst, perSecond: Double(configuration.messagesPerSecond))
        settings.tellsPresence = configuration.tellsPresence
        settings.trunks = configuration.trunks
        settings.kept.total = configuration.memoryShares.kept
        settings.tokens = configuration.memoryShares.tokens
        settings.recordRetention = configuration.callRecordRetention
        settings.deadPushRetention = configuration.push.deadRetention
        settings.push.kinds = Set(configuration.push.webhooks.map(\.kind))
        settings.push.parallel = configuration.push.parallelRequests
        settings.push.life = configuration.push.life
        return settings
    }
}
