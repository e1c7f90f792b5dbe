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
        SignedTokenReader(configuration.apiKeys, maximumLifetime: configuration.core.signedTokenLifetime.seconds)
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
        var settings = ExchangeCore.Settings(configuration.core, push: configuration.push)
        settings.kept.total = configuration.memoryShares.kept
        settings.tokens = configuration.memoryShares.tokens
        settings.tracesInvites = configuration.traces != nil
        return settings
    }
}
