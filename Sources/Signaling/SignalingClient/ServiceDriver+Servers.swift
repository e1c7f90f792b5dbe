internal import CallControl
internal import Logging
internal import SignalWire
internal import Timekeeping

// STUN and TURN servers: what the exchange names, for as long as it is good.
extension ServiceDriver {
    /// When to ask again after a question that came to nothing.
    private static let patience = Duration.seconds(60)

    /// The exchange names these servers. They are asked for again when half of the time has passed that their names and
    /// passwords are good, so that a call that begins has the other half.
    func take(serversOf resources: CallControl.ConnectionResources) {
        serversDue = resources.iceServersLifetime.map { now.advanced(by: $0 / 2) }
        scheduleWakeUp()
        guard resources.iceServers != iceServers else { return }
        iceServers = resources.iceServers
        // The first ones are there before the connection is, and whoever connects reads them then.
        if hasConnected { hub.publish(.iceServersChanged) }
    }

    /// Asks for the servers again if it is time.
    func renewServersIfDue() {
        guard let due = serversDue, now >= due else { return }
        serversDue = now.advanced(by: Self.patience)
        // The next connection fetches them.
        guard connection.state == .connected, let token = held?.token else { return }
        let rest = rest
        let finish = finisher { (driver, result: Result<SignalWire.ConnectionResources, ServiceFailure>) in
            switch result {
            case .success(let resources): driver.take(serversOf: .init(resources))
            case .failure(let failure):
                driver.logger.warning(
                    "new ways in to TURN servers cannot be had, trying again",
                    metadata: ["in": "\(Self.patience.text)", "because": "\(failure.error)"])
            }
        }
        Task {
            do throws(ServiceFailure) {
                finish(.success(try await rest.resources(token: token)))
            } catch {
                finish(.failure(error))
            }
        }
    }
}
