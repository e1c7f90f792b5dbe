import Foundation
import TestSupport
import Testing

/// Daemons as units of a service manager, which a test's socket stands for.
@Suite("Units of a service manager", .serialized, .timeLimit(.minutes(3)))
struct ServiceUnitTests {
    private let inbox: DatagramInbox
    private let environment: [String: String]

    init() throws {
        let name = "@handset-\(UUID().uuidString)"
        inbox = try DatagramInbox(name)
        environment = ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "150000"]
    }

    private func count(_ text: String) -> Int { inbox.texts.count { $0 == text } }

    @Test("An exchange notifies that it is ready, feeds the watchdog, and notifies that it stops")
    func exchange() async throws {
        let exchange = try HandsetProcess(["serve", "--listen", "127.0.0.1:0"], environment: environment)
        try await eventually { count("WATCHDOG=1") >= 3 }
        let first = try #require(inbox.texts.first)
        #expect(first.hasPrefix("READY=1\nSTATUS=Listening at http://127.0.0.1:"), "\(first)")
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0, "\(exchange.errorText)")
        #expect(inbox.texts.last == "STOPPING=1\nSTATUS=Closing client connections")
    }

    @Test(
        "A device is ready once it can be called, feeds the watchdog without and during a call, and notifies that it stops"
    )
    func device() async throws {
        let running = try await RunningSite(Site(behaviour: "card"), environment: environment)
        defer { running.site.remove() }
        #expect(inbox.texts.first == "STATUS=Logging in")
        try await eventually { count("READY=1\nSTATUS=Connected: can be called") == 1 && count("WATCHDOG=1") >= 3 }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        let before = count("WATCHDOG=1")
        try await eventually { count("WATCHDOG=1") >= before + 3 }
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(inbox.texts.last == "STOPPING=1\nSTATUS=Ending")
        #expect(!running.device.errorText.contains("watchdog"), "\(running.device.errorText)")
    }

    @Test("A device whose exchange is not there counts as started after five seconds, and logs in when it is there")
    func exchangeAbsent() async throws {
        let site = try Site()
        defer { site.remove() }
        let first = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await first.line(containing: #""Listening""#)
        let address = try #require(line.firstMatch(of: #/"url":"http:\/\/([^"]+)"/#)).1
        first.send(SIGTERM)
        #expect(await first.ending() == 0)
        let device = try HandsetProcess(
            ["run", "--config", site.deviceConfiguration, "--server", "http://\(address)"], environment: environment)
        try await eventually {
            inbox.texts.contains("READY=1\nSTATUS=Logging in: the service has not answered yet")
        }
        #expect(count("WATCHDOG=1") > 0)
        let second = try HandsetProcess(
            ["serve", "--config", site.exchangeConfiguration, "--listen", String(address), "--log-format", "json"])
        try await second.line(containing: #""Listening""#)
        try await eventually { inbox.texts.contains("READY=1\nSTATUS=Connected: can be called") }
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
    }

    @Test("With --drain a call continues after SIGTERM until it ends, and a new one is refused as busy")
    func drain() async throws {
        let running = try await RunningSite(Site(), arguments: ["--drain", "60"])
        defer { running.site.remove() }
        let call = try running.call(["--play", Site.speech, "--duration", "60", "--log-format", "json"])
        try await call.line(containing: "Media flows both ways")
        running.device.send(SIGTERM)
        try await running.device.line(containing: "Waiting for calls to end")
        let refused = try running.call(["--play", Site.speech])
        #expect(await refused.ending() == 10, "\(refused.errorText)")
        #expect(refused.outputText.contains("busy"), "\(refused.outputText)")
        call.send(SIGINT)
        #expect(await call.ending() == 130, "\(call.errorText)")
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(running.device.errorText.contains(#""reason":"completed""#), "\(running.device.errorText)")
    }

    @Test("When the time of --drain has passed, the remaining call is hung up and the device ends in order")
    func drainEnds() async throws {
        let running = try await RunningSite(Site(), arguments: ["--drain", "1"])
        defer { running.site.remove() }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(running.device.errorText.contains("Disconnecting"))
        _ = await call.ending()
    }

    @Test("A second device with the same stored login ends at once and says why; after the first one's end it starts")
    func twoDevices() async throws {
        let site = try Site()
        var text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        text = text.replacingOccurrences(of: "account:\n", with: "account:\n  session_file: session.json\n")
        try text.write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        defer { running.site.remove() }
        let arguments = ["run", "--config", site.deviceConfiguration, "--server", running.server]
        let second = try HandsetProcess(arguments)
        #expect(await second.ending() == 1)
        #expect(second.errorText.contains("session.json.lock"), "\(second.errorText)")
        #expect(second.errorText.contains("another process has locked it"), "\(second.errorText)")
        running.device.send(SIGKILL)
        #expect(await running.device.ending() == -SIGKILL)
        let third = try HandsetProcess(arguments)
        try await third.line(containing: "Ready")
    }

    private func change(_ running: RunningSite, _ text: String, to other: String) throws {
        let path = running.site.deviceConfiguration
        let before = try String(contentsOfFile: path, encoding: .utf8)
        try #require(before.contains(text))
        try before.replacingOccurrences(of: text, with: other).write(toFile: path, atomically: true, encoding: .utf8)
    }

    @Test(
        "On SIGHUP a device applies its file to new calls, and reports what waits; an established call continues. A wrong file is refused with file, line and key"
    )
    func reload() async throws {
        let running = try await RunningSite(Site(), environment: environment)
        defer { running.site.remove() }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        try change(running, "mode: auto", to: "mode: reject")
        running.device.send(SIGHUP)
        let taken = try await running.device.line(containing: "The configuration was read again")
        #expect(
            taken.contains(#""changed":"answer.mode""#) && taken.contains(#""at_next_start":"nothing""#), "\(taken)")
        try await eventually { inbox.texts.last == "READY=1\nSTATUS=Connected: can be called" }
        #expect(inbox.texts.contains { $0.hasPrefix("RELOADING=1\nMONOTONIC_USEC=") })
        let refused = try running.call(["--play", Site.speech])
        #expect(await refused.ending() == 10, "\(refused.errorText)")

        try change(running, "mode: reject", to: "mode: perhaps")
        running.device.send(SIGHUP)
        let wrong = try await running.device.line(containing: "The configuration is wrong")
        #expect(wrong.contains("device.yaml:") && wrong.contains("answer.mode"), "\(wrong)")

        try change(running, "mode: perhaps", to: "mode: auto\ndevice:\n  name: other")
        running.device.send(SIGHUP)
        let waits = try await running.device.line(containing: "The configuration was read again")
        #expect(waits.contains(#""at_next_start":"device""#), "\(waits)")

        try "echo-token-other".write(toFile: running.site.path("echo.secret"), atomically: true, encoding: .utf8)
        running.device.send(SIGHUP)
        let secret = try await running.device.line(containing: "The configuration was read again")
        #expect(secret.contains(#""at_next_start":"account.media_token_file, device""#), "\(secret)")
        let answered = try running.call(["--play", Site.speech])
        #expect(await answered.ending() == 0, "\(answered.errorText)")
        call.send(SIGINT)
        #expect(await call.ending() == 130, "\(call.errorText)")
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
    }

    @Test("A drained device refuses calls as busy and places none until it is undrained; an established call continues")
    func drainByControl() async throws {
        let running = try await RunningSite(Site(isControlled: true))
        defer { running.site.remove() }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        #expect(try await running.control("drain").code == 0)
        #expect(try await running.control("status").output.contains("draining"))
        let refused = try running.call(["--play", Site.speech])
        #expect(await refused.ending() == 10, "\(refused.errorText)")
        #expect(refused.outputText.contains("busy"), "\(refused.outputText)")
        let placed = try await running.control("call", "caller@localhost")
        #expect(placed.code == 1 && placed.error.contains("undrain"), "\(placed.error)")
        #expect(try await running.control("undrain").code == 0)
        let answered = try running.call(["--play", Site.speech])
        #expect(await answered.ending() == 0, "\(answered.errorText)")
        call.send(SIGINT)
        #expect(await call.ending() == 130, "\(call.errorText)")
    }

    /// While the file of this variable is there, the wall clock says 2001-01-01, or another time that is given in seconds since
    /// 1970, to a process that has loaded this.
    private static let wrongClock = """
        #define _GNU_SOURCE
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>
        static time_t second(time_t now) {
            const char *file = getenv("WRONG_CLOCK");
            const char *other = getenv("WRONG_CLOCK_SECONDS");
            return file && access(file, F_OK) == 0 ? (other ? atoll(other) : 978307200) : now;
        }
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int result = (int)syscall(SYS_clock_gettime, clock, time);
            if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec = second(time->tv_sec);
            return result;
        }
        int gettimeofday(struct timeval *restrict now, void *restrict zone) {
            (void)zone;
            struct timespec time;
            clock_gettime(CLOCK_REALTIME, &time);
            now->tv_sec = time.tv_sec;
            now->tv_usec = time.tv_nsec / 1000;
            return 0;
        }
        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """

    private static func compileWrongClock(in site: Site) throws -> String {
        try wrongClock.write(toFile: site.path("clock.c"), atomically: true, encoding: .utf8)
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["clang", "-shared", "-fPIC", "-o", site.path("clock.so"), site.path("clock.c")]
        try compiler.run()
        compiler.waitUntilExit()
        try #require(compiler.terminationStatus == 0)
        return site.path("clock.so")
    }

    @Test("A device whose clock is years off waits for the time, says so, and logs in when it is set")
    func clock() async throws {
        let site = try Site(isEncrypted: true)
        defer { site.remove() }
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await exchange.line(containing: #""Listening""#)
        let url = try #require(line.firstMatch(of: #/"url":"([^"]+)"/#))
        let mark = site.path("wrong-clock")
        try "".write(toFile: mark, atomically: true, encoding: .utf8)
        var environment = environment
        environment["LD_PRELOAD"] = try Self.compileWrongClock(in: site)
        environment["WRONG_CLOCK"] = mark
        let server = url.1.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        let device = try HandsetProcess(
            ["run", "--config", site.deviceConfiguration, "--server", server, "--log-format", "json"],
            environment: environment)
        try await device.line(containing: "waiting for the time")
        try await eventually {
            inbox.texts.contains { $0.hasPrefix("STATUS=Waiting for the time: the clock says 2001-") }
        }
        try FileManager.default.removeItem(atPath: mark)
        try await device.line(containing: #""Ready""#)
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
    }

    @Test("A device whose clock is years ahead removes neither recordings nor records of calls by their age")
    func clockAhead() async throws {
        let site = try Site()
        let (folder, records) = (site.path("recordings"), site.path("calls.jsonl"))
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data("x".utf8).write(to: URL(fileURLWithPath: folder + "/old.wav"))
        let record =
            #"{"call":"1","application":"tests","over":true,"ended":1790000000000,"direction":"incoming","peer":"bob"}"#
        try (record + "\n").write(toFile: records, atomically: true, encoding: .utf8)
        var text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        text = text.replacingOccurrences(
            of: "behaviour:\n", with: "behaviour:\n  record_folder: recordings\n  record_days: 1\n")
        text += "\ndevice:\n  call_records: calls.jsonl\n  call_record_days: 1\n"
        try text.write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        let mark = site.path("wrong-clock")
        try "".write(toFile: mark, atomically: true, encoding: .utf8)
        let running = try await RunningSite(
            site,
            environment: [
                "LD_PRELOAD": try Self.compileWrongClock(in: site), "WRONG_CLOCK": mark,
                "WRONG_CLOCK_SECONDS": "2208988800",
            ])
        defer { site.remove() }
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(running.device.errorText.contains(#""time":"2040-"#), "\(running.device.errorText)")
        #expect(FileManager.default.fileExists(atPath: folder + "/old.wav"))
        #expect(try String(contentsOfFile: records, encoding: .utf8).contains(#""peer":"bob""#))
    }
}
