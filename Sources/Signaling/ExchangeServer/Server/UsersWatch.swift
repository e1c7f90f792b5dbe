import ConfigReader
import ExchangeCore
import Logging
import NIOCore
import NIOPosix

/// Takes up what `handset user` writes, within about a second: looks at the users file, and reads it when it is another.
///
/// Lives on the hub's event loop; the file is read on a thread of its own. A file that is wrong changes nothing.
final class UsersWatch {
    private static let interval = TimeAmount.seconds(1)

    private let file: UsersFile
    private var configured: [Account]
    private let hub: ExchangeHub
    private let thread: NIOThreadPool
    private let logger: Logger
    private var version: FileVersion?

    /// - Parameter configured: The users of the configuration itself, whose ids are taken.
    init(_ file: UsersFile, beside configured: [Account], hub: ExchangeHub, thread: NIOThreadPool, logger: Logger) {
        self.file = file
        self.configured = configured
        self.hub = hub
        self.thread = thread
        self.logger = logger
    }

    /// Looks at the file now, and every second from then on.
    func start() {
        let (file, configured, known) = (file, configured, version)
        thread.runIfActive(eventLoop: hub.loop) { () -> (FileVersion?, Result<[Account], ConfigError>)? in
            let version = file.version
            guard version != known else { return nil }
            do throws(ConfigError) {
                return (version, .success(try file.read(beside: configured)))
            } catch {
                return (version, .failure(error))
            }
        }
        .assumeIsolated()
        .whenComplete { [weak self] result in
            guard let self, !hub.isStopping else { return }
            if case .success(let news?) = result { take(news.1, version: news.0) }
            hub.loop.assumeIsolated().scheduleTask(in: Self.interval) { [weak self] in self?.start() }
        }
    }

    /// The configuration itself has these users from now on.
    func adopt(configured: [Account]) {
        self.configured = configured
        version = nil
    }

    private func take(_ users: Result<[Account], ConfigError>, version: FileVersion?) {
        self.version = version
        switch users {
        case .success(let users):
            hub.replaceFileUsers(users)
            logger.info("The users file was read", metadata: ["path": "\(file.path)", "users": "\(users.count)"])
        case .failure(let error):
            logger.error(
                "The users file cannot be used; the users stay unchanged",
                metadata: ["error": "\(error.problems.map(\.description).joined(separator: "; "))"])
        }
    }
}
