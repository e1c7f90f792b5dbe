import ArgumentParser
import ControlWire
import Foundation
import Testing

@testable import handset

struct ControlWordsTests {
    @Test(
        "Typed words become the request that they mean",
        arguments: [
            (["status"], .status), (["mute"], .mute(true)), (["unmute"], .mute(false)),
            (["volume", "-6"], .volume(playbackDB: -6, microphoneDB: nil)),
            (["--", "volume", "-6"], .volume(playbackDB: -6, microphoneDB: nil)),
            (["volume", "microphone", "3.5"], .volume(playbackDB: nil, microphoneDB: 3.5)),
            (["call", "bob"], .call(to: "bob")), (["answer"], .answer(nil)), (["answer", "2"], .answer(2)),
            (["reject"], .reject(nil, isBusy: false)), (["busy", "2"], .reject(2, isBusy: true)),
            (["hangup", "3"], .hangUp(3)), (["card", "3"], .card(3)), (["dtmf", "*#"], .dtmf("*#", nil)),
            (["dtmf", "1", "4"], .dtmf("1", 4)), (["watch"], .watch(levels: true)),
            (["play", "/a.wav"], .play(file: "/a.wav", nil)), (["play", "2", "/a.wav"], .play(file: "/a.wav", 2)),
            (["stop"], .stop(nil)), (["record", "start"], .record(.start(file: nil), nil)),
            (["record", "2", "start", "/b"], .record(.start(file: "/b"), 2)),
            (["record", "stop"], .record(.stop, nil)),
            (["record", "2", "stop"], .record(.stop, 2)),
            (["bridge", "1", "2"], .bridge(1, to: 2, goesBack: false)),
            (["bridge", "1", "2", "goes-back"], .bridge(1, to: 2, goesBack: true)),
            (["unbridge", "1"], .unbridge(1)), (["unbridge"], .unbridge(nil)),
            (["handover", "1", "to=ben"], .handover(1, ControlHandover(to: "ben"))),
            (["handover", "1", "cancel"], .cancelHandover(1)), (["park"], .park(nil, ControlParking())),
            (
                ["park", "2", "music=/m.wav", "seconds=60", "then=end"],
                .park(2, ControlParking(music: "/m.wav", longestSeconds: 60, endsThen: true))
            ),
            (["pickup", "1", "3"], .pickUp(slot: 1, 3, goesBack: false)),
            (["pickup", "1", "3", "goes-back"], .pickUp(slot: 1, 3, goesBack: true)),
            (["queue", "list"], .queues), (["queue", "remove", "2"], .queueRemove(2)),
            (["queue", "take", "support", "3"], .queueTake("support", 3, goesBack: false)),
            (["queue", "take", "support", "3", "goes-back"], .queueTake("support", 3, goesBack: true)),
            (["transfer", "1", "carol"], .transfer(1, to: "carol", replacing: nil)),
            (["transfer", "1", "carol", "to-call", "2"], .transfer(1, to: "carol", replacing: 2)),
            (["attach", "2"], .attach(2)), (["detach"], .detach(nil)),
        ] as [([String], ControlRequest.Action)])
    func words(words: [String], action: ControlRequest.Action) throws {
        #expect(try ControlWords.request(words).action == action)
    }

    @Test("A hand-over has a whisper of text or of a file, a key, music, a time and a role")
    func handover() throws {
        var asked = ControlHandover(to: "ben", listens: true)
        (asked.whisper, asked.acceptKey, asked.music) = (.text("A bill"), "1", .bot)
        asked.ringSeconds = 20
        let words = ["handover", "4", "to=ben", "whisper=A bill", "accept=1", "music=bot", "ring=20", "bot=listens"]
        #expect(try ControlWords.request(words).action == .handover(4, asked))
        asked = ControlHandover(to: "a=b")
        (asked.whisper, asked.music) = (.file("/w.opus"), .file("/m.wav"))
        let files = ["handover", "4", "to=a=b", "whisper=/w.opus", "music=/m.wav"]
        #expect(try ControlWords.request(files).action == .handover(4, asked))
        for words in [
            ["handover", "1"], ["handover", "to=b"], ["handover", "1", "to=b", "accept=12"],
            ["handover", "1", "to=b", "ring=4"], ["handover", "1", "to=b", "bot=stays"],
            ["handover", "1", "to=b", "x=y"],
            ["handover", "1", "to=b", "cancel"], ["handover", "1", "2", "to=b"], ["park", "then=x"],
            ["park", "seconds=4"], ["park", "1", "2"], ["pickup", "1"], ["pickup", "100", "1"],
            ["pickup", "1", "2", "a=b"], ["queue"], ["queue", "list", "1"], ["queue", "take", "support"],
            ["queue", "take", "", "3"], ["queue", "take", "support", "3", "back"], ["queue", "remove", "a"],
        ] {
            #expect(throws: ControlWords.self) { try ControlWords.request(words) }
        }
    }

    @Test("A file is found from where its name was typed, because the device has another working folder")
    func relativePath() throws {
        let folder = FileManager.default.currentDirectoryPath
        #expect(try ControlWords.request(["play", "a.wav"]).action == .play(file: "\(folder)/a.wav", nil))
        for words in [["play"], ["record"], ["record", "2"], ["record", "stop", "/a"], ["play", "x", "/a"]] {
            #expect(throws: ControlWords.self) { try ControlWords.request(words) }
        }
    }

    @Test("Volumes below 0 are no options, and options come before or after the request")
    func commandLine() throws {
        for arguments in [["volume", "-6", "--json"], ["--json", "volume", "-6"]] {
            let command = try #require(try Handset.parseAsRoot(["control"] + arguments) as? ControlCommand)
            #expect(command.json && command.words == ["volume", "-6"])
        }
    }
}

struct UnitSocketsTests {
    @Test("Without a socket's name the usual one is meant, else the only unit that runs, and several are an error")
    func units() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "units-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        func start(_ name: String) throws {
            let place = folder.appending(path: name)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            try Data().write(to: place.appending(path: "control.sock"))
        }
        func choice() throws -> String { try UnitSockets(in: folder.path).choose(usual: "\(folder.path)/usual.sock") }
        #expect(try choice() == "\(folder.path)/usual.sock")
        let stopped = folder.appending(path: "stopped")
        try FileManager.default.createDirectory(at: stopped, withIntermediateDirectories: true)
        #expect(try choice() == "\(folder.path)/usual.sock")
        try start("front")
        #expect(try choice() == "\(folder.path)/front/control.sock")
        try start("back")
        let failure = #expect(throws: CommandFailure.self) { try choice() }
        #expect(failure?.status == .usage)
        let words = "--socket \(folder.path)/back/control.sock, --socket \(folder.path)/front/control.sock"
        #expect(failure?.description.contains(words) == true)
        try Data().write(to: folder.appending(path: "usual.sock"))
        #expect(try choice() == "\(folder.path)/usual.sock")
    }
}

struct ControlViewTests {
    private let levels = ControlLevels(
        microphoneDBFS: -30, microphonePeakDBFS: -12, loudspeakerDBFS: -100, loudspeakerPeakDBFS: -100)

    @Test("Events are lines, and meters stay beneath them on a line that fits the terminal", arguments: [60, 80, 200])
    func terminal(width: Int) {
        var view = ControlView(width: width, status: nil)
        let first = view.take(.levels(levels))
        #expect(first.contains("mic ██") && first.contains("-30 dBFS") && !first.contains("\n"))
        #expect(first.count < width)
        let written = view.take(.incoming(call: 1, from: "bob"))
        #expect(written.hasPrefix("\r\u{1B}[2Kcall 1 comes in from bob\n") && written.hasSuffix(first))
        let muted = view.take(.sound(ControlSound(isMuted: true, volumeDB: 0, microphoneDB: 0)))
        #expect(muted.hasSuffix("MUTED"))
        #expect(muted.split(separator: "\n").last.map { $0.count < width } == true)
        // The call is over: no meters.
        #expect(view.take(.levels(nil)) == "\r\u{1B}[2K")
        #expect(view.end() == "")
    }

    @Test("Without a terminal there are lines only")
    func plain() {
        var view = ControlView(width: nil, status: nil)
        #expect(view.take(.levels(levels)) == "")
        #expect(view.take(.digit(call: 2, key: "5")) == "call 2: the peer pressed 5\n")
        #expect(view.take(.unknown("weather")) == "")
        #expect(view.end() == "")
    }

    @Test("A meter is empty at -60 dBFS and full at 0, with its peak ahead")
    func meter() {
        #expect(ControlView.meter(-60, -60, 6) == "······  -60 dBFS")
        #expect(ControlView.meter(0, 0, 6) == "██████    0 dBFS")
        #expect(ControlView.meter(-30, -10, 6) == "███·▏·  -30 dBFS")
        #expect(ControlView.meter(-.infinity, .infinity, 6).hasSuffix(" -99 dBFS"))
    }

    @Test("Names of others cannot move a terminal's cursor")
    func printable() {
        let text = ControlText.event(.incoming(call: 1, from: "b\u{1B}[2Job\u{9B}"))
        #expect(text == "call 1 comes in from b?[2Job?")
    }
}
