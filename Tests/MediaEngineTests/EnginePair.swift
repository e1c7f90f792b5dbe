import CallMedia
import Core
import AudioKit
import Playout
import SecureTransport
import Synchronization
import TLS
import TestSupport
import Testing

@testable import MediaEngine

/// Two engines on the loopback, and the plans of calls between them.
final class EnginePair: Sendable {
    let caller: MediaEngine
    let device: MediaEngine
    let callerEvents = EventLog()
    let deviceEvents = EventLog()

    /// - Parameters:
    ///   - relayTrust: Who vouches for TURN servers.
    ///   - deviceHost: The device's only address.
    init(relayTrust: TrustRoots = .system, deviceHost: String = "127.0.0.1") throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let configuration = MediaEngineConfiguration(
            bindAddress: loopback, realtimePriority: nil, relayTrust: relayTrust)
        var ofDevice = configuration
        ofDevice.bindAddress = try #require(SocketAddress(host: deviceHost, port: 0))
        caller = try MediaEngine(configuration, files: AudioFileThreads(.patient)) { [callerEvents] in
            callerEvents.note($0)
        }
        device = try MediaEngine(ofDevice, files: AudioFileThreads(.patient)) { [deviceEvents] in
            deviceEvents.note($0)
        }
    }

    /// Starts one call; both halves' ids.
    func call(
        number: UInt32 = 1, suite: SRTPSuite = .aeadAES128GCM, callerAudio: AudioBehaviour, deviceAudio: AudioBehaviour,
        deviceReceiveKeySeed: UInt64? = nil, _ change: (inout MediaCallPlan) -> Void = { _ in }
    ) throws -> (caller: MediaCallID, device: MediaCallID) {
        var generator = SeededGenerator(seed: UInt64(number))
        let toDevice = SRTPKey.random(suite, using: &generator)
        let toCaller = SRTPKey.random(suite, using: &generator)
        var wrong = SeededGenerator(seed: deviceReceiveKeySeed ?? 0)
        let heard = deviceReceiveKeySeed == nil ? toDevice : SRTPKey.random(suite, using: &wrong)
        let (atCaller, atDevice) = (caller.place(), device.place())
        var devicePlan = plan(
            to: atCaller.localAddress, remoteSSRC: number * 2, localSSRC: number * 2 + 1, send: toCaller,
            receive: heard, audio: deviceAudio, start: .withFirstPacket(noLaterThan: .milliseconds(200)))
        var callerPlan = plan(
            to: atDevice.localAddress, remoteSSRC: number * 2 + 1, localSSRC: number * 2, send: toDevice,
            receive: toCaller, audio: callerAudio, start: .atOnce)
        change(&devicePlan)
        change(&callerPlan)
        let deviceID = try device.start(devicePlan, at: atDevice)
        let callerID = try caller.start(callerPlan, at: atCaller)
        return (callerID, deviceID)
    }

    private func plan(
        to remote: SocketAddress, remoteSSRC: UInt32, localSSRC: UInt32, send: SRTPKey, receive: SRTPKey,
        audio: AudioBehaviour, start: MediaCallPlan.Start
    ) -> MediaCallPlan {
        MediaCallPlan(
            peer: PeerPlan(
                transport: .direct(to: remote), protection: .keys(send: send, receive: receive),
                remoteSSRC: remoteSSRC, localSSRC: localSSRC, canonicalName: "test@handset", sendPayloadType: 111,
                receivePayloadType: 111, randomSeed: UInt64(localSSRC)),
            encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: audio, start: start)
    }

    func shutdown() {
        caller.shutdown()
        device.shutdown()
    }
}

/// What an engine has told, in order, for tests that wait for it.
final class EventLog: Sendable {
    private let events = Mutex<[MediaEvent]>([])

    func note(_ event: MediaEvent) { events.withLock { $0.append(event) } }

    /// The first event, told already or still to come, that `matches`.
    func first(_ matches: (MediaEvent) -> Bool) async throws -> MediaEvent {
        var found: MediaEvent?
        try await until {
            found = all.first(where: matches)
            return found != nil
        }
        return try #require(found)
    }

    var all: [MediaEvent] { events.withLock { $0 } }

    func ready(_ id: MediaCallID) async throws {
        _ = try await first { if case .ready(id, _) = $0 { true } else { false } }
    }

    func flowing(_ id: MediaCallID) async throws {
        _ = try await first { if case .flowing(id, _) = $0 { true } else { false } }
    }

    func ended(_ id: MediaCallID) async throws -> MediaReport {
        let event = try await first { if case .ended(id, _) = $0 { true } else { false } }
        guard case .ended(_, let report) = event else { throw EventMismatch() }
        return report
    }
}

struct EventMismatch: Error {}
