internal import Logging
internal import Core

/// This process as a unit of a service manager. Nothing happens if it is none.
struct ServiceUnit: Sendable {
    private let manager: ServiceManager?
    private let logger: Logger

    init(logger: Logger) {
        self.logger = logger
        do throws(ServiceManagerError) {
            manager = try ServiceManager.ofThisProcess()
        } catch {
            logger.warning("The service manager receives no notifications", metadata: ["error": "\(error)"])
            manager = nil
        }
    }

    /// Sends the service manager a notice with a status line.
    func notify(_ notice: ServiceNotice, status: String) {
        send { manager throws(ServiceManagerError) in try manager.notify(notice, .status(status)) }
    }

    /// Sends the service manager a status line.
    func notify(status: String) {
        send { manager throws(ServiceManagerError) in try manager.notify(.status(status)) }
    }

    /// Feeds the watchdog, if there is one, three times as often as it must be fed, each time after `isAlive` has said yes.
    /// If that says no, or says nothing, the service manager ends this process.
    ///
    /// - Returns: To be cancelled at the end.
    func feedWatchdog(while isAlive: @escaping @Sendable () async -> Bool) -> Task<Void, Never>? {
        guard let limit = manager?.watchdogLimit else { return nil }
        return Task {
            while !Task.isCancelled {
                if await isAlive() {
                    send { manager throws(ServiceManagerError) in try manager.notify(.alive) }
                } else {
                    logger.error("The watchdog gets no notification: a part of the process does not answer")
                }
                try? await Task.sleep(for: limit / 3)
            }
        }
    }

    private func send(_ notify: (ServiceManager) throws(ServiceManagerError) -> Void) {
        guard let manager else { return }
        do throws(ServiceManagerError) {
            try notify(manager)
        } catch {
            logger.warning("The service manager was not notified", metadata: ["error": "\(error)"])
        }
    }
}
