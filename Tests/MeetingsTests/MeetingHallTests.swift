import AudioPort
import CallMeetings
import Realtime
import Synchronization
import TestSupport
import Testing

@Suite("Rooms of a process", .timeLimit(.minutes(1)))
struct MeetingHallTests {
    private final class Line {
        var line: PortLine
        init(_ line: consuming PortLine) { self.line = line }

        func frame(_ sample: Int16 = 0) {
            let said = [Int16](repeating: sample, count: 960)
            var sent = said
            var room = sent.mutableSpan
            line.exchange(received: said.span, sending: &room)
        }
    }

    private func join(_ hall: MeetingHall, _ member: UInt64, _ room: String, most: Int = 250) throws -> Line {
        Line(try hall.join(member, room: room, most: most, hasTones: true) { _ in })
    }

    @Test("A full room refuses a further call, keeps its members, and takes one when another has left")
    func roomFull() throws {
        let hall = try MeetingHall(priority: nil)
        let lines = [try join(hall, 1, "team", most: 2), try join(hall, 2, "team", most: 2)]
        let refusal = #expect(throws: MeetingRefusal.self) { try join(hall, 3, "team", most: 2) }
        #expect(
            "\(try #require(refusal))"
                == "the room \"team\" has 2 members, the limit of behaviour.conference.most_members")
        #expect(hall.rooms.map(\.members.count) == [2])
        hall.leave(1)
        _ = try join(hall, 3, "team", most: 2)
        #expect(hall.rooms.first?.members.map(\.call) == [2, 3])
        hall.finish()
        _ = lines
    }

    @Test("Room 257 and member 1,001 are refused, and a room that has closed makes room")
    func processFull() throws {
        let hall = try MeetingHall(priority: nil)
        for number in 1...256 { _ = try join(hall, UInt64(number), "room \(number)") }
        #expect(throws: MeetingRefusal.self) { try join(hall, 2_000, "room 257") }
        for number in 257...1_000 { _ = try join(hall, UInt64(number), "room \(number % 256 + 1)") }
        #expect(throws: MeetingRefusal.self) { try join(hall, 1_001, "room 1") }
        hall.leave(1_000)
        _ = try join(hall, 1_001, "room 1")
        for number in 1...1_001 { hall.leave(UInt64(number)) }
        #expect(hall.rooms.isEmpty)
        _ = try join(hall, 1_002, "room 257")
        hall.finish()
    }

    @Test("A member is reported when its first sound has come, and can be muted until it leaves")
    func reports() async throws {
        let hall = try MeetingHall(priority: nil)
        let reports = Mutex<[MeetingHall.Report]>([])
        let shared = Shared(reports)
        let line = Line(
            try hall.join(7, room: "team", most: 2, hasTones: false) { report in shared.add(report) })
        try await until {
            line.frame()
            return shared.all == [.entered(members: 1)]
        }
        #expect(hall.setMuted(true, of: 7))
        #expect(
            hall.rooms.first?.members == [RoomStatus.Member(call: 7, isPresent: true, speaks: false, isMuted: true)])
        hall.leave(7)
        #expect(!hall.setMuted(true, of: 7))
        #expect(hall.rooms.isEmpty)
        hall.finish()
    }

    @Test(
        "The reports of a stay come in order, also when the member leaves while they are sent; the next stay has its own"
    )
    func order() async throws {
        let hall = try MeetingHall(priority: nil)
        let (first, second, isDone) = (Shared(Mutex([])), Shared(Mutex([])), Shared(Mutex([])))
        let gate = Gate()
        let line = Line(
            try hall.join(7, room: "team", most: 2, hasTones: false) { report in
                first.add(report)
                // It is slow, and what follows waits for it.
                if case .entered = report { _ = gate.pass() }
            })
        try await until {
            line.frame(8_000)
            return !first.all.isEmpty && hall.rooms.first?.members.first?.speaks == true
        }
        hall.leave(7)
        let next = Line(try hall.join(7, room: "team", most: 2, hasTones: false) { report in second.add(report) })
        gate.open()
        try await until {
            next.frame()
            return second.all == [.entered(members: 1)]
        }
        hall.leave(7)
        hall.afterReports { isDone.add(.entered(members: 0)) }
        try await until { !isDone.all.isEmpty }
        let kinds = first.all.map { report in
            switch report {
            case .entered: "entered"
            case .speech(let isOver, _): isOver ? "end" : "begin"
            }
        }
        #expect(kinds == ["entered", "begin", "end"] && second.all == [.entered(members: 1)])
        hall.finish()
    }

    @Test("A room is recorded once at a time, from a member's request to its end or the room's, and its file is listed")
    func recording() async throws {
        let hall = try MeetingHall(priority: nil)
        let ends = Shared(Mutex([]))
        func begin(_ path: String) throws -> AudioRing.Consumer {
            let ring = AudioRing(capacity: 65_536)
            try hall.record("team", to: path, into: ring.producer) { ends.add(.entered(members: 0)) }
            return ring.consumer
        }
        #expect(throws: MeetingRefusal.self) { _ = try begin("/none.wav") }
        let lines = [try join(hall, 1, "team"), try join(hall, 2, "team")]
        var first = try begin("/first.wav")
        let refusal = #expect(throws: MeetingRefusal.self) { _ = try begin("/second.wav") }
        #expect(refusal?.description.contains("/first.wav") == true)
        #expect(hall.rooms.first?.recording == "/first.wav")
        try await until {
            for line in lines { line.frame(8_000) }
            return Self.peak(&first) > 4_000
        }
        #expect(hall.stopRecording(roomOf: 2) == "/first.wav" && hall.stopRecording(roomOf: 2) == nil)
        try await until { ends.all.count == 1 }
        #expect(hall.rooms.first?.recording == nil)
        var second = try begin("/second.wav")
        for member in [1, 2] as [UInt64] { hall.leave(member) }
        try await until { ends.all.count == 2 }
        // What is left is read before the end is seen.
        _ = Self.peak(&second)
        let hasEnded = second.hasEnded()
        #expect(hasEnded)
        hall.finish()
    }

    private static func peak(_ ring: inout AudioRing.Consumer) -> Int {
        var samples = [Int16](repeating: 0, count: 65_536)
        var room = samples.mutableSpan
        let count = ring.read(into: &room)
        return samples.prefix(count).map { Int($0.magnitude) }.max() ?? 0
    }

    @Test("The load is that of a second with members, and 0 when the last has left")
    func load() async throws {
        let hall = try MeetingHall(priority: nil)
        #expect(hall.load == 0)
        let lines = try (1...250).map { try join(hall, UInt64($0), "team") }
        try await until {
            for line in lines { line.frame() }
            return hall.load > 0
        }
        for number in 1...250 { hall.leave(UInt64(number)) }
        try await until { hall.load == 0 }
        _ = try join(hall, 251, "team")
        hall.finish()
    }

    private final class Shared: Sendable {
        private let reports: Mutex<[MeetingHall.Report]>
        init(_ reports: consuming Mutex<[MeetingHall.Report]>) { self.reports = reports }
        var all: [MeetingHall.Report] { reports.withLock { $0 } }
        func add(_ report: MeetingHall.Report) { reports.withLock { $0.append(report) } }
    }
}
