internal import Call
internal import CallDiagnosis
internal import CallMedia
internal import CallParticipation
internal import Core
internal import Files
internal import Realtime
internal import SDP

/// What is noted of a call while it runs, for its record: its counters second by second, and what happened when.
struct CallObservation {
    /// When the call began, in milliseconds since 1970.
    let began = MonotonicClock.wallTime.unixMilliseconds
    private(set) var moments = CallMoments()
    private(set) var timeline: CallTimeline?
    /// The first ``KeptCall/mostRecordings`` recordings of the call.
    private(set) var recordings: [KeptCall.Recording] = []
    /// When the timeline begins.
    private var start = Instant.zero

    /// Milliseconds from the call's beginning to the first moment of a kind; nil if there was none.
    func delay(of kind: CallMoment.Kind) -> Int64? {
        moments.kept.first { $0.kind == kind }.map { max(0, $0.at - began) }
    }

    /// Notes that a worker runs the call's media from now on.
    mutating func begin(at now: Instant) {
        guard timeline == nil else { return }
        (start, timeline) = (now, CallTimeline(begins: MonotonicClock.wallTime.unixMilliseconds))
    }

    /// Whether a row of the timeline ends now.
    func isDue(at now: Instant) -> Bool { timeline?.isDue(at: seconds(until: now)) ?? false }

    /// Takes the media's counters.
    mutating func note(_ report: MediaReport, at now: Instant) {
        let second = seconds(until: now)
        timeline?.note(report, at: second)
    }

    private func seconds(until now: Instant) -> Int { Int(start.duration(to: now).components.seconds) }

    /// Notes that something happened now.
    mutating func add(_ kind: CallMoment.Kind, _ text: String? = nil) {
        moments.note(CallMoment(kind, at: MonotonicClock.wallTime.unixMilliseconds, text: text))
    }

    /// Notes an event of the call.
    mutating func note(_ event: CallEvent) {
        switch event {
        case .answered: add(.answered)
        case .established: add(.established)
        case .flowing: add(.flowing)
        case .recording(let path): addRecording(path)
        case .identified, .incoming, .playbackEnded, .attached, .detached, .digit, .speech, .interrupted,
            .responded, .transferRequested, .transferProgress:
            break
        }
    }

    private mutating func addRecording(_ path: String) {
        guard recordings.count < KeptCall.mostRecordings else { return }
        let time = MonotonicClock.wallTime.unixMilliseconds
        recordings.append(KeptCall.Recording(file: RegularFile.absolute(path), began: time))
    }

    /// Notes that a recording has ended.
    ///
    /// - Parameters:
    ///   - path: The file that was asked for.
    ///   - file: The file that it is, which has another name if it failed, or if its own was taken.
    mutating func recordingEnded(_ path: String, as file: String) {
        let wanted = RegularFile.absolute(path)
        guard let index = recordings.lastIndex(where: { $0.file == wanted }) else { return }
        recordings[index].file = RegularFile.absolute(file)
    }

    /// Notes a decision of the call.
    mutating func note(_ decision: CallNote) {
        switch decision {
        case .firstPacket: add(.firstPacket)
        case .pathLost: add(.pathLost)
        case .pathBack: add(.pathBack)
        case .offerUnusable(let why), .answerUnusable(let why): add(.descriptionRefused, why)
        case .failed, .tooLate, .notAccepted, .restartingICE, .restartFailed, .nothingOffered, .probing, .heardEarly,
            .notHeardEarly, .silent, .peerGone, .longestDuration, .participantTransfers, .transferRequested:
            break
        }
    }

    /// Notes an order for the media engine.
    mutating func note(_ order: CallSession.EngineOrder) {
        switch order {
        case .setDirection(_, let direction): add(.direction, direction.rawValue)
        case .change(let changes):
            for case .setDirection(_, let direction) in changes { add(.direction, direction.rawValue) }
        case .open, .findSource, .connect, .add, .liftSoundLimit, .closePort, .stop: break
        }
    }

    /// Notes what a participant reports.
    mutating func note(_ event: ParticipantEvent) {
        switch event {
        case .failed(_, let why), .done(_, failure: .some(let why)), .noted(.fellBack(let why), _),
            .noted(.processFailed(let why, _), _):
            add(.programFailed, why)
        case .noted(.behind(events: false), _): add(.programBehind)
        case .ready, .rejected, .press, .transfer, .turn, .speech, .done, .left, .noted, .handover, .cancelHandover:
            break
        }
    }
}
