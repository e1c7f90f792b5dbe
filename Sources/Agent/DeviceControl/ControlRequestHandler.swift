internal import AudioDevices
internal import CallAgent
internal import CallControl
internal import CallMeetings
internal import ControlWire
internal import Glibc
internal import MediaEngine
internal import Realtime
internal import Core

/// Carries out what clients ask of the accounts of a process.
struct ControlRequestHandler: Sendable {
    let accounts: AccountSet
    let version: String
    private let began = MonotonicClock.now

    init(_ accounts: AccountSet, version: String) {
        self.accounts = accounts
        self.version = version
    }

    /// The result of a request: the answer, and the event for all watching clients.
    struct Outcome: Sendable {
        var reply: ControlReply
        var event: ControlEvent?

        init(_ reply: ControlReply = ControlReply(), event: ControlEvent? = nil) {
            self.reply = reply
            self.event = event
        }
    }

    /// Finds out whether there is the account that a request names.
    func check(_ request: ControlRequest) async throws(ControlFault) {
        _ = try ControlTargets(await accounts.members, wanted: request.account)
    }

    func carryOut(_ request: ControlRequest) async throws(ControlFault) -> Outcome {
        let targets = try ControlTargets(await accounts.members, wanted: request.account)
        switch request.action {
        case .status, .watch: return Outcome(ControlReply(status: await status(targets)))
        case .mute(let isMuted):
            try expectCard()
            accounts.media.setMuted(isMuted)
            return tellSound()
        case .volume(let playback, let microphone):
            try expectCard()
            if let playback { accounts.media.setVolume(decibels: playback) }
            if let microphone { accounts.media.setMicrophoneVolume(decibels: microphone) }
            return tellSound()
        case .call(let user): return try await call(user, targets)
        case .answer(let number):
            let call = try await find(targets) { calls throws(ControlFault) in
                try CallChoice.ringing(number, among: calls)
            }
            await call.device.answer(call.id)
            return Outcome(call.reply)
        case .reject(let number, let isBusy):
            let call = try await find(targets) { calls throws(ControlFault) in
                try CallChoice.ringing(number, among: calls)
            }
            await call.device.reject(call.id, isBusy ? .busy : .declined)
            return Outcome(call.reply)
        case .hangUp(let number):
            let call = try await find(targets) { calls throws(ControlFault) in
                try CallChoice.toEnd(number, among: calls)
            }
            await call.device.hangUp(call.id)
            return Outcome(call.reply)
        case .card(let number):
            try expectCard()
            let call = try await talking(number, targets)
            guard await call.device.giveCard(to: call.id) else {
                throw ControlFault(.wrongState, "call \(number) does not use the sound card")
            }
            return Outcome(call.reply)
        case .dtmf(let keys, let number):
            let call = try await talking(number, targets)
            do throws(DigitError) {
                try await call.device.press(keys, on: call.id)
            } catch {
                throw ControlFault(.failed, error.description)
            }
            return Outcome(call.reply)
        case .drain(let isDraining):
            var isRefused = false
            for member in targets.meant {
                if await accounts.setDraining(isDraining, of: member.name) != isDraining { isRefused = true }
            }
            if isRefused { throw ControlFault(.wrongState, "the device is about to end, and takes no more calls") }
            return Outcome()
        case .bridge(let number, let other, let goesBack):
            return try await bridge(number, other, goesBack: goesBack, targets)
        case .unbridge(let number):
            let call = try await talking(number, targets)
            do throws(CallSoundError) {
                try await call.device.unbridge(call.id)
            } catch {
                throw ControlFault(error)
            }
            return Outcome(call.reply)
        case .handover, .cancelHandover, .park, .pickUp, .queueTake, .queueRemove:
            return try await carryOut(joining: request.action, targets)
        case .play, .stop, .record, .attach, .detach: return try await carryOut(sound: request.action, targets)
        case .transfer(let number, let target, let other):
            return try await transfer(number, target, other, targets)
        case .queues: return await queues(targets)
        case .conferences: return await conferences(targets)
        case .conferenceMute(let number, let isMuted):
            let call = try await member(number, targets)
            guard accounts.media.setMuted(isMuted, inRoom: call.id) else { throw Self.notInRoom(number) }
            return Outcome(call.reply)
        case .conferenceRemove(let number):
            let call = try await member(number, targets)
            await call.device.hangUp(call.id)
            return Outcome(call.reply)
        case .conferenceRecord(let number, let recording):
            return try await record(recording, roomOf: try await talking(number, targets))
        case .calls(let listing): return try await list(listing, targets)
        case .history(let query): return Outcome(try await CallHistory(targets).answer(query))
        }
    }

    /// The queues of the accounts that are meant.
    private func queues(_ targets: ControlTargets) async -> Outcome {
        let calls = await targets.calls()
        let peers = Dictionary(calls.map { ($0.id, $0.call.peer) }) { first, _ in first }
        var queues: [ControlQueue] = []
        for target in targets.targets {
            queues += await target.device.queues.map { queue in
                ControlQueue(
                    queue: queue.name, account: target.name,
                    callers: queue.callers.map {
                        .init(
                            call: $0.call.number, peer: peers[$0.call],
                            waitedSeconds: ($0.waited.seconds * 10).rounded() / 10)
                    })
            }
        }
        var reply = ControlReply()
        reply.queues = queues
        return Outcome(reply)
    }

    /// The rooms, with the calls of the accounts that are meant.
    private func conferences(_ targets: ControlTargets) async -> Outcome {
        let calls = await targets.calls()
        let peers = Dictionary(calls.map { ($0.call.call, $0.call.peer) }) { first, _ in first }
        var reply = ControlReply()
        reply.conferences = accounts.media.rooms.map { room in
            var conference = ControlConference(
                room: room.name,
                members: room.members.map {
                    .init(call: $0.call, peer: peers[$0.call], speaks: $0.speaks, muted: $0.isMuted)
                })
            conference.file = room.recording
            return conference
        }
        return Outcome(reply)
    }

    private func list(
        _ listing: ControlRequest.Listing, _ targets: ControlTargets
    ) async throws(ControlFault) -> Outcome {
        let calls = await targets.calls()
        var reply = ControlReply()
        switch listing {
        case .one(let number):
            guard let call = calls.first(where: { $0.call.call == number }) else {
                throw ControlFault(.noSuchCall, "there is no call \(number)")
            }
            reply.calls = await ControlTargets.withMedia([call])
        case .page(let after, let limit):
            let rest = calls.drop { $0.call.call <= after }
            reply.calls = await ControlTargets.withMedia(rest.prefix(limit))
            reply.more = rest.count > limit
        }
        return Outcome(reply)
    }

    private func record(
        _ recording: ControlRequest.Recording, roomOf call: Found
    ) async throws(ControlFault) -> Outcome {
        var reply = call.reply
        do throws(CallSoundError) {
            switch recording {
            case .start(let path): reply.file = try await call.device.recordRoom(of: call.id, to: path)
            case .stop: reply.file = try await call.device.stopRecordingRoom(of: call.id)
            }
        } catch {
            throw ControlFault(error)
        }
        return Outcome(reply)
    }

    private func member(_ number: UInt64, _ targets: ControlTargets) async throws(ControlFault) -> Found {
        let call = try await talking(number, targets)
        guard accounts.media.isInRoom(call.id) else { throw Self.notInRoom(number) }
        return call
    }

    private static func notInRoom(_ number: UInt64) -> ControlFault {
        ControlFault(.wrongState, "call \(number) is in no room; conference list shows the rooms")
    }

    /// A call, and the device that has it.
    private struct Found {
        let device: Device
        let id: CallID
        let account: String?

        var reply: ControlReply { ControlReply(call: id.number, account: account) }
    }

    /// Changes what an established call plays and records, and who takes part in it.
    private func carryOut(
        sound action: ControlRequest.Action, _ targets: ControlTargets
    ) async throws(ControlFault) -> Outcome {
        let number: UInt64? =
            switch action {
            case .play(_, let call), .stop(let call), .record(_, let call), .attach(let call), .detach(let call): call
            case .status, .mute, .volume, .call, .answer, .reject, .hangUp, .card, .dtmf, .drain, .watch, .transfer,
                .bridge, .unbridge, .handover, .cancelHandover, .park, .pickUp, .conferences, .conferenceMute,
                .conferenceRemove, .conferenceRecord, .queues, .queueTake, .queueRemove, .calls, .history:
                nil
            }
        let call = try await talking(number, targets)
        let device = call.device
        var reply = call.reply
        do throws(CallSoundError) {
            switch action {
            case .play(let path, _): try await device.play(path, on: call.id)
            case .stop: try await device.stopPlaying(on: call.id)
            case .record(.start(let path), _): reply.file = try await device.record(call.id, to: path)
            case .record(.stop, _): reply.file = try await device.stopRecording(call.id)
            case .attach: try await device.attach(to: call.id)
            case .detach: try await device.detach(from: call.id)
            case .status, .mute, .volume, .call, .answer, .reject, .hangUp, .card, .dtmf, .drain, .watch,
                .transfer, .bridge, .unbridge, .handover, .cancelHandover, .park, .pickUp, .conferences,
                .conferenceMute, .conferenceRemove, .conferenceRecord, .queues, .queueTake, .queueRemove, .calls,
                .history:
                break
            }
        } catch {
            throw ControlFault(error)
        }
        return Outcome(reply)
    }

    /// The levels; nil while no call is on the card.
    func levels() async -> ControlLevels? {
        for device in await accounts.members.compactMap(\.device) {
            guard let sound = await device.soundReport() else { continue }
            return ControlLevels(
                microphoneDBFS: sound.microphoneDBFS, microphonePeakDBFS: sound.microphonePeakDBFS,
                loudspeakerDBFS: sound.loudspeakerDBFS, loudspeakerPeakDBFS: sound.loudspeakerPeakDBFS)
        }
        return nil
    }

    private func status(_ targets: ControlTargets) async -> ControlStatus {
        let now = MonotonicClock.now
        var accounts: [ControlAccount] = []
        for member in targets.meant { accounts.append(await account(member)) }
        let first = accounts.first ?? ControlAccount(account: "", device: "", connection: "", server: "", behaviour: "")
        var status = ControlStatus(
            version: version, pid: getpid(), uptimeSeconds: (began.duration(to: now).seconds * 10).rounded() / 10,
            device: first.device, connection: first.connection, user: first.user, server: first.server,
            behaviour: first.behaviour)
        if targets.meant.contains(where: { $0.name != nil }) { status.accounts = accounts }
        status.isDraining = !accounts.isEmpty && accounts.allSatisfy(\.isDraining)
        // The process's, also while every account waits.
        let media = self.accounts.media
        status.sound = media.sound.map(ControlSound.init)
        if media.sound != nil, let audio = targets.members.first?.configuration.audio {
            let card = media.cardStatistics ?? CardStatistics()
            status.card = ControlCard(
                playback: audio.playback, capture: audio.capture, isRunning: card.isRunning, losses: card.losses,
                playbackXruns: card.playback.xruns, captureXruns: card.capture.xruns)
        }
        status.load = ControlLoad(media.load)
        status.levels = await levels()
        let calls = await targets.calls()
        status.callCount = calls.count
        status.calls = await ControlTargets.withMedia(calls.suffix(ControlLimits.listedCalls))
        return status
    }

    private func account(_ member: AccountMember) async -> ControlAccount {
        let state = await member.device?.status
        var account = ControlAccount(
            account: member.name ?? "", device: member.configuration.device.name,
            connection: state?.connection.rawValue ?? "waiting",
            server: ControlStatus.server(ofURL: member.configuration.account.eventsURL),
            behaviour: await member.device?.behaviour.source.name ?? member.configuration.behaviour.source.name)
        account.user = state?.user?.text
        account.isDraining = await member.device?.isDraining ?? member.isDraining
        account.callCount = state?.calls.count ?? 0
        account.failure = member.failure
        return account
    }

    private func call(_ name: String, _ targets: ControlTargets) async throws(ControlFault) -> Outcome {
        let user: UserID
        do throws(IdentifierFault) {
            user = try UserID(name)
        } catch {
            throw ControlFault(.wrongValue, "\"to\" \(error)")
        }
        let target = try targets.only()
        do throws(CallObstacle) {
            let call = try await target.device.placeCall(to: user)
            return Outcome(
                ControlReply(call: call.number, account: target.name), event: .calling(call: call.number, to: name))
        } catch {
            throw await fault(error, targets)
        }
    }

    private func fault(_ obstacle: CallObstacle, _ targets: ControlTargets) async -> ControlFault {
        switch obstacle.reason {
        case .notConnected:
            return ControlFault(.notConnected, "the device is not connected to its service, so it cannot place calls")
        case .draining:
            return ControlFault(.wrongState, "the device takes no more calls; undrain it to take calls again")
        case .callLimit(let limit):
            return ControlFault(.tooMany, "there are \(limit) calls, the limit of answer.max_calls")
        case .machineFull:
            var count = 0
            for member in targets.members { count += await member.device?.status.calls.count ?? 0 }
            return ControlFault(.tooMany, "there are \(count) calls, the limit of this machine: try again later")
        }
    }

    private func transfer(
        _ number: UInt64, _ target: String, _ other: UInt64?, _ targets: ControlTargets
    ) async throws(ControlFault) -> Outcome {
        let user: UserID
        do throws(IdentifierFault) {
            user = try UserID(target)
        } catch {
            throw ControlFault(.wrongValue, "\"to\" \(error)")
        }
        let call = try await talking(number, targets)
        var replaced: CallID?
        if let other {
            let found = try await talking(other, targets)
            guard found.device === call.device else {
                throw ControlFault(
                    .wrongState,
                    "calls \(number) and \(other) are of two accounts, whose services cannot join them")
            }
            replaced = found.id
        }
        do throws(SignalingError) {
            try await call.device.transfer(call.id, to: user, replacing: replaced)
        } catch {
            throw ControlFault(.wrongState, "\(error)")
        }
        return Outcome(call.reply)
    }

    private func bridge(
        _ number: UInt64, _ other: UInt64, goesBack: Bool, _ targets: ControlTargets
    ) async throws(ControlFault) -> Outcome {
        let (call, second) = (try await talking(number, targets), try await talking(other, targets))
        guard second.device === call.device else {
            throw ControlFault(
                .wrongState, "calls \(number) and \(other) are of two accounts; calls of one account can be joined")
        }
        do throws(CallSoundError) {
            try await call.device.bridge(call.id, to: second.id, goesBack: goesBack)
        } catch {
            throw ControlFault(error)
        }
        return Outcome(call.reply)
    }

    /// Hands a call over, parks it, picks one up, or takes one from a queue.
    private func carryOut(
        joining action: ControlRequest.Action, _ targets: ControlTargets
    ) async throws(ControlFault) -> Outcome {
        guard let action = JoiningAction(action) else { return Outcome() }
        let call = try await talking(action.call, targets)
        var reply = call.reply
        do throws(CallSoundError) {
            switch action {
            case .handover(_, let asked):
                reply.toCall = try await call.device.handOver(call.id, HandoverRequest(asked)).number
            case .cancelHandover: try await call.device.cancelHandover(of: call.id)
            case .park(_, let asked):
                reply.slot = try await call.device.park(
                    call.id, music: asked.music, longest: asked.longestSeconds.map { .seconds($0) },
                    then: asked.endsThen ? .hangUp : .goBack)
            case .pickUp(let slot, _, let goesBack):
                reply.toCall = try await call.device.pickUp(slot: slot, by: call.id, goesBack: goesBack).number
                reply.slot = slot
            case .queueTake(let queue, _, let goesBack):
                reply.toCall = try await call.device.takeFromQueue(queue, by: call.id, goesBack: goesBack).number
            case .queueRemove: try await call.device.removeFromQueue(call.id)
            }
        } catch {
            throw ControlFault(error)
        }
        return Outcome(reply)
    }

    private func talking(_ number: UInt64?, _ targets: ControlTargets) async throws(ControlFault) -> Found {
        try await find(targets) { calls throws(ControlFault) in try CallChoice.talking(number, among: calls) }
    }

    private func find(
        _ targets: ControlTargets, _ choose: (_ calls: [ControlCall]) throws(ControlFault) -> ControlCall
    ) async throws(ControlFault) -> Found {
        let calls = await targets.calls()
        let chosen = try choose(calls.map(\.call)).call
        guard let found = calls.first(where: { $0.id.number == chosen }) else {
            throw ControlFault(.noSuchCall, "there is no call \(chosen)")
        }
        return Found(device: found.target.device, id: found.id, account: found.target.name)
    }

    private func expectCard() throws(ControlFault) {
        guard accounts.media.sound == nil else { return }
        throw ControlFault(.noSoundCard, "the device's calls use no sound card; behaviour.source: card has them do so")
    }

    private func tellSound() -> Outcome {
        guard let sound = accounts.media.sound.map(ControlSound.init) else { return Outcome() }
        return Outcome(ControlReply(sound: sound), event: .sound(sound))
    }
}

/// Requests that join calls, part of ``ControlRequest/Action``.
private enum JoiningAction {
    case handover(UInt64, ControlHandover)
    case cancelHandover(UInt64)
    case park(UInt64?, ControlParking)
    case pickUp(slot: Int, UInt64, goesBack: Bool)
    case queueTake(String, UInt64, goesBack: Bool)
    case queueRemove(UInt64)

    init?(_ action: ControlRequest.Action) {
        switch action {
        case .handover(let call, let asked): self = .handover(call, asked)
        case .cancelHandover(let call): self = .cancelHandover(call)
        case .park(let call, let asked): self = .park(call, asked)
        case .pickUp(let slot, let call, let goesBack): self = .pickUp(slot: slot, call, goesBack: goesBack)
        case .queueTake(let queue, let call, let goesBack): self = .queueTake(queue, call, goesBack: goesBack)
        case .queueRemove(let call): self = .queueRemove(call)
        case .status, .mute, .volume, .call, .answer, .reject, .hangUp, .card, .dtmf, .drain, .watch, .play, .stop,
            .record, .attach, .detach, .transfer, .bridge, .unbridge, .conferences, .conferenceMute,
            .conferenceRemove, .conferenceRecord, .queues, .calls, .history:
            return nil
        }
    }

    var call: UInt64? {
        switch self {
        case .handover(let call, _), .cancelHandover(let call), .pickUp(_, let call, _), .queueTake(_, let call, _),
            .queueRemove(let call):
            call
        case .park(let call, _): call
        }
    }
}

extension HandoverRequest {
    /// What a client asks for.
    init(_ asked: ControlHandover) {
        self.init(to: asked.target)
        switch asked.whisper {
        case .text(let text)?: whisper = .text(text)
        case .file(let path)?: whisper = .file(path)
        case nil: break
        }
        acceptKey = asked.acceptKey
        switch asked.music {
        case .bot?: music = .participant
        case .file(let path)?: music = .file(path)
        case nil: break
        }
        if let seconds = asked.ringSeconds { ringing = .seconds(seconds) }
        if asked.listens { role = .listens }
    }
}

extension ControlFault {
    init(_ error: CallSoundError) {
        let code: Code =
            switch error.code {
            case .wrongState: .wrongState
            case .file: .fileUnusable
            case .notConfigured: .notConfigured
            default: .failed
            }
        self.init(code, error.description)
    }
}

extension ControlSound {
    init(_ settings: SoundSettings) {
        self.init(isMuted: settings.isMuted, volumeDB: settings.volumeDB, microphoneDB: settings.microphoneDB)
    }
}

extension ControlCall {
    init(_ call: CallStatus, of account: String?, at now: Instant) {
        let state: State =
            switch call.progress {
            case .calling: .calling
            case .ringing: .ringing
            case .connecting: .connecting
            case .established: .talking
            case .ending: .ending
            }
        self.init(
            call: call.id.number, invite: call.invite?.text, peer: call.peer.text,
            isIncoming: call.direction == .incoming, state: state,
            durationSeconds: call.duration(at: now).map { ($0.seconds * 10).rounded() / 10 }, isHeld: call.isHeld,
            isRecorded: call.isRecorded, account: account)
        slot = call.slot
    }
}
