internal import Call
internal import CallDiagnosis
internal import CallMedia
internal import CallParticipation
internal import Core
internal import Realtime
internal import SDP

/// What is noted of a call while it runs, for its record: its counters second by second, and what happened when.
struct CallObservation {
    /// When the call began, in milliseconds since 1970.
    let began = MonotonicClock.wallTime.unixMilliseconds
    private(set) var moments = CallMoments()
    private(set) var timeline: CallTimeline?
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
        case .identified, .incoming, .playbackEnded, .recording, .attached, .detached, .digit, .speech, .interrupted,
            .responded, .transferRequested, .transferProgress:
            break
        }
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
