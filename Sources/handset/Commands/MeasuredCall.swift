internal import AudioDevices
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import Loopback
internal import CallMedia
internal import MediaEngine
internal import Playout
internal import Realtime
internal import Core

/// The call of a measurement: its events and its statistics.
struct MeasuredCall {
    let callee: String
    /// What the measuring cards heard; nil if the call played a file, or did not come about.
    private(set) var heard: MeasuredEnds.Heard?
    private let user: UserID
    private let ends: MeasuredEnds
    private let ringSeconds: Int
    private var media: MediaReport?
    private var card: CardStatistics?
    private var isEstablished = false
    private var setUpTime: Duration?
    private var record: CallRecord?
    private var fileError: AudioFileError?

    /// How long a call on a card is left alone: the card's delay, the jitter buffer's, and the position of the loudspeaker's
    /// turns have settled by then.
    static let settleSeconds = 5

    init(callee: String, ends: MeasuredEnds, ringSeconds: Int) throws {
        self.callee = callee
        user = try CalleeAddress(callee).user
        self.ends = ends
        self.ringSeconds = ringSeconds
    }

    /// Places the call and follows it to its end, which comes when the signal has been played.
    mutating func follow(_ device: Device, _ ending: EndRequest, _ configuration: DeviceConfiguration) async {
        let progress = ProgressLines()
        let call = await device.call(
            user, audio: ends.behaviour,
            timeToLive: CallLimits.timeToLive(seconds: ringSeconds),
            onlineOnly: configuration.invites.callsOnlineOnly)
        // Waits as long as the process lives; hanging up an ended call does nothing.
        Task {
            await ending.wait()
            await device.hangUp(call)
        }
        var listening: Task<MeasuredEnds.Heard?, Never>?
        var isPlayed = false
        func hangUpAfterLastSound() {
            // What is still on its way is to be heard.
            Task {
                try? await Task.sleep(for: .milliseconds(1_200))
                await device.hangUp(call)
            }
        }
        for await event in device.events {
            switch event {
            case .answered: progress.say("Answered")
            case .established(_, let time):
                isEstablished = true
                progress.say(
                    "Established after \(time.milliseconds.rounded(toPlaces: 1)) ms"
                        + (ends.hasCards ? "; measuring in \(Self.settleSeconds) s" : "; measuring"))
                listening = Task { [ends] in
                    let heard = await ends.listen(settleSeconds: Self.settleSeconds, ending)
                    if heard != nil { await device.hangUp(call) }
                    return heard
                }
                if isPlayed { hangUpAfterLastSound() }
            case .flowing(_, let time, _):
                setUpTime = time
                progress.say("Media flows both ways after \(time.milliseconds.rounded(toPlaces: 1)) ms")
            case .playbackEnded:
                isPlayed = true
                if isEstablished { hangUpAfterLastSound() }
            case .fileFailed(_, let error):
                progress.warn("\(error)")
                fileError = error
            case .sendingStopped(_, let reason): progress.warn("The call sends no more: \(reason.rawValue)")
            case .sendingResumed: progress.say("The call sends again")
            case .signaling(.reconnecting): progress.warn("The connection is lost; connecting again")
            case .ended(_, let record, let report):
                self.record = record
                media = report
                card = device.sharedMedia.cardStatistics
                ends.stop()
                heard = await listening?.value
                return
            case .card(let event):
                let text = CardEventText(event: event, audio: configuration.audio)
                if text.isWarning { progress.warn(text.text) }
            case .signaling, .identified, .incoming, .invited, .invite, .digit, .speech, .interrupted, .responded,
                .loadChanged,
                .realtimePriorityRefused, .playing, .playingEnded, .recording, .recordingEnded, .roomRecording,
                .roomRecordingEnded, .voicemail, .attached,
                .detached,
                .transferRequested, .transferProgress, .handover, .parking, .queued, .leftQueue:
                break
            }
        }
    }

    /// Whether there is anything to measure.
    func check() throws {
        if let fileError { throw fileError }
        let reason = record?.reason ?? .internalError
        guard !isEstablished else { return }
        if let record, record.foundNoDevice {
            throw CommandFailure(
                .callNotAnswered,
                "\(callee) is offline: no device of that user is connected. Start one that echoes, such as "
                    + "`handset run` with `behaviour: source: echo`")
        }
        let status: ExitStatus =
            switch reason {
            case .declined, .busy, .noAnswer: .callNotAnswered
            default: .failed
            }
        let error = record?.error.map { " (\($0))" } ?? ""
        throw CommandFailure(
            status, "the call to \(callee) was not connected: \(reason.rawValue)\(error). \(Self.advice(record?.cause))"
        )
    }

    /// What to try after a call that was not connected for this cause.
    static func advice(_ cause: CallFailureCause?) -> String {
        cause == .deviceFault
            ? "Look at the log of the device that was called"
            : "Call a device that echoes, such as `handset run` with `behaviour: source: echo`"
    }

    /// The parts of the call's delay, from its statistics.
    var path: CallLoopback.Path? {
        media.map { CallLoopback.Path($0, card: ends.hasCards ? card : nil) }
    }

    /// Adds the call's facts to the report.
    func describe(_ run: inout LoopbackRun) {
        var facts = [LoopbackRun.Fact("Called", callee)]
        facts.append(.init("Ended", record?.reason.rawValue ?? "unknown"))
        if let setUpTime { facts.append(.init("Set-up", "\(setUpTime.milliseconds.rounded(toPlaces: 1)) ms")) }
        if let media {
            let (peer, playout) = (media.peer, media.playout)
            facts.append(
                .init(
                    "Packets",
                    "\(peer.packetsSent) sent, \(peer.packetsReceived) received, \(playout.packetsLost) lost, "
                        + "\(playout.packetsLate) late"))
            let concealed = AudioFormat.milliseconds(samples: playout.samplesConcealed)
            facts.append(.init("Concealed", "\(concealed.rounded(toPlaces: 1)) ms"))
            if media.playUnderrunSamples > 0 {
                facts.append(.init("Samples played late", "\(media.playUnderrunSamples)"))
            }
        }
        if ends.hasCards, let card {
            facts.append(
                .init(
                    "Call's card",
                    "xruns \(card.playback.xruns) out \(card.capture.xruns) in, delay put right by a jump "
                        + "\(card.playback.jumps) out \(card.capture.jumps) in, lost \(card.losses)"))
            facts.append(
                .init(
                    "Missed by the call's card",
                    "\(card.playback.missingSamples) out \(card.capture.missingSamples) in samples"))
        }
        run.facts = facts + run.facts
    }
}

extension CallLoopback.Path {
    /// The parts of a call's delay from its statistics and its card's.
    init(_ media: MediaReport, card: CardStatistics?) {
        let budget = DelayBudget(media, card: card)
        let roundTrip = media.peer.roundTripNanoseconds
        self.init(
            networkMilliseconds: roundTrip > 0 ? Double(roundTrip) / 1e6 : nil,
            jitterBufferMilliseconds: Double(media.playout.meanBufferDelayNanoseconds) / 1e6,
            codecMilliseconds: Double(media.encoderDelaySamples + media.decoderDelaySamples) / 48,
            frameMilliseconds: Double(media.frameSamples) / 48,
            card: card.map { _ in
                Card(microphone: Self.stages(budget.sending), loudspeaker: Self.stages(budget.receiving))
            })
    }

    /// Those of the card, with names for people.
    private static func stages(_ stages: [DelayBudget.Stage]) -> [LoopbackRun.Stage] {
        let names = [
            "capture_behind_card": "Behind the microphone's card: driver, sound server",
            "capture_card": "Microphone's card: buffer",
            "capture_resampler": "Microphone's card: resampler",
            "capture_ring": "Microphone's card: ring, and margin for late threads",
            "speakerphone": "Echo cancellation, noise suppression, gain control",
            "playback_ring": "Loudspeaker's card: ring, and margin for late threads",
            "playback_resampler": "Loudspeaker's card: resampler",
            "playback_card": "Loudspeaker's card: buffer",
            "playback_behind_card": "Behind the loudspeaker's card: driver, sound server",
        ]
        return stages.compactMap { stage in
            names[stage.name].map { LoopbackRun.Stage($0, milliseconds: stage.milliseconds) }
        }
    }
}
