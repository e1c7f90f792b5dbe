internal import AudioDevices
internal import CallAgent
internal import CallControl
internal import CallMedia
internal import Logging
internal import MediaEngine
internal import Playout
internal import AudioKit
internal import Core

/// What a device's log says of its events.
enum DeviceEventLog {
    /// Logs an event of a device.
    static func log(_ event: DeviceEvent, _ configuration: DeviceConfiguration, _ logger: Logger) {
        switch event {
        case .signaling(let event): log(event, logger)
        case .identified: break  // In each line about the call from now on.
        case .incoming(let call, let caller):
            logger.info("A call comes in", metadata: ["call": "\(call)", "from": "\(caller)"])
        case .invited(let invite):
            logger.info(
                "An invite comes in", metadata: ["invite": "\(invite.id)", "from": "\(invite.received.inviter)"])
        case .invite: logger.debug("An invite has changed")
        case .answered(let call): logger.debug("Answered", metadata: ["call": "\(call)"])
        case .established(let call, let time):
            logger.info(
                "Established",
                metadata: ["call": "\(call)", "established_ms": "\(time.milliseconds.rounded(toPlaces: 1))"])
        case .flowing(let call, let time, let establishedAfter):
            logger.info(
                "Media flows both ways",
                metadata: [
                    "call": "\(call)", "setup_ms": "\(time.milliseconds.rounded(toPlaces: 1))",
                    "established_ms": "\(establishedAfter.milliseconds.rounded(toPlaces: 1))",
                ])
        case .playbackEnded(let call): logger.debug("The file has ended", metadata: ["call": "\(call)"])
        case .digit(let call, let digit, let time):
            logger.info(
                "The peer pressed a key",
                metadata: [
                    "call": "\(call)", "digit": "\(digit)", "held_ms": "\(time.milliseconds.rounded(toPlaces: 0))",
                ])
        case .speech(let call, let isOver, let at):
            logger.debug(
                isOver ? "The caller's speech ends" : "The caller speaks",
                metadata: ["call": "\(call)", "position_ms": "\(at.milliseconds.rounded(toPlaces: 1))"])
        case .interrupted(let call, let played):
            logger.info(
                "The caller has interrupted the program",
                metadata: ["call": "\(call)", "played_ms": "\(played.milliseconds.rounded(toPlaces: 1))"])
        case .responded(let call, let time):
            logger.info(
                "The program answers",
                metadata: ["call": "\(call)", "after_ms": "\(time.milliseconds.rounded(toPlaces: 1))"])
        case .sendingStopped(let call, let reason):
            logger.warning("A call sends no more", metadata: ["call": "\(call)", "reason": "\(reason.rawValue)"])
        case .sendingResumed(let call): logger.info("A call sends again", metadata: ["call": "\(call)"])
        case .playing(let call, let path):
            logger.info("A file is played in a call", metadata: ["call": "\(call)", "file": "\(path)"])
        case .playingEnded(let call, let path, let end):
            logger.info(
                "A file is no longer played in a call",
                metadata: ["call": "\(call)", "file": "\(path)", "reason": "\(end.rawValue)"])
        case .recording(let call, let path):
            logger.info("A call is recorded", metadata: ["call": "\(call)", "file": "\(path)"])
        case .recordingEnded(let call, let end, let reason):
            logger.info(
                "A recording has ended",
                metadata: [
                    "call": "\(call)", "file": "\(end.path)", "reason": "\(reason.rawValue)",
                    "duration_ms": "\(end.duration.milliseconds.rounded(toPlaces: 0))",
                    "missed_ms": "\(end.missed.milliseconds.rounded(toPlaces: 0))",
                ])
        case .roomRecording(let call, let room, let path):
            logger.info(
                "A conference is recorded", metadata: ["call": "\(call)", "room": "\(room)", "file": "\(path)"])
        case .roomRecordingEnded(let call, let room, let end):
            logger.info(
                "The recording of a conference has ended",
                metadata: [
                    "call": "\(call)", "room": "\(room)", "file": "\(end.path)",
                    "duration_ms": "\(end.duration.milliseconds.rounded(toPlaces: 0))",
                    "missed_ms": "\(end.missed.milliseconds.rounded(toPlaces: 0))",
                ])
        case .voicemail: break  // Logged where it is reported.
        case .transferRequested, .handover, .parking, .queued, .leftQueue: break  // Logged where it is decided.
        case .transferProgress(let call, let target, let progress):
            logger.info(
                "A transfer has progressed",
                metadata: ["call": "\(call)", "to": "\(target)", "state": "\(progress.rawValue)"])
        case .attached(let call): logger.info("A program joins a call", metadata: ["call": "\(call)"])
        case .detached(let call): logger.info("A program leaves a call", metadata: ["call": "\(call)"])
        case .fileFailed: break  // Logged where it happened.
        case .ended(let call, let record, let report): log(record, report, of: call, logger)
        case .card(let event):
            let text = CardEventText(event: event, audio: configuration.audio)
            logger.log(level: text.isWarning ? .warning : .info, "\(text.text)")
        case .loadChanged(let load): log(load, logger)
        case .realtimePriorityRefused(let error):
            logger.warning("Media runs without real-time priority", metadata: ["error": "\(error)"])
        }
    }

    /// How a call ended, and what its media counted.
    private static func log(_ record: CallRecord, _ report: MediaReport?, of call: CallID, _ logger: Logger) {
        var metadata: Logger.Metadata = [
            "call": "\(call)", "peer": "\(record.peer)", "reason": "\(record.reason.rawValue)",
            "duration_ms": "\(record.duration.milliseconds.rounded(toPlaces: 0))",
        ]
        if let cause = record.cause { metadata["cause"] = "\(cause.rawValue)" }
        // A failure with a cause has a line of its own, with the error.
        if let error = record.error, record.cause == nil || record.reason.isSuccess { metadata["error"] = "\(error)" }
        if let cause = record.hangUpCause { metadata["hung_up_because"] = "\(cause.rawValue)" }
        if let report {
            metadata["received"] = "\(report.peer.packetsReceived)"
            metadata["lost"] = "\(report.playout.packetsLost)"
            metadata["late"] = "\(report.playout.packetsLate)"
            metadata["discarded"] = "\(report.playout.packetsDiscarded)"
            metadata["frames_skipped"] = "\(report.call.framesSkipped)"
            metadata["dropped"] = "\(report.peer.dropped.total)"
            if report.peer.dropped.total > 0 { metadata["dropped_because"] = "\(report.peer.dropped.reasons)" }
            if report.recordOverrunSamples > 0 {
                metadata["recording_gap_ms"] = "\(report.recordOverrunSamples / 48)"
            }
        }
        logger.info("A call has ended", metadata: metadata)
    }

    /// What the device does about too much work, or that it need not any more.
    private static func log(_ load: DeviceLoad, _ logger: Logger) {
        let busiest = load.busiest
        let metadata: Logger.Metadata = [
            "busy_percent": "\((busiest.share * 100).rounded(toPlaces: 0))",
            "calls": "\(busiest.runningCalls.rounded(toPlaces: 0))", "complexity_limit": "\(load.complexityLimit)",
        ]
        if !load.takesCalls {
            logger.warning("The machine is full: new calls are refused as busy until others end", metadata: metadata)
        } else if load.complexityLimit < 10 {
            logger.warning(
                "The machine is nearly full: encoders spend less effort, so that no sound is lost", metadata: metadata)
        } else {
            logger.info(
                "The machine has room again: encoders are as configured, calls are accepted", metadata: metadata)
        }
    }

    /// What a call on the card has heard, and how the card has been since the start.
    static func log(_ report: MediaReport, of call: CallID, card: CardStatistics?, _ logger: Logger) {
        guard let sound = report.sound else { return }
        var metadata: Logger.Metadata = [
            "call": "\(call)", "late": "\(report.playout.packetsLate)",
            "concealed_ms": "\((Double(report.playout.samplesConcealed) / 48).rounded(toPlaces: 1))",
            "frames_skipped": "\(report.call.framesSkipped)", "turns_skipped": "\(sound.ticksSkipped)",
        ]
        if let reduction = sound.echo.echoReturnLossEnhancementDB {
            metadata["echo_lowered_db"] = "\(reduction.rounded(toPlaces: 1))"
        }
        if let card {
            metadata["xruns"] = "\(card.playback.xruns) out, \(card.capture.xruns) in"
            metadata["missing_samples"] = "\(card.playback.missingSamples) out, \(card.capture.missingSamples) in"
            let (out, into) = (card.playback.targetMilliseconds, card.capture.targetMilliseconds)
            metadata["target_ms"] = "\(out.rounded(toPlaces: 1)) out, \(into.rounded(toPlaces: 1)) in"
            metadata["delay_jumps"] = "\(card.playback.jumps) out, \(card.capture.jumps) in"
        }
        logger.info("How it sounded", metadata: metadata)
    }

    private static func log(_ event: SignalingEvent, _ logger: Logger) {
        switch event {
        case .connected: logger.info("Connected")
        case .reconnecting: logger.warning("The connection is lost; connecting again")
        case .reconnected: logger.info("Connected again")
        case .disconnected: logger.info("Disconnected")
        case .error(let error): logger.error("\(error)")
        case .roomLost(let room, let error):
            logger.warning("A room is lost", metadata: ["room": "\(room)", "error": "\(error)"])
        case .moveRequested: logger.info("The service asks for another connection")
        case .notification: logger.info("A notification came")
        case .iceServersChanged:
            logger.debug("The service has sent new STUN or TURN servers, or new credentials for them")
        case .inviteReceived, .inviteHandled, .inviteCancelled, .inviteMissed, .inviteSent, .inviteAccepted,
            .inviteRejected, .inviteEnded, .inviteTimedOut, .callSignal, .callEnded, .connectionCreated,
            .connectionDestroyed, .roomSignal, .streamDropped, .streamResumed, .groupChanged, .inviteModified, .unknown:
            logger.debug("The service has sent something about no call of this device")
        }
    }
}
