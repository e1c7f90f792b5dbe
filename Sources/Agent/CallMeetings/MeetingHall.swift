// CallMeetings: calls that meet in rooms: the rooms of a process, the thread that mixes their sound, and calls as their members.

public import AudioPort
internal import Core
internal import Meetings
public import Realtime
internal import Synchronization

/// The rooms of a process, whose members are calls of all its accounts, and the two threads that serve them: one mixes, with the
/// priority of media workers, and one reports. Both begin with the first member.
///
/// All methods may be called from any thread.
public final class MeetingHall: Sendable {
    /// Reports for a member's owner, sent on the reporting thread alone, so in order, while no lock is held.
    public enum Report: Sendable, Equatable {
        /// The call takes part, with this number of members.
        case entered(members: Int)
        /// The call is heard by the others since that time after it was seated, or was until then.
        case speech(isOver: Bool, at: Duration)
    }

    /// Rooms at a time; a call that would open a further one is refused.
    public static let mostRooms = 256
    /// Members of all rooms; further calls are refused. Mixing one takes some 10 µs of each 20 ms.
    public static let mostMembers = 1_000
    /// Above this share of its time, the mixing thread takes no more members.
    public static let mostLoad = 0.8

    private struct Room {
        let number: UInt64
        var meeting: Meeting
        /// The file that it is recorded to.
        var recording: String?
    }

    private struct Member {
        let room: String
        /// Of this stay, so that late reports of an earlier one count for nothing.
        let seat: UInt64
        let report: @Sendable (Report) -> Void
        let began: Instant
    }

    private struct State: ~Copyable {
        var desk: MeetingDesk
        var rooms: [String: Room] = [:]
        var members: [UInt64: Member] = [:]
        /// The members by their seats.
        var seats: [UInt64: UInt64] = [:]
        var lastRoom: UInt64 = 0
        var lastSeat: UInt64 = 0
        var lastRecording: UInt64 = 0
        /// What follows the end of recordings, by their numbers.
        var recordings: [UInt64: @Sendable () -> Void] = [:]
        /// The line that the newest seat has made.
        var line: PortLine?
        /// What the reporting thread sends next, in order. Besides what it puts there itself, a call that leaves adds two at most.
        var notices: [@Sendable () -> Void] = []
        /// Whether there is a thread that sends them.
        var isServed = false
    }

    private struct Server {
        let mixing: RealtimeThread
        let reporting: RealtimeThread
    }

    private let state: Mutex<State>
    private let mixer: Mutex<MeetingMixer?>
    private let server = Mutex<Server?>(nil)
    private let priority: Int32?
    private let work: Wake
    private let reports: Wake
    private let isFinished = Atomic(false)
    /// Of the mixing thread's time, in thousandths: measured over 50 frames; 0 without a room.
    private let thousandths = Atomic(0)

    /// A wake-up that both ends share.
    private final class Wake: Sendable {
        let wakeup: Wakeup
        init() throws(RealtimeError) { wakeup = try Wakeup() }
    }

    /// Makes a hall without rooms.
    ///
    /// - Parameter priority: The real-time priority of the mixing thread; nil for none.
    public init(priority: Int32?) throws(RealtimeError) {
        let pair = MeetingDesk.pair()
        self.priority = priority
        work = try Wake()
        reports = try Wake()
        mixer = Mutex(.some(pair.mixer))
        state = Mutex(State(desk: pair.desk))
    }

    /// Takes a call into a room, which opens with its first member.
    ///
    /// - Parameters:
    ///   - member: The call's number, unlike that of any other member.
    ///   - most: Members that the room may have with this one.
    /// - Returns: The media worker's side of its sound.
    /// - Throws: ``MeetingRefusal`` if there is no room for it, or the threads cannot start.
    public func join(
        _ member: UInt64, room name: String, most: Int, hasTones: Bool, report: @escaping @Sendable (Report) -> Void
    ) throws(MeetingRefusal) -> PortLine {
        try startIfNeeded()
        return try state.withLock { state throws(MeetingRefusal) in
            guard state.members[member] == nil else { throw .doubled(member) }
            try check(state, name, most)
            if state.rooms[name] == nil {
                state.lastRoom += 1
                state.rooms[name] = Room(number: state.lastRoom, meeting: Meeting(hasTones: hasTones))
                state.desk.open(state.lastRoom)
            }
            state.lastSeat += 1
            state.seats[state.lastSeat] = member
            state.members[member] = Member(
                room: name, seat: state.lastSeat, report: report, began: MonotonicClock.now)
            Self.feed(.joined(member), to: name, &state)
            work.wakeup.signal()
            guard let line = state.line.take() else { throw .doubled(member) }
            return line
        }
    }

    private func check(_ state: borrowing State, _ name: String, _ most: Int) throws(MeetingRefusal) {
        let there = state.rooms[name]?.meeting.count ?? 0
        guard there < most else { throw .roomFull(name, most) }
        guard state.rooms[name] != nil || state.rooms.count < Self.mostRooms else { throw .tooManyRooms }
        guard state.members.count < Self.mostMembers else { throw .tooManyMembers }
        let share = load
        guard share <= Self.mostLoad else { throw .overloaded(share) }
    }

    /// Removes a call from its room; without one, nothing happens. Its last reports follow on the reporting thread.
    public func leave(_ member: UInt64) {
        state.withLock { state in
            guard let room = state.members[member]?.room else { return }
            Self.feed(.left(member), to: room, &state)
        }
        work.wakeup.signal()
        reports.wakeup.signal()
    }

    /// Runs `act` behind all reports so far: on the reporting thread, or at once if there was no member yet.
    public func afterReports(_ act: @escaping @Sendable () -> Void) {
        let isServed = state.withLock { state in
            if state.isServed { state.notices.append(act) }
            return state.isServed
        }
        if isServed { reports.wakeup.signal() } else { act() }
    }

    /// Mutes a member, or has it heard again.
    ///
    /// - Returns: False if the call is no member of a room.
    public func setMuted(_ isMuted: Bool, of member: UInt64) -> Bool {
        let isMember = state.withLock { state in
            guard let room = state.members[member]?.room else { return false }
            Self.feed(.muted(member, isMuted), to: room, &state)
            return true
        }
        work.wakeup.signal()
        return isMember
    }

    /// Records what a room hears: those who speak, and its tones.
    ///
    /// - Parameters:
    ///   - path: The file, for ``rooms``.
    ///   - ring: What a file thread empties.
    ///   - onEnd: Is called on the reporting thread when nothing more comes: the room has closed, or ``stopRecording(roomOf:)`` was called.
    /// - Throws: ``MeetingRefusal`` if there is no such room, or it is recorded already.
    public func record(
        _ name: String, to path: String, into ring: consuming AudioRing.Producer,
        onEnd: @escaping @Sendable () -> Void
    ) throws(MeetingRefusal) {
        var given: AudioRing.Producer? = .some(ring)
        try state.withLock { state throws(MeetingRefusal) in
            guard let number = state.rooms[name]?.number else { throw .noRoom(name) }
            if let path = state.rooms[name]?.recording { throw .recorded(name, path) }
            guard let ring = given.take() else { return }
            state.lastRecording += 1
            state.recordings[state.lastRecording] = onEnd
            state.rooms[name]?.recording = path
            state.desk.record(number, as: state.lastRecording, into: ring)
        }
        work.wakeup.signal()
    }

    /// Ends the recording of a member's room.
    ///
    /// - Returns: The file; nil if the room is not recorded, or the call is in none.
    public func stopRecording(roomOf member: UInt64) -> String? { room(of: member).flatMap(stopRecording) }

    /// Ends the recording of a room.
    ///
    /// - Returns: The file; nil if the room is not recorded.
    @discardableResult
    public func stopRecording(_ name: String) -> String? {
        let path = state.withLock { state -> String? in
            guard let room = state.rooms[name], let path = room.recording else { return nil }
            state.rooms[name]?.recording = nil
            state.desk.stopRecording(of: room.number)
            return path
        }
        work.wakeup.signal()
        return path
    }

    /// The share of the mixing thread's time in the last second that it worked, 0 to 1; 0 without a room.
    public var load: Double { Double(thousandths.load(ordering: .relaxed)) / 1_000 }

    /// Whether a call is a member of a room.
    public func isMember(_ call: UInt64) -> Bool { state.withLock { $0.members[call] != nil } }

    /// The room that a call is in; nil if it is in none.
    public func room(of call: UInt64) -> String? { state.withLock { $0.members[call]?.room } }

    /// The rooms, by name, with their members by number.
    public var rooms: [RoomStatus] {
        state.withLock { state in
            state.rooms.sorted { $0.key < $1.key }.map { name, room in
                RoomStatus(
                    name: name, recording: room.recording,
                    members: room.meeting.members.sorted { $0.key < $1.key }.map { number, member in
                        RoomStatus.Member(
                            call: number, isPresent: member.isPresent, speaks: member.speaks, isMuted: member.isMuted)
                    })
            }
        }
    }

    /// Ends the threads. No call may be a member any more.
    public func finish() {
        isFinished.store(true, ordering: .releasing)
        server.withLock { server in
            work.wakeup.signal()
            reports.wakeup.signal()
            server?.mixing.join()
            server?.reporting.join()
            server = nil
        }
        state.withLock { $0.isServed = false }
        sendNotices()
    }

    // MARK: Meetings

    /// Feeds a room's meeting, and carries out its orders. What is to be reported waits for the reporting thread.
    private static func feed(_ input: Meeting.Input, to name: String, _ state: inout State) {
        guard let room = state.rooms[name]?.number else { return }
        var outputs: [Meeting.Output] = []
        state.rooms[name]?.meeting.handle(input, into: &outputs)
        for output in outputs {
            switch output {
            case .seat(let member):
                guard let seat = state.members[member]?.seat else { continue }
                state.line = .some(state.desk.seat(seat, in: room, isMuted: false))
            case .unseat(let member):
                guard let seat = state.members.removeValue(forKey: member)?.seat else { continue }
                state.desk.unseat(seat, from: room)
                state.seats[seat] = nil
            case .mute(let member, let isMuted):
                if let seat = state.members[member]?.seat { state.desk.mute(seat, in: room, isMuted) }
            case .sound(let tone): state.desk.sound(tone, in: room)
            case .entered(let member, let count):
                if let report = state.members[member]?.report {
                    state.notices.append { report(.entered(members: count)) }
                }
            case .speaks(let member, let speaks):
                if let found = state.members[member] {
                    let time = found.began.duration(to: MonotonicClock.now)
                    state.notices.append { found.report(.speech(isOver: !speaks, at: time)) }
                }
            case .close:
                state.desk.close(room)
                state.rooms[name] = nil
            }
        }
    }

    // MARK: Threads

    private func startIfNeeded() throws(MeetingRefusal) {
        do throws(RealtimeError) {
            try server.withLock { server throws(RealtimeError) in
                guard server == nil, !isFinished.load(ordering: .acquiring) else { return }
                let reporting = try RealtimeThread(name: "meetings") { [self] in serveReports() }
                do throws(RealtimeError) {
                    let mixing = try RealtimeThread(name: "mixer") { [self] in mix() }
                    server = Server(mixing: mixing, reporting: reporting)
                    state.withLock { $0.isServed = true }
                } catch {
                    isFinished.store(true, ordering: .releasing)
                    reports.wakeup.signal()
                    reporting.join()
                    throw error
                }
            }
        } catch {
            throw .notStarted("\(error)")
        }
    }

    private func serveReports() {
        while !isFinished.load(ordering: .acquiring) {
            reports.wakeup.wait()
            state.withLock { state in
                var found: [MeetingDesk.Report] = []
                state.desk.takeReports(into: &found)
                for report in found { Self.take(report, &state) }
            }
            sendNotices()
        }
    }

    private func sendNotices() {
        let notices = state.withLock { state in
            defer { state.notices = [] }
            return state.notices
        }
        for notice in notices { notice() }
    }

    private static func take(_ report: MeetingDesk.Report, _ state: inout State) {
        switch report {
        case .present(let seat): feed({ .present($0) }, ofSeat: seat, &state)
        case .heard(let seat, let isHeard): feed({ .heard($0, isHeard) }, ofSeat: seat, &state)
        // The call's owner ends its participation.
        case .gone: break
        case .recorded(let number):
            if let follow = state.recordings.removeValue(forKey: number) { state.notices.append(follow) }
        }
    }

    private static func feed(_ input: (UInt64) -> Meeting.Input, ofSeat seat: UInt64, _ state: inout State) {
        guard let member = state.seats[seat], let room = state.members[member]?.room else { return }
        feed(input(member), to: room, &state)
    }

    private static let frame: Int64 = 20_000_000
    /// Frames are due between two of the workers' slots of 2.5 ms.
    private static let phase: Int64 = 1_250_000
    /// Frames that are made up for after a stall; the rings have no more.
    private static let mostLate: Int64 = 4

    private func mix() {
        // Without it, the workers have logged why.
        if let priority { try? RealtimeThread.makeCurrentRealtime(priority: priority) }
        guard var mixer = mixer.withLock({ $0.take() }) else { return }
        let (wake, report) = (work.wakeup.handle, reports.wakeup.handle)
        var due = Self.next(after: MonotonicClock.now)
        var meter = LoadMeter()
        while !isFinished.load(ordering: .acquiring) {
            let outcome = DeadlineWait.wait(until: mixer.isIdle ? nil : due, wakeup: wake, socket: nil)
            if outcome.isSignalled { wake.clear() }
            let now = MonotonicClock.now
            if now.nanoseconds - due.nanoseconds > Self.mostLate * Self.frame { due = Self.next(after: now) }
            guard now >= due || mixer.isIdle else { continue }
            if mixer.tick() { report.signal() }
            due = due.advanced(byNanoseconds: Self.frame)
            if let share = meter.take(from: now, to: MonotonicClock.now, isIdle: mixer.isIdle) {
                thousandths.store(share, ordering: .relaxed)
            }
        }
    }

    private static func next(after now: Instant) -> Instant {
        Instant(nanoseconds: (now.nanoseconds / frame + 1) * frame + phase)
    }
}

/// A room, at one moment.
public struct RoomStatus: Equatable, Sendable {
    /// A call in it.
    public struct Member: Equatable, Sendable {
        /// The call's number.
        public let call: UInt64
        /// Whether its first sound has come.
        public let isPresent: Bool
        /// Whether the others hear it.
        public let speaks: Bool
        /// Whether it is muted.
        public let isMuted: Bool

        /// Describes a member.
        public init(call: UInt64, isPresent: Bool, speaks: Bool, isMuted: Bool) {
            self.call = call
            self.isPresent = isPresent
            self.speaks = speaks
            self.isMuted = isMuted
        }
    }

    /// The room's name.
    public let name: String
    /// The file that the room is recorded to; nil if it is not.
    public let recording: String?
    /// Its members.
    public let members: [Member]
}

/// The share of its time for which a thread works, in thousandths.
private struct LoadMeter {
    private var busy: Int64 = 0
    private var frames: Int64 = 0

    /// Takes the work for a frame.
    ///
    /// - Parameter isIdle: Whether there is no work any more.
    /// - Returns: The share, if there is a new one.
    mutating func take(from start: Instant, to end: Instant, isIdle: Bool) -> Int? {
        guard !isIdle else {
            self = LoadMeter()
            return 0
        }
        busy += end.nanoseconds - start.nanoseconds
        frames += 1
        guard frames == 50 else { return nil }
        defer { (busy, frames) = (0, 0) }
        return Int(busy * 1_000 / (frames * 20_000_000))
    }
}

/// Why a call cannot join a room.
public struct MeetingRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is in the way, and what to try.
    public let description: String

    static func roomFull(_ room: String, _ most: Int) -> MeetingRefusal {
        MeetingRefusal(
            description: "the room \"\(room)\" has \(most) members, the limit of behaviour.conference.most_members")
    }

    static var tooManyRooms: MeetingRefusal {
        MeetingRefusal(description: "there are \(MeetingHall.mostRooms) rooms, the limit of a process; try again later")
    }

    static var tooManyMembers: MeetingRefusal {
        MeetingRefusal(
            description: "all rooms have \(MeetingHall.mostMembers) members, the limit of a process; try again later")
    }

    static func overloaded(_ share: Double) -> MeetingRefusal {
        MeetingRefusal(
            description: "the mixing thread is busy for \(Int(share * 100)) % of its time; try again later")
    }

    static func noRoom(_ name: String) -> MeetingRefusal {
        MeetingRefusal(description: "there is no room \"\(name)\" any more; conference list shows the rooms")
    }

    static func recorded(_ room: String, _ path: String) -> MeetingRefusal {
        MeetingRefusal(description: "the room \"\(room)\" is being recorded already, to \"\(path)\"; stop that first")
    }

    static func doubled(_ member: UInt64) -> MeetingRefusal {
        MeetingRefusal(description: "call \(member) is in a room already")
    }

    static func notStarted(_ why: String) -> MeetingRefusal {
        MeetingRefusal(description: "the threads of conferences cannot start: \(why)")
    }
}
