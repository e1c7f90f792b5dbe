import ICE
import CallMedia
import MediaEngine
import Core
import AudioKit
import Playout
import Realtime
import SecureTransport
import Testing

/// Calls between two engines that ICE connects and DTLS keys, on real sockets.
@Suite("Calls connected by ICE and DTLS, on the loopback", .timeLimit(.minutes(5)))
struct ConnectedCallTests {
    @Test("CALL-2: Two engines find a path, shake hands, and media flows both ways")
    func call() async throws {
        let pair = try EnginePair()
        let call = try ConnectedCall(pair, number: 1)
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        let path = try await pair.deviceEvents.first {
            if case .connected(call.device, _) = $0 { true } else { false }
        }
        guard case .connected(_, let way) = path else { throw EventMismatch() }
        #expect(!way.isRelayed)
        try await pair.device.receives(20, on: call.device)
        pair.caller.stop(call.caller)
        let report = try await pair.callerEvents.ended(call.caller)
        // The end of the DTLS association, or RTCP's goodbye, whichever is first.
        _ = try await pair.deviceEvents.first { if case .goodbyeReceived(call.device) = $0 { true } else { false } }
        pair.device.stop(call.device)
        let deviceReport = try await pair.deviceEvents.ended(call.device)
        pair.shutdown()
        #expect(report.peer.dropped.unauthenticated == 0 && deviceReport.peer.dropped.unauthenticated == 0)
    }

    @Test("CALL-2: A call over ICE and DTLS is ready without any sound, and reported so once")
    func ready() async throws {
        let pair = try EnginePair()
        let call = try ConnectedCall(pair, number: 1)
        pair.caller.setDirection(call.caller, sends: false, receives: false)
        pair.device.setDirection(call.device, sends: false, receives: false)
        try await pair.callerEvents.ready(call.caller)
        try await pair.deviceEvents.ready(call.device)
        for events in [pair.callerEvents.all, pair.deviceEvents.all] {
            #expect(events.count { if case .ready = $0 { true } else { false } } == 1)
            #expect(events.contains { if case .connected = $0 { true } else { false } })
        }
        pair.shutdown()
    }

    @Test("A stranger's plain DTLS records to the caller's port while it rings do not end the call")
    func stranger() async throws {
        let pair = try EnginePair()
        let source = try #require(SocketAddress(host: "127.0.0.3", port: 0))
        let stranger = try UDPSocket(boundTo: source)
        // Epoch, sequence number, and the length's first byte.
        let zeros = [UInt8](repeating: 0, count: 9)
        let alert: [UInt8] = [21, 254, 253] + zeros + [2, 2, 40]
        let handshake: [UInt8] = [22, 254, 253] + zeros + [4, 7, 7, 7, 7]
        let data: [UInt8] = [23, 254, 253] + zeros + [2, 7, 7]
        var sent = 0
        let call = try ConnectedCall(
            pair, number: 1,
            toldToDevice: { candidate in
                guard let port = Candidate(parsing: candidate)?.address else { return candidate }
                for _ in 0..<3 {
                    for record in [alert, handshake, data] where stranger.send(record, to: port) { sent += 1 }
                }
                return candidate
            })
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        let failures = (pair.callerEvents.all + pair.deviceEvents.all).filter {
            if case .connectionFailed = $0 { true } else { false }
        }
        #expect(sent >= 9 && failures.isEmpty)
        pair.shutdown()
    }

    @Test("Ten calls to one shared socket find each other by name, source and SSRC")
    func sharedSocket() async throws {
        let pair = try EnginePair()
        let calls = try (1...10).map { try ConnectedCall(pair, number: UInt32($0)) }
        for call in calls {
            try await pair.callerEvents.flowing(call.caller)
            try await pair.deviceEvents.flowing(call.device)
            try await pair.device.receives(5, on: call.device)
        }
        for call in calls {
            pair.caller.stop(call.caller)
            pair.device.stop(call.device)
            let report = try await pair.deviceEvents.ended(call.device)
            #expect(report.peer.packetsReceived >= 5)
        }
        pair.shutdown()
    }

    @Test("A peer whose certificate is not the promised one gets no media, and the reason is reported")
    func wrongFingerprint() async throws {
        let pair = try EnginePair()
        let stranger = try DTLSIdentity(at: MonotonicClock.wallTime)
        let call = try ConnectedCall(pair, number: 1, promisedToDevice: stranger.fingerprint(.sha256))
        let event = try await pair.deviceEvents.first {
            if case .connectionFailed(call.device, _) = $0 { true } else { false }
        }
        guard case .connectionFailed(_, let reason) = event else { throw EventMismatch() }
        #expect(reason.description.contains("fingerprint"))
        let report = try #require(await pair.device.report(on: call.device))
        #expect(report.peer.packetsSent == 0 && report.peer.packetsReceived == 0)
        pair.shutdown()
    }

    @Test("A call that is given up before its peer has answered frees its sockets")
    func givenUp() async throws {
        let pair = try EnginePair()
        for _ in 0..<300 {
            let (id, candidates) = try pair.caller.connect(
                ConnectedCall.plan(isCaller: true),
                at: pair.caller.place())
            #expect(!candidates.isEmpty)
            pair.caller.stop(id)
        }
        pair.shutdown()
    }
}

/// Both halves of a call that ICE connects.
struct ConnectedCall {
    let caller: MediaCallID
    let device: MediaCallID
    /// The device's name in checks.
    let deviceFragment: String

    /// - Parameters:
    ///   - toldToCaller: What becomes of the device's candidates on their way.
    ///   - toldToDevice: What becomes of the caller's.
    init(
        _ pair: EnginePair, number: UInt32, promisedToDevice: DTLSFingerprint? = nil,
        toldToCaller: (String) -> String? = { $0 }, toldToDevice: (String) -> String? = { $0 }
    ) throws {
        var caller = try Half(pair.caller, try Self.plan(isCaller: true))
        var device = try Half(pair.device, try Self.plan(isCaller: false))
        caller.candidates = caller.candidates.compactMap(toldToDevice)
        device.candidates = device.candidates.compactMap(toldToCaller)
        try self.init(caller, device, number: number, promisedToDevice: promisedToDevice)
    }

    /// A call whose sides tell each other of all their candidates once they have them.
    init(_ pair: EnginePair, _ callerPlan: ConnectionPlan, _ devicePlan: ConnectionPlan) async throws {
        var caller = try Half(pair.caller, callerPlan)
        var device = try Half(pair.device, devicePlan)
        try await caller.gather(pair.callerEvents)
        try await device.gather(pair.deviceEvents)
        try self.init(caller, device, number: 1)
    }

    /// One side, before it knows of the other.
    private struct Half {
        let engine: MediaEngine
        let placement: MediaPlacement
        let plan: ConnectionPlan
        let id: MediaCallID
        var candidates: [String]

        init(_ engine: MediaEngine, _ plan: ConnectionPlan) throws {
            self.engine = engine
            self.plan = plan
            placement = engine.place()
            (id, candidates) = try engine.connect(plan, at: placement)
        }

        mutating func gather(_ events: EventLog) async throws {
            _ = try await events.first { [id] in if case .candidatesComplete(id) = $0 { true } else { false } }
            for case .candidate(id, let candidate) in events.all { candidates.append(candidate) }
        }

        /// What the other side is told; it takes the certificate for this one's.
        func remote(_ role: DTLSRole, _ fingerprint: DTLSFingerprint? = nil) throws -> RemoteConnection {
            let identity = try #require(plan.handshake).identity
            let peer = RemoteCandidates(
                credentials: plan.credentials, isLite: false, candidates: candidates, hasEnded: true)
            return RemoteConnection(
                .ice(peer), handshake: (role, [fingerprint ?? identity.fingerprint(.sha256)]))
        }
    }

    private init(
        _ caller: Half, _ device: Half, number: UInt32, promisedToDevice: DTLSFingerprint? = nil
    ) throws {
        (self.caller, self.device) = (caller.id, device.id)
        deviceFragment = device.plan.credentials.usernameFragment
        _ = try device.engine.start(
            Self.media(local: number * 2 + 1, remote: number * 2, AudioBehaviour(source: .echo)),
            at: device.placement, connection: device.id)
        device.engine.connect(device.id, to: try caller.remote(.active, promisedToDevice))
        _ = try caller.engine.start(
            Self.media(
                local: number * 2, remote: number * 2 + 1,
                AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))),
            at: caller.placement, connection: caller.id)
        caller.engine.connect(caller.id, to: try device.remote(.passive))
    }

    static func plan(isCaller: Bool) throws -> ConnectionPlan {
        var generator = SystemRandomNumberGenerator()
        return ConnectionPlan(
            ice: ICEConfiguration(isControlling: isCaller), credentials: ICECredentials(using: &generator),
            hasOwnSocket: isCaller,
            handshake: .init(try DTLSIdentity(at: MonotonicClock.wallTime), DTLSConfiguration()))
    }

    static func media(
        local: UInt32, remote: UInt32, _ audio: AudioBehaviour, _ transport: PeerPlan.Transport = .connected
    ) -> MediaCallPlan {
        MediaCallPlan(
            peer: PeerPlan(
                transport: transport, protection: .handshake, remoteSSRC: remote, localSSRC: local,
                canonicalName: "test@handset", sendPayloadType: 111, receivePayloadType: 111,
                randomSeed: UInt64(local)),
            encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: audio, start: .whenConnected)
    }
}

extension MediaEngine {
    /// Waits until a call has received that many packets.
    func receives(_ packets: Int, on id: MediaCallID) async throws {
        for _ in 0..<1_000 {
            if let report = await report(on: id), report.peer.packetsReceived >= packets { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("no \(packets) packets within 10 s")
    }
}
