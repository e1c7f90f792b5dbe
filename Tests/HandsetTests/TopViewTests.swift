import ControlWire
import Testing

@testable import handset

@Suite("The screen of handset top")
struct TopViewTests {
    private static func status(calls: Int, lost: Int = 0, received: Int = 0) -> ControlStatus {
        var status = ControlStatus(
            version: "1.0.0", pid: 7, uptimeSeconds: 3_725, device: "front desk", connection: "connected",
            user: "alice",
            server: "example.org", behaviour: "echo")
        status.load = ControlLoad(busy: 0.12, complexityLimit: 10, takesCalls: true)
        status.callCount = calls
        status.calls = (0..<calls).map { number in
            var call = ControlCall(
                call: UInt64(number + 1), peer: "caller-\(number + 1)@example.org", isIncoming: true, state: .talking,
                durationSeconds: 61)
            var media = ControlCallMedia()
            (media.lost, media.received, media.played) = (lost, received, received * 20)
            (media.delay, media.roundTrip, media.jitter) = (41.6, 30.2, 3.14)
            (media.sentLevel, media.receivedLevel) = (-20, -31.5)
            call.media = media
            return call
        }
        return status
    }

    private func lines(_ status: ControlStatus..., rows: Int = 24, columns: Int = 120, colour: Bool = false) -> [String]
    {
        var view = TopView(style: TerminalStyle(isEnabled: colour))
        for status in status { view.take(status) }
        return view.lines(.init(columns: columns, rows: rows))
    }

    @Test("It has the device, its load, and a line for each call with its figures, the newest first")
    func screen() throws {
        let shown = lines(Self.status(calls: 2))
        #expect(shown[0] == "front desk: connected as alice at example.org")
        #expect(shown[1] == "up 1:02:05, 2 calls, load 12 % of a core")
        let call = try #require(shown.firstIndex { $0.contains("caller-2@example.org") })
        #expect(shown[call].contains("talking") && shown[call].contains("1:01"))
        #expect(shown[call].hasSuffix("    42     30    3.1    -20    -32"), "\(shown[call])")
        #expect(shown[call + 1].contains("caller-1@example.org"))
    }

    @Test("Loss is that of the time since the state before, and unknown at first; much of it is red")
    func loss() {
        #expect(lines(Self.status(calls: 1, lost: 50, received: 50)).last?.contains(" 50.0 ") == false)
        let shown = lines(
            Self.status(calls: 1, lost: 50, received: 50), Self.status(calls: 1, lost: 55, received: 95), colour: true)
        #expect(shown.last?.contains(" 10.0 ") == true && shown.last?.hasPrefix("\u{1B}[31m") == true, "\(shown)")
        // A packet that came late after all.
        let late = lines(Self.status(calls: 1, lost: 5), Self.status(calls: 1, lost: 4, received: 50))
        #expect(late.last?.contains("  0.0 ") == true)
    }

    @Test("It never has more rows or columns than the terminal, and says how many calls it leaves out")
    func size() {
        for rows in 1...30 {
            for columns in [1, 20, 60, 80, 200] {
                let shown = lines(Self.status(calls: 64), rows: rows, columns: columns)
                #expect(shown.count <= rows && shown.allSatisfy { $0.count <= columns })
            }
        }
        #expect(lines(Self.status(calls: 64)).last == "and 45 more")
    }

    @Test("Accounts that are not connected come first")
    func accounts() throws {
        var status = Self.status(calls: 0)
        status.accounts = ["a", "b"].map { name in
            ControlAccount(
                account: name, device: name, connection: name == "a" ? "connected" : "waiting", server: "s",
                behaviour: "echo")
        }
        let shown = lines(status)
        #expect(shown[0] == "front desk: 1 of 2 accounts connected" && shown.last == "no calls")
        let first = try #require(shown.firstIndex { $0.hasPrefix("b ") })
        #expect(shown[first + 1].hasPrefix("a "))
    }

    @Test("What others chose cannot move the cursor, and without a terminal everything is printed")
    func foreignText() {
        var status = Self.status(calls: 80)
        status.calls[0].peer = "a\u{1B}[2Jb"
        var view = TopView(style: TerminalStyle(isEnabled: false))
        view.take(status)
        let shown = view.lines(nil)
        #expect(shown.count > 80 && !shown.joined().contains("\u{1B}"))
    }
}
