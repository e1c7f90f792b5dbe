internal import CallAgent
internal import CallControl
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import SignalingClient
internal import Timekeeping

/// Tries a new configuration: the network, the login, and a call of the device to itself.
struct SetupTrial {
    /// How long the call may take to be established.
    private static let patience = Duration.seconds(10)

    let configuration: DeviceConfiguration
    let logger: Logger

    /// Places the call, between two devices of the account that last as long as it.
    ///
    /// - Parameter waitsForAccount: Whether the account is new: an exchange that runs takes it up within two seconds.
    /// - Returns: The time from the call to media in both directions.
    func callItself(waitsForAccount: Bool) async throws -> Duration {
        for _ in 0..<(waitsForAccount ? 5 : 0) {
            do {
                return try await callItself()
            } catch let error as SignalingError where error.code == .loginRefused {
                try await Task.sleep(for: .seconds(1))
            }
        }
        return try await callItself()
    }

    private func callItself() async throws -> Duration {
        let (answering, group) = try DeviceFactory(
            configuration: end("setup, answering"), failsFast: true, logger: logger
        )
        .make()
        let (calling, otherGroup) = try DeviceFactory(
            configuration: end("setup, calling"), failsFast: true, logger: logger
        )
        .make()
        let outcome: Result<Duration, any Error>
        do {
            try await answering.connect()
            try await calling.connect()
            outcome = .success(try await call(from: calling))
        } catch {
            outcome = .failure(error)
        }
        await calling.shutDown()
        await answering.shutDown()
        try? await otherGroup.shutdownGracefully()
        try? await group.shutdownGracefully()
        return try outcome.get()
    }

    /// The configuration without what the unit keeps, and with an echo.
    private func end(_ name: String) -> DeviceConfiguration {
        var end = configuration
        end.account.sessionFile = nil
        end.device.id = nil
        end.device.name = name
        end.device.callRecords = nil
        end.behaviour.source = .echo
        end.control = nil
        return end
    }

    private func call(from device: Device) async throws -> Duration {
        guard let user = await device.status.user else {
            throw CommandFailure(.failed, "the exchange did not say who we are")
        }
        let call = await device.call(
            user, audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -20)), onlineOnly: true)
        let limit = Task {
            guard (try? await Task.sleep(for: Self.patience)) != nil else { return }
            await device.hangUp(call)
        }
        defer { limit.cancel() }
        for await event in device.events {
            switch event {
            case .flowing(let id, let time, _) where id == call:
                await device.hangUp(call)
                return time
            case .ended(let id, let record, _) where id == call:
                guard record.establishedAfter == nil else {
                    throw CommandFailure(
                        .failed,
                        "the call to itself was established, but its sound did not arrive within \(Self.patience.seconds) s. "
                            + "Does a firewall drop UDP?")
                }
                let error = record.error.map { ": \($0)" } ?? ""
                throw CommandFailure(.failed, "the call to itself ended as \(record.reason.rawValue)\(error)")
            case .signaling, .identified, .incoming, .invited, .invite, .answered, .established, .flowing,
                .playbackEnded, .digit,
                .speech,
                .interrupted, .responded, .transferRequested, .transferProgress,
                .sendingStopped,
                .sendingResumed, .fileFailed, .ended, .card, .loadChanged, .realtimePriorityRefused,
                .playing, .playingEnded, .recording, .recordingEnded, .attached, .detached:
                break
            }
        }
        throw CommandFailure(.failed, "the device ended before its call to itself")
    }
}
