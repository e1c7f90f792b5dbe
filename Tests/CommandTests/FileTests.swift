import AudioKit
import Foundation
import Glibc
import TestSupport
import Testing

/// The files that calls play and record, from the real command.
@Suite("Files of calls", .witnessed, .serialized, .timeLimit(.minutes(5)))
struct FileTests {
    /// The site's device configuration with another behaviour.
    private static func configure(_ site: Site, behaviour: String) throws {
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
            line == "  source: echo" ? behaviour.split(separator: "\n").map { "  \($0)" } : [String(line)]
        }
        try lines.joined(separator: "\n").write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
    }

    private static func check(_ arguments: String...) async throws -> (code: Int32, text: String) {
        let process = try HandsetProcess(["check"] + arguments)
        let code = await process.ending()
        return (code, process.errorText + process.outputText)
    }

    private static func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test("Three calls of `handset call` to one device come back whole, and each recording is its owner's alone")
    func threeCalls() async throws {
        let site = try Site()
        defer { site.remove() }
        try Self.configure(site, behaviour: "source: play\nfile: \(Site.speech)\nrecord_folder: kept/here")
        let running = try await RunningSite(site)
        for round in 1...3 {
            let record = site.path("\(round).wav")
            // The device says the same as the caller, so that both recordings are compared with it by `--minimum-likeness`.
            let call = try running.call(["--play", Site.speech, "--record", record, "--minimum-likeness", "0.8"])
            #expect(await call.ending() == 0, "call \(round): \(call.errorText)")
            #expect(try Self.mode(record) == 0o600)
        }
        #expect(try Self.mode(site.path("kept")) == 0o700 && Self.mode(site.path("kept/here")) == 0o700)
        let kept = try FileManager.default.contentsOfDirectory(atPath: site.path("kept/here"))
        #expect(kept.count == 3)
        let said = try AudioFileReader.samples(ofFile: Site.speech)
        for name in kept {
            let path = site.path("kept/here/\(name)")
            #expect(try Self.mode(path) == 0o600)
            let heard = try AudioFileReader.samples(ofFile: path)
            let report = try #require(LikenessAnalysis().compare(sent: said, received: heard))
            #expect(
                report.unheardWindows == 0 && report.foundWindows == report.speechWindows && report.likeness > 0.8,
                "\(name): \(report)")
        }
    }

    @Test("What `handset run --capture` has written of a call, `handset replay` makes the same sound of")
    func capture() async throws {
        let site = try Site()
        defer { site.remove() }
        let running = try await RunningSite(site, arguments: ["--capture", site.path("call.pcap")])
        for _ in 1...2 { #expect(await (try running.call(["--play", Site.speech])).ending() == 0) }
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
        for name in ["call.pcap", "call-2.pcap"] {
            #expect(try Self.mode(site.path(name)) == 0o600)
            let replay = try HandsetProcess(["replay", site.path(name), "--json", "--output", site.path("heard.wav")])
            #expect(await replay.ending() == 0, "\(replay.errorText)")
            let report = replay.outputText
            #expect(report.contains(#""same_as_call": "yes""#) && report.contains(#""records_lost": 0"#), "\(report)")
            let heard = try AudioFileReader.samples(ofFile: site.path("heard.wav"))
            let said = try AudioFileReader.samples(ofFile: Site.speech)
            #expect(try #require(LikenessAnalysis().compare(sent: said, received: heard)).likeness > 0.8)
        }
        // It is replayed as the call went, whatever else is asked for.
        for (option, value) in [("--ssrc", "5"), ("--payload-type", "111"), ("--frame-ms", "10")] {
            let replay = try HandsetProcess(["replay", site.path("call.pcap"), option, value])
            #expect(
                await replay.ending() == 2 && replay.errorText.contains("leave out \(option)"), "\(replay.errorText)")
        }
    }

    @Test("A capture path that cannot be written is refused at the start, and one that fails later is only reported")
    func captureNowhere() async throws {
        let site = try Site()
        defer { site.remove() }
        #expect(symlink(site.path("other.pcap"), site.path("link.pcap")) == 0)
        for name in ["nowhere/call.pcap", "link.pcap"] {
            let run = try HandsetProcess([
                "run", "--config", site.deviceConfiguration, "--capture", site.path(name),
            ])
            #expect(await run.ending() == 9 && run.errorText.contains(name), "\(run.errorText)")
        }
        try FileManager.default.createDirectory(atPath: site.path("kept"), withIntermediateDirectories: false)
        let running = try await RunningSite(site, arguments: ["--capture", site.path("kept/call.pcap")])
        #expect(try FileManager.default.contentsOfDirectory(atPath: site.path("kept")).isEmpty)
        try FileManager.default.removeItem(atPath: site.path("kept"))
        #expect(await (try running.call(["--play", Site.speech])).ending() == 0)
        let line = try await running.device.line(containing: "A file of a call has failed")
        #expect(line.contains(#""level":"error""#) && line.contains("No such file or directory"))
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
    }

    @Test("A recording never overwrites the file that is played, under any name: the command ends with 9 first")
    func sameFile() async throws {
        let site = try Site()
        defer { site.remove() }
        let speech = site.path("speech.wav")
        try FileManager.default.copyItem(atPath: Site.speech, toPath: speech)
        let before = try Data(contentsOf: URL(fileURLWithPath: speech))
        #expect(link(speech, site.path("hard.wav")) == 0)
        #expect(symlink(speech, site.path("soft.wav")) == 0)
        // Nobody listens at this port: the files are looked at before.
        let server = ["--server", "http://localhost:9"]
        for (play, record) in [
            ("speech.wav", "speech.wav"), ("speech.wav", "hard.wav"), ("soft.wav", "speech.wav"),
            ("speech.wav", "soft.wav"),
        ] {
            for command in [["call"], ["loopback", "call"]] {
                let process = try HandsetProcess(
                    command + ["echo@localhost", "--play", site.path(play), "--record", site.path(record)] + server)
                #expect(await process.ending() == 9, "\(command) \(play) \(record): \(process.errorText)")
            }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: speech)) == before)
    }

    @Test("An earlier recording is kept until another replaces it: a call that cannot be placed leaves it unchanged")
    func earlierRecording() async throws {
        let site = try Site()
        defer { site.remove() }
        let record = site.path("back.wav")
        try FileManager.default.copyItem(atPath: Site.speech, toPath: record)
        let before = try Data(contentsOf: URL(fileURLWithPath: record))
        for command in [["call"], ["loopback", "call"]] {
            for name in [record, site.path("new.wav")] {
                let process = try HandsetProcess(
                    command + ["echo@localhost", "--record", name, "--server", "http://localhost:9"])
                #expect(await process.ending() == 5, "\(process.errorText)")
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: record)) == before)
            #expect(!FileManager.default.fileExists(atPath: site.path("new.wav")))
        }
    }

    @Test("A named pipe, a device and a folder are refused as files, and nothing waits for them")
    func noRegularFiles() async throws {
        let site = try Site()
        defer { site.remove() }
        #expect(mkfifo(site.path("pipe.wav"), 0o600) == 0)
        for (name, kind) in [(site.path("pipe.wav"), "named pipe"), ("/dev/zero", "device"), (site.path(""), "folder")]
        {
            let played = try HandsetProcess(["call", "echo@localhost:9", "--play", name])
            #expect(await played.ending() == 8)
            #expect(played.errorText.contains("it is a \(kind)"))
            let recorded = try HandsetProcess(["call", "echo@localhost:9", "--record", name])
            #expect(await recorded.ending() == 9)
            #expect(recorded.errorText.contains("it is a \(kind)"))
        }
        for file in ["pipe.wav", "/dev/zero", "."] {
            let other = try Site()
            defer { other.remove() }
            #expect(mkfifo(other.path("pipe.wav"), 0o600) == 0)
            try Self.configure(other, behaviour: "source: play\nfile: \(file)")
            let run = try HandsetProcess(["run", "--config", other.deviceConfiguration])
            #expect(await run.ending() == 3)
            #expect(run.errorText.contains("behaviour.file"))
            #expect(try await Self.check(other.deviceConfiguration).code == 3)
        }
    }

    @Test("A greeting that becomes a named pipe fails its call with an error in the log, and holds up nothing else")
    func greetingBecomesPipe() async throws {
        let site = try Site(isControlled: true)
        defer { site.remove() }
        let greeting = site.path("greeting.wav")
        try FileManager.default.copyItem(atPath: Site.speech, toPath: greeting)
        try Self.configure(site, behaviour: "source: play\nfile: greeting.wav")
        let running = try await RunningSite(site)
        try FileManager.default.removeItem(atPath: greeting)
        #expect(mkfifo(greeting, 0o600) == 0)
        let failed = try running.call(["--duration", "1", "--ttl", "10"])
        #expect(await failed.ending() != 0)
        let line = try await running.device.line(containing: "A call fails because of its file")
        #expect(line.contains(#""level":"error""#) && line.contains("it is a named pipe"))
        #expect(try await running.control("status").code == 0)
        try FileManager.default.removeItem(atPath: greeting)
        try FileManager.default.copyItem(atPath: Site.speech, toPath: greeting)
        let call = try running.call(["--play", Site.speech, "--minimum-likeness", "0.8"])
        #expect(await call.ending() == 0, "\(call.errorText)")
    }

    @Test("A recording beyond the limit on file sizes ends the recording with 9, and not the process with a signal")
    func fileSizeLimit() async throws {
        let site = try Site()
        defer { site.remove() }
        let call = try HandsetProcess(
            [
                "--fsize=20", try HandsetProcess.executable().path, "call", "echo@localhost:9", "--record",
                site.path("back.wav"),
            ], executable: "/usr/bin/prlimit")
        #expect(await call.ending() == 9, "\(call.errorText)")
        #expect(!FileManager.default.fileExists(atPath: site.path("back.wav")))
    }

    @Test("`check` opens what `run` opens, makes nothing, and names each problem; --offline leaves files out")
    func check() async throws {
        let site = try Site()
        defer { site.remove() }
        try Data("ID3 and more than that".utf8).write(to: URL(fileURLWithPath: site.path("song.mp3")))
        try Data("a file".utf8).write(to: URL(fileURLWithPath: site.path("file")))
        for (behaviour, problem) in [
            ("source: play\nfile: song.mp3", "behaviour.file: cannot play"),
            ("source: play\nfile: nothing.wav", "behaviour.file: \"\(site.path("nothing.wav"))\" cannot be read"),
            ("source: echo\nrecord_folder: file", "behaviour.record_folder"),
            ("source: echo\nrecord_folder: file/recordings", "behaviour.record_folder"),
        ] {
            let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
            try Self.configure(site, behaviour: behaviour)
            let (code, said) = try await Self.check(site.deviceConfiguration)
            #expect(code == 3 && said.contains(problem), "\(said)")
            let offline = try await Self.check("--offline", site.deviceConfiguration)
            #expect(offline.code == 0, "\(offline.text)")
            try text.write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        }
        try Self.configure(site, behaviour: "source: play\nfile: \(Site.speech)\nrecord_folder: kept")
        #expect(try await Self.check(site.deviceConfiguration).code == 0)
        #expect(!FileManager.default.fileExists(atPath: site.path("kept")))
    }

    @Test("`check` finds secrets, certificates, journals and sockets that are not usable, of devices and exchanges")
    func checkOthers() async throws {
        let site = try Site(isEncrypted: true, database: "kept/exchange.sqlite", isControlled: true)
        defer { site.remove() }
        let device = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        #expect(mkfifo(site.path("pipe"), 0o600) == 0)
        func problems(_ change: (String) -> String) async throws -> String {
            try change(device).write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
            let (code, text) = try await Self.check(site.deviceConfiguration)
            #expect(code == 3)
            let offline = try await Self.check("--offline", site.deviceConfiguration)
            #expect(offline.code == 0, "\(offline.text)")
            return text
        }
        #expect(try await problems { $0.replacing("app.secret", with: "pipe") }.contains("it is a named pipe"))
        #expect(
            try await problems { $0.replacing("trust_roots: certificate.pem", with: "trust_roots: pipe") }
                .contains("account.trust_roots"))
        #expect(
            try await problems { $0.replacing("trust_roots: certificate.pem", with: "trust_roots: key.pem") }
                .contains("account.trust_roots"))
        #expect(
            try await problems { $0.replacing("socket: control.sock", with: "socket: app.secret") }
                .contains("there is a file that is not a socket"))
        #expect(
            try await problems { $0 + "\ndevice:\n  call_records: nowhere/calls.jsonl\n" }
                .contains("device.call_records"))
        #expect(
            try await problems { $0.replacing("address: 127.0.0.1", with: "address: 192.0.2.77") }
                .contains("media.address"))

        let (code, text) = try await Self.check(site.exchangeConfiguration)
        #expect(code == 3 && text.contains("database"), "the database's folder is not there: \(text)")
        try FileManager.default.createDirectory(atPath: site.path("kept"), withIntermediateDirectories: false)
        #expect(try await Self.check(site.exchangeConfiguration).code == 0)
        try FileManager.default.removeItem(atPath: site.path("key.pem"))
        try FileManager.default.moveItem(atPath: site.path("certificate.pem"), toPath: site.path("key.pem"))
        try FileManager.default.copyItem(atPath: site.path("key.pem"), toPath: site.path("certificate.pem"))
        #expect(try await Self.check(site.exchangeConfiguration).code == 3, "a certificate is no key")
        #expect(try await Self.check("--offline", site.exchangeConfiguration).code == 0)
    }

    @Test("On a full disk a call is answered without its recording, which is an error in the log and leaves no file")
    func fullDisk() async throws {
        let site = try Site()
        defer { site.remove() }
        try Self.configure(site, behaviour: "source: echo\nrecord_folder: disk")
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await exchange.line(containing: #""Listening""#)
        let url = try #require(line.firstMatch(of: #/"url":"([^"]+)"/#))
        let server = url.1.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        let device = try Self.onSmallDisk(
            site, "run --config \(site.deviceConfiguration) --server \(server) --log-format json")
        try await device.line(containing: #""Ready""#)
        let disk = "/proc/\(device.identifier)/root\(site.path("disk"))"
        func call() async throws -> Int32 {
            let call = try HandsetProcess([
                "call", "echo@localhost", "--config", site.callerConfiguration, "--server", server, "--play",
                Site.speech, "--minimum-likeness", "0.8",
            ])
            return await call.ending()
        }
        // Room for less than a second of sound: it runs out in the middle of the call.
        try Self.fill(disk, leaving: 64 << 10)
        #expect(try await call() == 0)
        #expect(try await device.line(containing: "A file of a call has failed").contains(#""level":"error""#))
        try await device.line(containing: "A call has ended")
        let names = try FileManager.default.contentsOfDirectory(atPath: disk).filter { $0.hasSuffix(".wav") }
        let name = try #require(names.first)
        let kept = try Data(contentsOf: URL(fileURLWithPath: "\(disk)/\(name)"))
        let claimed = kept[40..<44].reversed().reduce(0) { $0 << 8 | Int($1) }
        #expect(claimed > 0 && claimed == kept.count - 44, "\(claimed) of \(kept.count)")
        // No room at all.
        try Self.fill(disk, leaving: 0)
        #expect(try await call() == 0)
        #expect(try await device.line(containing: "A file of a call has failed").contains("No space left on device"))
        try await device.line(containing: "A call has ended")
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk).filter { $0.hasSuffix(".wav") } == [name])
    }

    @Test("`handset call --record` on a full disk ends with 9 before the callee rings, and leaves no file")
    func fullDiskOfCaller() async throws {
        let site = try Site()
        defer { site.remove() }
        let record = site.path("disk/back.wav")
        let call = try Self.onSmallDisk(
            site, "call echo@localhost:9 --record \(record)",
            after: "dd if=/dev/zero of=\"$1/filler\" bs=1k 2>/dev/null; true", instead: "; ls \"$1\" >&2; exit $code")
        #expect(await call.ending() == 9)
        #expect(call.errorText.contains("No space left on device"))
        #expect(call.errorText.contains("filler") && !call.errorText.hasSuffix("back.wav"))
    }

    /// Starts `handset` with a disk of 1 MB at the site's folder `disk`, in a namespace that ends with it.
    private static func onSmallDisk(
        _ site: Site, _ arguments: String, after preparation: String = "true", instead: String? = nil
    ) throws -> HandsetProcess {
        let disk = site.path("disk")
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        let command = "\"$2\" \(arguments)"
        let script =
            "mount -t tmpfs -o size=1m disk \"$1\" && { \(preparation); } && "
            + (instead.map { "{ \(command); code=$? \($0); }" } ?? "exec \(command)")
        return try HandsetProcess(
            [
                "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", disk,
                try HandsetProcess.executable().path,
            ], executable: "/usr/bin/unshare")
    }

    /// Fills a disk but for `bytes`.
    private static func fill(_ disk: String, leaving bytes: Int) throws {
        let filler = "\(disk)/filler"
        if !FileManager.default.fileExists(atPath: filler) {
            #expect(FileManager.default.createFile(atPath: filler, contents: nil))
        }
        let handle = try #require(FileHandle(forWritingAtPath: filler))
        let start = try handle.seekToEnd()
        while (try? handle.write(contentsOf: Data(count: 4_096))) != nil {}
        let end = try handle.seekToEnd()
        if bytes > 0 { try handle.truncate(atOffset: max(start, end - UInt64(bytes))) }
        try handle.close()
    }
}
