internal import Call
internal import CallBridging
internal import CallControl
internal import CallFlow
internal import CallMedia
internal import CallParticipation
internal import Core
internal import Logging
internal import MediaEngine
internal import Voicemail

/// What a device's log says of its calls and of what takes part in them.
struct CallLog {
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// Logs what a call's session notes.
    ///
    /// - Parameter call: What each line says of the call.
    func write(_ note: CallNote, about call: Logger.Metadata) {
        func metadata(_ more: Logger.Metadata) -> Logger.Metadata { call.merging(more) { _, new in new } }
        switch note {
        case .failed(let record): writeFailure(record, about: call)
        case .tooLate(let error):
            logger.info("A request came too late for its call", metadata: metadata(["error": "\(error)"]))
        case .notAccepted(let why): logger.notice("A call is not accepted", metadata: metadata(["reason": "\(why)"]))
        case .pathLost: logger.info("The peer has fallen silent; looking for another path", metadata: call)
        case .pathBack: logger.info("The peer is back", metadata: call)
        case .restartingICE: logger.info("Restarting ICE", metadata: call)
        case .restartFailed(let why): logger.warning("ICE cannot be restarted", metadata: metadata(["error": "\(why)"]))
        case .offerUnusable(let why):
            logger.warning(
                "The peer's new offer cannot be used; the call continues unchanged",
                metadata: metadata(["error": "\(why)"]))
        case .answerUnusable(let why):
            logger.warning(
                "The peer's answer cannot be used; the call continues unchanged",
                metadata: metadata(["error": "\(why)"]))
        case .nothingOffered(let why):
            logger.warning("No new offer can be made", metadata: metadata(["error": "\(why)"]))
        case .probing(let isOnHold):
            logger.log(
                level: isOnHold ? .debug : .info, "Nothing comes from the peer of a call; probing it over signaling",
                metadata: metadata(["on_hold": "\(isOnHold)"]))
        case .heardEarly: logger.debug("A call is heard before it is answered", metadata: call)
        case .notHeardEarly(let why):
            logger.debug("A call is not heard before it is answered", metadata: metadata(["error": "\(why)"]))
        case .firstPacket: logger.debug("The peer's first packet has come", metadata: call)
        case .silent(let time):
            logger.notice(
                "The peer has sent no sound yet", metadata: metadata(["established_s": "\(Int(time / .seconds(1)))"]))
        case .peerGone(let cause):
            logger.notice(
                "The peer of a call is gone; ending the call", metadata: metadata(["reason": "\(cause.rawValue)"]))
        case .longestDuration: logger.info("A call has reached its longest duration, and ends", metadata: call)
        case .participantTransfers(let user):
            logger.info("A program transfers a call", metadata: metadata(["to": "\(user)"]))
        case .transferRequested(let user, let isAccepted):
            logger.info(
                "A peer asks for a transfer", metadata: metadata(["to": "\(user)", "accepted": "\(isAccepted)"]))
        }
    }

    func callIsCaptured(in file: String) { logger.info("A call is captured", metadata: ["file": "\(file)"]) }

    func botIsRefused(because why: String) {
        logger.warning("A bot's call is refused", metadata: ["error": "\(why)"])
    }

    /// Logs that a bot's leg in a call cannot use a TURN server.
    func legCannotUse(_ server: String, _ why: String, about call: Logger.Metadata) {
        let more: Logger.Metadata = ["server": "\(server)", "error": "\(why)"]
        logger.info("A bot's leg cannot use a TURN server", metadata: call.merging(more) { _, new in new })
    }

    func unknownCallIsProbed(_ invite: InviteID) {
        logger.info("A peer probes a call that is not known here; hanging up", metadata: ["invite": "\(invite)"])
    }

    func eventIsLost() { logger.warning("An event of the device is lost: its program took none in time") }

    /// Logs that a call that came in is refused, and by which rule.
    func write(refusalOf session: CallSession, _ reason: RejectReason, _ rule: String, about call: Logger.Metadata) {
        let more: Logger.Metadata = [
            "from": "\(session.peer)", "reason": "\(reason.rawValue)", "rule": "\(rule)",
        ]
        logger.info("A call is refused", metadata: call.merging(more) { _, new in new })
    }

    /// Logs which rule decided about a call that came in and is not refused.
    func write(acceptanceOf session: CallSession, by rule: AnswerRule, about call: Logger.Metadata) {
        var more: Logger.Metadata = ["from": "\(session.peer)", "rule": "\(rule)"]
        if !rule.outcome.behaviour.isEmpty { more["behaviour"] = "\(rule.outcome.behaviour)" }
        logger.info("A rule has decided about a call", metadata: call.merging(more) { _, new in new })
    }

    /// Logs that no user has taken a call in the time of its rule, so that another behaviour answers it.
    func write(
        passing session: CallSession, by rule: AnswerRule, _ sequel: AnswerRule.Sequel, about call: Logger.Metadata
    ) {
        let more: Logger.Metadata = [
            "from": "\(session.peer)", "rule": "\(rule)", "behaviour": "\(session.behaviour)",
            "rang_s": "\(sequel.delay.seconds)",
        ]
        logger.info("A call that rang goes to another behaviour", metadata: call.merging(more) { _, new in new })
    }

    /// Logs why a stream could not be started, if that is a file: one that cannot be played fails every call, so the device's operator
    /// must learn of it.
    func write(startError error: any Error, about call: Logger.Metadata) {
        guard let error = error as? MediaStartError, error.file != nil else { return }
        logger.error(
            "A call fails because of its file", metadata: call.merging(["error": "\(error)"]) { _, new in new })
    }

    /// Logs what an operator may want to know of an event of a call's media.
    ///
    /// - Parameter call: What each line says of the call; nil if it has ended.
    func write(_ event: MediaEvent, about call: Logger.Metadata?) {
        if case .relayOverrun(_, let server, let notSent, let notReceived) = event {
            return logger.info(
                "The connection to a TURN server was too slow for the media of a call",
                metadata: ["server": "\(server)", "not_sent": "\(notSent)", "not_received": "\(notReceived)"])
        }
        guard let call else { return }
        func metadata(_ more: Logger.Metadata) -> Logger.Metadata { call.merging(more) { _, new in new } }
        switch event {
        case .fileFailed(_, let error):
            logger.error("A file of a call has failed", metadata: metadata(["error": "\(error)"]))
        case .relayFailed(_, let server, let error):
            logger.info(
                "A call cannot use a TURN server", metadata: metadata(["server": "\(server)", "error": "\(error)"]))
        case .connectionFailed(_, let failure):
            logger.info("A call's connection has failed", metadata: metadata(["error": "\(failure)"]))
        case .connected(_, let path): logger.debug("A call has a path", metadata: metadata(["path": "\(path)"]))
        case .mediaReceived, .ready, .flowing, .playbackEnded, .announcementEnded, .bridgeHeard,
            .recordingEnded, .digit, .sendingStopped, .sendingResumed, .candidate, .candidatesComplete, .secured,
            .connectionQuiet,
            .connectionBack, .pathLost, .relayOverrun, .goodbyeReceived, .refused, .ended, .card, .effortLimited,
            .loadMeasured, .realtimePriorityRefused:
            break
        }
    }

    /// Says why a call has failed; loudly if it is this device's fault.
    private func writeFailure(_ record: CallRecord, about call: Logger.Metadata) {
        guard let cause = record.cause, !record.reason.isSuccess else { return }
        let isOurs = record.endedBy != .remote && (cause == .fileUnusable || cause == .deviceFault)
        let more: Logger.Metadata = [
            "reason": "\(record.reason.rawValue)", "cause": "\(cause.rawValue)",
            "error": "\(record.error.map { "\($0)" } ?? cause.sentence)",
        ]
        logger.log(
            level: isOurs ? .error : .notice, "A call has failed", metadata: call.merging(more) { _, new in new })
    }

    // MARK: Joined calls

    func callsAreJoined(_ other: CallID, about call: Logger.Metadata) {
        logger.info("Two calls are joined", metadata: call.merging(["other": "\(other)"]) { _, new in new })
    }

    func callIsParted(about call: Logger.Metadata) { logger.info("A call is no longer joined", metadata: call) }

    func keyIsLost(_ error: DigitError, about call: Logger.Metadata) {
        logger.debug(
            "A key of a joined call cannot be pressed", metadata: call.merging(["error": "\(error)"]) { _, new in new })
    }

    func handoverIs(_ report: HandoverReport, about call: Logger.Metadata) {
        var more: Logger.Metadata = ["to": "\(report.target.prefix(80))", "state": "\(report.state.rawValue)"]
        if let person = report.call { more["other"] = "\(person)" }
        if let why = report.reason { more["reason"] = "\(why)" }
        logger.info("A call is handed over to a person", metadata: call.merging(more) { _, new in new })
    }

    func handoverIsRefused(_ target: String, because why: String, about call: Logger.Metadata) {
        logger.warning(
            "A hand-over is refused",
            metadata: call.merging(["to": "\(target.prefix(80))", "reason": "\(why)"]) { _, new in new })
    }

    func parkingIs(_ state: CallParking.State, _ slot: Int, about call: Logger.Metadata) {
        logger.info(
            "A call is parked, or no longer",
            metadata: call.merging(["slot": "\(slot)", "state": "\(state.rawValue)"]) { _, new in new })
    }

    func musicFails(_ path: String, because why: String, about call: Logger.Metadata) {
        logger.warning(
            "What a waiting call hears cannot be played",
            metadata: call.merging(["file": "\(path)", "error": "\(why)"]) { _, new in new })
    }

    func whisperFails(because why: String, about call: Logger.Metadata) {
        logger.warning(
            "A whisper cannot be spoken", metadata: call.merging(["error": "\(why)"]) { _, new in new })
    }

    func flowCalls(_ callee: UserID, _ new: CallID, about call: Logger.Metadata) {
        logger.info(
            "A flow calls a callee", metadata: call.merging(["to": "\(callee)", "other": "\(new)"]) { _, new in new })
    }

    func flowCannotCall(_ callee: String, because why: String, about call: Logger.Metadata) {
        logger.warning(
            "A flow cannot call a callee",
            metadata: call.merging(["to": "\(callee.prefix(80))", "reason": "\(why)"]) { _, new in new })
    }

    func cannotWait(_ queue: String, about call: Logger.Metadata) {
        logger.warning(
            "A caller cannot wait in a queue",
            metadata: call.merging([
                "queue": "\(queue.prefix(80))",
                "reason": "the call is joined to another one, parked or handed over, or the name is too long",
            ]) { _, new in new })
    }

    func waits(in queue: String, at position: Int, about call: Logger.Metadata) {
        logger.info(
            "A caller waits in a queue",
            metadata: call.merging(["queue": "\(queue)", "position": "\(position)"]) { _, new in new })
    }

    func leftQueue(_ queue: String, _ result: QueueResult, after time: Duration, about call: Logger.Metadata) {
        logger.info(
            "A caller has left its queue",
            metadata: call.merging([
                "queue": "\(queue)", "result": "\(result.rawValue)", "waited_s": "\(time.components.seconds)",
            ]) { _, new in new })
    }

    func dialHasEnded(_ status: DialStatus, after time: Duration, about call: Logger.Metadata) {
        logger.info(
            "What a flow has dialled has ended",
            metadata: call.merging(["status": "\(status.rawValue)", "joined_s": "\(time.components.seconds)"]) {
                _, new in new
            })
    }

    /// Logs what a participant notes.
    ///
    /// - Parameter call: What each line says of the call; nothing if the note is about none.
    func write(_ notice: ParticipantNotice, from kind: ParticipantKind, about call: Logger.Metadata) {
        let isBot = kind == .bot
        func metadata(_ more: Logger.Metadata = [:], leftOut: Int = 0) -> Logger.Metadata {
            var all = call.merging(more) { _, new in new }
            if leftOut > 0 { all["left_out"] = "\(leftOut)" }
            return all
        }
        switch notice {
        case .fellBack(let why):
            logger.error(
                isBot
                    ? "A bot has failed, and the fallback is played"
                    : "A program has failed, and the fallback is played",
                metadata: metadata(["error": "\(why)"]))
        case .processFailed(let how, let isRestarted):
            logger.error(
                isRestarted ? "A program has failed and is started again" : "A program has failed too often",
                metadata: metadata(["error": "\(how)"]))
        case .said(let text, let leftOut):
            logger.info(Device.programWords, metadata: metadata(["text": "\(text)"], leftOut: leftOut))
        case .misunderstood(let what, let leftOut):
            logger.warning(
                isBot ? "A bot's message cannot be followed" : "A program's command cannot be followed",
                metadata: metadata(["error": "\(what)"], leftOut: leftOut))
        case .refused(let request, let why):
            logger.warning(
                request == .press ? "A bot's keys cannot be pressed" : "A bot's transfer is refused",
                metadata: metadata(["error": "\(why)"]))
        case .behind(let events):
            let message: Logger.Message =
                isBot ? "A bot does not read what the caller says" : "A program does not read what the caller says"
            logger.warning(events ? "A program does not read its events" : message, metadata: metadata())
        case .flooded(let stream):
            logger.warning(
                stream == .log
                    ? "A program writes too much to its log, and it is dropped"
                    : "A program sends commands too fast, and they are dropped",
                metadata: metadata())
        case .dropped(let stream, let bytes):
            logger.warning(
                stream == .log ? "A program's log was dropped in part" : "A program's commands were dropped in part",
                metadata: metadata(["bytes": "\(bytes)"]))
        case .reached(let place):
            logger.debug("A call is at another verb of its flow", metadata: metadata(["place": "\(place)"]))
        case .recorded(let path):
            logger.info("A flow has recorded a caller", metadata: metadata(["file": "\(path)"]))
        case .stored(let message, let path):
            logger.info(
                "A caller has left a message",
                metadata: metadata(["file": "\(path)", "seconds": "\(message.seconds)", "from": "\(message.caller)"]))
        case .met(let room, let members):
            logger.info(
                "A call has joined a conference", metadata: metadata(["room": "\(room)", "members": "\(members)"]))
        case .warned(let what, let leftOut):
            let place: Logger.Message =
                isBot ? "Something is wrong around the bot" : "Something is wrong around the program"
            logger.warning(
                kind == .mailbox ? "Something is wrong around voicemail" : place,
                metadata: metadata(["error": "\(what)"], leftOut: leftOut))
        }
    }
}
