import ConfigReader
import ExchangeCore
import Logging
import NIOCore
import NIOPosix

/// Takes up what `handset user` writes, within about two seconds: looks at the users file every second.
///
/// Lives on the hub's event loop; the file is read on a thread of its own.
final class UsersWatch {
    private static let interval = TimeAmount.seconds(1)

    private var reader: UsersReader
    private var configured: [Account]
    /// Counts the configurations: what was read beside the users of an earlier one is not taken.
    private var generation = 0
    private let hub: ExchangeHub
    private let thread: NIOThreadPool
    private let logger: Logger

    /// - Parameter configured: The users of the configuration itself, whose ids are taken.
    init(
        _ reader: UsersReader, beside configured: [Account], hub: ExchangeHub, thread: NIOThreadPool, logger: Logger
    ) {
        self.reader = reader
        self.configured = configured
        self.hub = hub
        self.thread = thread
        self.logger = logger
    }

    /// Looks at the file now, and every second from then on.
    func start() {
        let (reader, configured, began) = (reader, configured, generation)
        thread.runIfActive(eventLoop: hub.loop) { () -> (UsersReader, UsersReader.Finding?) in
            var reader = reader
            let finding = reader.look(beside: configured)
            return (reader, finding)
        }
        .assumeIsolated()
        .whenComplete { [weak self] result in
            guard let self, !hub.isStopping else { return }
            if case .success((let reader, let finding)) = result, generation == began {
                self.reader = reader
                if let finding { take(finding) }
            }
            hub.loop.assumeIsolated().scheduleTask(in: Self.interval) { [weak self] in self?.start() }
        }
    }

    /// The configuration itself has these users from now on.
    func adopt(configured: [Account]) {
        self.configured = configured
        generation += 1
        reader.readAgain()
    }

    private func take(_ finding: UsersReader.Finding) {
        let path = reader.file.path
        switch finding {
        case .users(let users):
            hub.replaceFileUsers(users)
            logger.info("The users file was read", metadata: ["path": "\(path)", "users": "\(users.count)"])
        case .problem(let problem):
            logger.error("The users file cannot be used; the users stay unchanged", metadata: ["error": "\(problem)"])
        }
    }
}
