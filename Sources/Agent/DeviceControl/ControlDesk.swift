internal import AudioDevices
internal import CallAgent
internal import CallControl
internal import ControlWire
internal import Glibc
internal import MediaEngine
internal import Realtime
internal import Timekeeping

/// Carries out what clients ask of one device.
struct ControlDesk: Sendable {
    let device: Device
    let configuration: DeviceConfiguration
    let version: String
    private let began = MonotonicClock.now

    init(_ device: Device, _ configuration: DeviceConfiguration, version: String) {
        self.device = device
        self.configuration = configuration
        self.version = version
    }

    /// The result of a request: the answer, and the event for all watching clients.
    struct Outcome: Sendable {
        var reply: ControlReply
        var news: ControlNews?

        init(_ reply: ControlReply = ControlReply(), news: ControlNews? = nil) {
            self.reply = reply
            self.news = news
        }
    }

    func carryOut(_ wish: ControlRequest.Wish) async throws(ControlFault) -> Outcome {
        switch wish {
        case .status, .watch: return Outcome(ControlReply(status: await status()))
        case .mute(let isMuted):
            try await requireCard()
            await device.setMuted(isMuted)
            return await tellSound()
        case .volume(let playback, let microphone):
            try await requireCard()
            if let playback { await device.setVolume(decibels: playback) }
            if let microphone { await device.setMicrophoneVolume(decibels: microphone) }
            return await tellSound()
        case .call(let user): return try await call(user)
        case .answer(let number):
            let call = try await find { calls throws(ControlFault) in try CallChoice.ringing(number, among: calls) }
            await device.answer(call)
            return Outcome(ControlReply(call: call.number))
        case .reject(let number, let isBusy):
            let call = try await find { calls throws(ControlFault) in try CallChoice.ringing(number, among: calls) }
            await device.reject(call, isBusy ? .busy : .declined)
            return Outcome(ControlReply(call: call.number))
        case .hangUp(let number):
            let call = try await find { calls throws(ControlFault) in try CallChoice.toEnd(number, among: calls) }
            await device.hangUp(call)
            return Outcome(ControlReply(call: call.number))
        case .card(let number):
            try await requireCard()
            let call = try await find { calls throws(ControlFault) in try CallChoice.talking(number, among: calls) }
            guard await device.giveCard(to: call) else {
                throw ControlFault(.wrongState, "call \(number) does not use the sound card")
            }
            return Outcome(ControlReply(call: call.number))
        case .dtmf(let keys, let number):
            let call = try await find { calls throws(ControlFault) in try CallChoice.talking(number, among: calls) }
            do throws(DigitError) {
                try await device.press(keys, on: call)
            } catch {
                throw ControlFault(.failed, error.description)
            }
            return Outcome(ControlReply(call: call.number))
        case .drain(let isDraining):
            guard await device.setDraining(isDraining) == isDraining else {
                throw ControlFault(.wrongState, "the device is about to end, and takes no more calls")
            }
            return Outcome()
        case .play, .stop, .record, .attach, .detach: return try await carryOut(sound: wish)
        case .transfer(let number, let target, let other): return try await transfer(number, target, other)
        }
    }

    /// Changes what a call that stands plays and records, and who takes part in it.
    private func carryOut(sound wish: ControlRequest.Wish) async throws(ControlFault) -> Outcome {
        let number: UInt64? =
            switch wish {
            case .play(_, let call), .stop(let call), .record(_, let call), .attach(let call), .detach(let call): call
            case .status, .mute, .volume, .call, .answer, .reject, .hangUp, .card, .dtmf, .drain, .watch, .transfer: nil
            }
        let call = try await find { calls throws(ControlFault) in try CallChoice.talking(number, among: calls) }
        var file: String?
        do throws(CallSoundError) {
            switch wish {
            case .play(let path, _): try await device.play(path, on: call)
            case .stop: try await device.stopPlaying(on: call)
            case .record(.start(let path), _): file = try await device.record(call, to: path)
            case .record(.stop, _): file = try await device.stopRecording(call)
            case .attach: try await device.attach(to: call)
            case .detach: try await device.detach(from: call)
            case .status, .mute, .volume, .call, .answer, .reject, .hangUp, .card, .dtmf, .drain, .watch,
                .transfer:
                break
            }
        } catch {
            throw ControlFault(error)
        }
        return Outcome(ControlReply(call: call.number, file: file))
    }

    /// The levels; nil while no call is on the card.
    func levels() async -> ControlLevels? {
        guard let sound = await device.soundReport() else { return nil }
        return ControlLevels(
            microphoneDBFS: sound.microphoneDBFS, microphonePeakDBFS: sound.microphonePeakDBFS,
            loudspeakerDBFS: sound.loudspeakerDBFS, loudspeakerPeakDBFS: sound.loudspeakerPeakDBFS)
    }

    private func status() async -> ControlStatus {
        let now = MonotonicClock.now
        let state = await device.status
        var status = ControlStatus(
            version: version, pid: getpid(), uptimeSeconds: (began.duration(to: now).seconds * 10).rounded() / 10,
            device: configuration.device.name, connection: state.connection.rawValue, user: state.user?.text,
            server: Self.host(of: configuration.account.eventsURL), behaviour: await device.behaviour.source.name)
        status.isDraining = await device.isDraining
        status.sound = state.sound.map(ControlSound.init)
        if state.sound != nil {
            let card = state.card ?? CardStatistics()
            status.card = ControlCard(
                playback: configuration.audio.playback, capture: configuration.audio.capture,
                isRunning: card.isRunning, losses: card.losses, playbackXruns: card.playback.xruns,
                captureXruns: card.capture.xruns)
        }
        status.levels = await levels()
        status.load = ControlLoad(await device.load)
        status.callCount = state.calls.count
        status.calls = state.calls.suffix(ControlLimits.listedCalls).map { ControlCall($0, at: now) }
        return status
    }

    private func call(_ name: String) async throws(ControlFault) -> Outcome {
        let user: UserID
        do throws(IdentifierFault) {
            user = try UserID(name)
        } catch {
            throw ControlFault(.wrongValue, "\"to\" \(error)")
        }
        let state = await device.status
        switch state.connection {
        case .connected, .reconnecting: break
        case .connecting, .disconnected:
            throw ControlFault(.notConnected, "the device is not connected to its service, so nobody can be called")
        }
        guard await !device.isDraining else {
            throw ControlFault(.wrongState, "the device takes no more calls; undrain has it take them again")
        }
        if case .calls(let limit) = await device.answerPolicy.callLimit, state.calls.count >= limit {
            throw ControlFault(.tooMany, "there are \(limit) calls, as many as answer.max_calls allows")
        }
        guard await device.hasRoomForCall else {
            throw ControlFault(
                .tooMany, "there are \(state.calls.count) calls, as many as this machine carries: try again later")
        }
        let call = await device.call(user)
        return Outcome(ControlReply(call: call.number), news: .calling(call: call.number, to: name))
    }

    private func transfer(
        _ number: UInt64, _ target: String, _ other: UInt64?
    ) async throws(ControlFault) -> Outcome {
        let user: UserID
        do throws(IdentifierFault) {
            user = try UserID(target)
        } catch {
            throw ControlFault(.wrongValue, "\"to\" \(error)")
        }
        let call = try await find { calls throws(ControlFault) in try CallChoice.talking(number, among: calls) }
        var replaced: CallID?
        if let other {
            replaced = try await find { calls throws(ControlFault) in try CallChoice.talking(other, among: calls) }
        }
        do throws(SignalingError) {
            try await device.transfer(call, to: user, replacing: replaced)
        } catch {
            throw ControlFault(.wrongState, "\(error)")
        }
        return Outcome(ControlReply(call: call.number))
    }

    private func find(
        _ choose: (_ calls: [ControlCall]) throws(ControlFault) -> ControlCall
    ) async throws(ControlFault) -> CallID {
        let calls = await device.status.calls
        let now = MonotonicClock.now
        let chosen = try choose(calls.map { ControlCall($0, at: now) }).call
        guard let id = calls.first(where: { $0.id.number == chosen })?.id else {
            throw ControlFault(.noSuchCall, "there is no call \(chosen)")
        }
        return id
    }

    private func requireCard() async throws(ControlFault) {
        guard await device.status.sound == nil else { return }
        throw ControlFault(.noSoundCard, "the device's calls use no sound card; behaviour.source: card has them do so")
    }

    private func tellSound() async -> Outcome {
        guard let sound = await device.status.sound.map(ControlSound.init) else { return Outcome() }
        return Outcome(ControlReply(sound: sound), news: .sound(sound))
    }

    /// Host and port of a URL, without a name and password before them, and without its path and query.
    static func host(of url: String) -> String {
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        return String(authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority)
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
    init(_ call: CallStatus, at now: Instant) {
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
            durationSeconds: call.duration(at: now).map { ($0.seconds * 10).rounded() / 10 }, isHeld: call.isHeld)
    }
}

extension BehaviourConfiguration.Source {
    /// As in a configuration.
    var name: String {
        switch self {
        case .silence: "silence"
        case .echo: "echo"
        case .tone: "tone"
        case .file: "play"
        case .card: "card"
        case .exec: "exec"
        case .bot: "bot"
        case .program: "program"
        }
    }
}
