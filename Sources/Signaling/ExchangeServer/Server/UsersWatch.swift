import BlockingWork
import ConfigReader
import ExchangeCore
import HTTPTransport
import Logging
import NIOCore

/// Takes up what `handset user` writes, within about two seconds: looks at the users file every second.
///
/// Lives on the hub's event loop; the file is read on a thread for files, so that a disk that hangs stops nothing else.
final class UsersWatch {
    private static let interval = TimeAmount.seconds(1)

    private var reader: UsersReader
    private var configured: [Account]
    /// Counts the configurations: what was read beside the users of an earlier one is not taken.
    private var generation = 0
    private let hub: ExchangeHub
    private let logger: Logger

    /// - Parameter configured: The users of the configuration itself, whose ids are taken.
    init(
        _ reader: UsersReader, beside configured: [Account], hub: ExchangeHub, logger: Logger
    ) {
        self.reader = reader
        self.configured = configured
        self.hub = hub
        self.logger = logger
    }

    /// Looks at the file now, and every second from then on.
    func start() {
        let (reader, configured, began) = (reader, configured, generation)
        hub.runWithFiles { () -> (UsersReader, UsersReader.Finding?) in
            var reader = reader
            let finding = reader.look(beside: configured)
            return (reader, finding)
        } then: { [weak self] reader, finding in
            guard let self, !hub.isStopping else { return }
            if generation == began {
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

extension ExchangeHub {
    /// Does work that a disk may hold up on a thread for it, and hands the result to this event loop, unless the exchange has stopped
    /// by then. Call it there.
    func runWithFiles<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value, then: @escaping (Value) -> Void
    ) {
        let (door, then) = (door, NIOLoopBound(then, eventLoop: loop))
        Task {
            let value = await BlockingThreads.files.run(work)
            door.execute { then.value(value) }
        }
    }
}
