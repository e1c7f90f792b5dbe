internal import CallAgent
internal import CallControl
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import SignalingClient
internal import Core

/// Tries a new configuration: the network, the login, and a call of the device to itself.
struct SetupTrial {
    /// How long the call may take to be established.
    private static let patience = Duration.seconds(10)

    let configuration: DeviceConfiguration
    /// An interruption ends the trial.
    let ending: EndRequest
    let logger: Logger

    /// Places the call, between two devices of the account that last as long as it.
    ///
    /// - Parameter waitsForAccount: Whether the account is new: a running exchange reads it within two seconds.
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
        let (answering, group) = try make("setup, answering")
        let (calling, otherGroup) = try make("setup, calling")
        let outcome: Result<Duration, any Error>
        do {
            try await connect(answering)
            try await connect(calling)
            outcome = .success(try await call(from: calling))
        } catch {
            outcome = .failure(error)
        }
        await calling.shutDown()
        await answering.shutDown()
        try? await otherGroup.shutdownGracefully()
        try? await group.shutdownGracefully()
        guard !ending.isMade else { throw SetupTrial.interruption }
        return try outcome.get()
    }

    /// Registers the device at its SIP server, and takes that back. A call to itself would ring at every other device of the account.
    func register() async throws {
        let (device, group) = try make("setup")
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await connect(device))
        } catch {
            outcome = .failure(error)
        }
        await device.shutDown()
        try? await group.shutdownGracefully()
        try outcome.get()
    }

    static let interruption = CommandFailure(.interrupted, "interrupted")

    private func make(_ name: String) throws -> (Device, MultiThreadedEventLoopGroup) {
        try DeviceFactory(configuration: end(name), failsFast: true, logger: logger).make()
    }

    private func connect(_ device: Device) async throws {
        let isConnected = try await ending.connect { () async throws(SignalingError) in
            try await device.connect()
        } shutDown: {
            await device.shutDown()
        }
        guard isConnected else { throw SetupTrial.interruption }
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
            throw CommandFailure(.failed, "the exchange did not return the account's id")
        }
        let call = await device.call(
            user, audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -20)), onlineOnly: true)
        let limit = Task {
            guard (try? await Task.sleep(for: Self.patience)) != nil else { return }
            await device.hangUp(call)
        }
        let interruption = Task { [ending] in
            await ending.wait()
            if !Task.isCancelled { await device.shutDown() }
        }
        defer {
            limit.cancel()
            interruption.cancel()
        }
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
                .interrupted, .responded, .transferRequested, .transferProgress, .handover, .parking, .queued,
                .leftQueue,
                .sendingStopped,
                .sendingResumed, .fileFailed, .ended, .card, .loadChanged, .realtimePriorityRefused,
                .playing, .playingEnded, .recording, .recordingEnded, .roomRecording, .roomRecordingEnded, .voicemail,
                .attached,
                .detached:
                break
            }
        }
        throw CommandFailure(.failed, "the device ended before its call to itself")
    }
}
