internal import AudioKit
internal import BotCalls
internal import Loopback
internal import BotProbe
internal import BotWire
internal import CallAgent
internal import CallControl
internal import CallMedia
internal import Logging
internal import MediaEngine
internal import NIOCore
internal import Playout
internal import Realtime
internal import Core

/// What a measuring caller has heard of a bot, and the call's statistics.
struct MeasuredBot {
    let recording: ProbeRecording
    private(set) var facts: [LoopbackRun.Fact] = []
    /// Handset's part of the response times.
    private(set) var ownDelays: [LoopbackRun.Stage] = []

    private static let frame = LoopbackRun.Stage("Frame of what the caller says, until it is full", milliseconds: 20)

    /// Speaks with a bot over its wire.
    init(_ plan: BotPlan, _ probe: BotProbe, _ ending: EndRequest) async throws {
        ProgressLines().say("Calling the bot at \(plan.addressText)")
        let measured: WireRecording
        do {
            measured = try await WireLoopback.measure(plan, probe, mustStop: { ending.isMade })
        } catch let error as BotUnreachable {
            throw CommandFailure(
                error.isRefusal ? .callNotAnswered : .serverUnreachable,
                "\(error) --wire must be what the bot understands.")
        }
        recording = measured.recording
        facts = [.init("Called", plan.addressText)]
        if let failure = measured.failure { facts.append(.init("Connection", failure)) }
        if measured.misunderstood > 0 {
            facts.append(.init("Messages that were not understood", "\(measured.misunderstood)"))
        }
        facts.append(
            .init("Measuring program, late at most", "\(measured.longestDelay.milliseconds.rounded(toPlaces: 1)) ms"))
        ownDelays = [Self.frame, .init("Bot's sound until the next frame, mean", milliseconds: 10)]
    }

    /// Calls a bot through a signaling service.
    init(
        _ callee: String, _ configuration: DeviceConfiguration, _ probe: BotProbe, ringSeconds: Int,
        _ ending: EndRequest
    ) async throws {
        let progress = ProgressLines()
        let caller = try CallProbe(probe)
        let (device, group) = try DeviceFactory(
            configuration: configuration, failsFast: true, logger: Logger(label: "handset")
        ).make()
        await device.provideLines { caller.takeLine() }
        progress.say("Logging in at \(configuration.account.eventsURL)")
        do throws(SignalingError) {
            try await device.connect()
        } catch {
            await device.shutDown()
            throw error
        }
        progress.say("Calling \(callee)")
        let call = await device.call(
            try CalleeAddress(callee).user, audio: AudioBehaviour(source: .program),
            timeToLive: CallLimits.timeToLive(seconds: ringSeconds),
            onlineOnly: configuration.invites.callsOnlineOnly)
        // Waits as long as the process lives; hanging up an ended call does nothing.
        Task {
            await ending.wait()
            await device.hangUp(call)
        }
        // A key without an answer is what the measurement reports.
        let keys = KeyPresses { key in try? await device.press(String(key), on: call) }
        let thread = try RealtimeThread(name: "bot-probe") {
            caller.run { keys.press($0) }
            keys.finish()
            Task { await device.hangUp(call) }
        }
        var (isEstablished, ended): (Bool, (CallRecord, MediaReport?)?) = (false, nil)
        var setUp: Duration?
        for await event in device.events {
            if case .answered = event { progress.say("Answered") }
            if case .established = event { isEstablished = true }
            if case .flowing(_, let time, _) = event { setUp = time }
            if case .ended(_, let record, let report) = event {
                ended = (record, report)
                break
            }
        }
        caller.stop()
        thread.join()
        await device.shutDown()
        try? await group.shutdownGracefully()
        let record = ended?.0
        guard isEstablished else { throw Self.failure(callee, record) }
        if record?.endedBy == .remote { caller.caller.hangUp() }
        recording = caller.caller.recording
        facts = [.init("Called", callee), .init("Ended", record?.reason.rawValue ?? "unknown")]
        if let setUp { facts.append(.init("Set-up", "\(setUp.milliseconds.rounded(toPlaces: 1)) ms")) }
        if let report = ended?.1 { describe(report) }
    }

    private static func failure(_ callee: String, _ record: CallRecord?) -> CommandFailure {
        let reason = record?.reason ?? .internalError
        let isThere = record?.foundNoDevice != true
        let isNotAnswered = !isThere || [.declined, .busy, .noAnswer].contains(reason)
        let error = record?.error.map { " (\($0))" } ?? ""
        return CommandFailure(
            isNotAnswered ? .callNotAnswered : .failed,
            isThere
                ? "the call to \(callee) was not connected: \(reason.rawValue)\(error). Does its device reach the bot?"
                : "\(callee) is offline: no device of that user is connected. Start `handset run` with `behaviour: source: bot`"
        )
    }

    private mutating func describe(_ report: MediaReport) {
        let (peer, playout) = (report.peer, report.playout)
        facts.append(
            .init(
                "Packets",
                "\(peer.packetsSent) sent, \(peer.packetsReceived) received, \(playout.packetsLost) lost, "
                    + "\(playout.packetsLate) late"))
        ownDelays = [
            Self.frame,
            .init("Look-ahead of the encoder", milliseconds: Double(report.encoderDelaySamples) / 48),
            .init("Look-ahead of the decoder", milliseconds: Double(report.decoderDelaySamples) / 48),
            .init(
                "Jitter buffer, mean of the call", milliseconds: Double(playout.meanBufferDelayNanoseconds) / 1e6),
        ]
    }
}
