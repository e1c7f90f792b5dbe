internal import AudioDevices
internal import CallAgent
internal import ConfigReader
internal import ControlPlane
internal import ControlWire
internal import DeviceControl
internal import Glibc
internal import Core
internal import Files
internal import Realtime

/// Facts for finding a fault on this machine, without secrets: no token, key, hash or password, nothing of the files
/// that a configuration names, and of recorded calls neither sound nor who took part.
struct SupportBundle {
    /// The configurations of devices and exchanges on this machine.
    let configurations: [String]

    private static let journalLines = 1_000
    private static let callRecords = 200

    /// The files' names and texts.
    func files() async -> [(name: String, text: String)] {
        var files = [("about.txt", about()), ("sound.txt", sound()), ("network.txt", network())]
        for (path, name) in zip(configurations, Self.names(of: configurations)) {
            files.append(("\(name).configuration.txt", configuration(path)))
            if let unit = Self.unit(of: path) { files.append(("\(name).unit.txt", Self.unit(unit))) }
            guard let device = try? AccountsConfiguration.read(path: path, fileChecks: .none) else { continue }
            if let control = device.control { files.append(("\(name).status.txt", await status(control))) }
            for account in device.accounts {
                guard let records = account.configuration.device.callRecords else { continue }
                files.append(("\(name)\(account.name.map { ".\($0)" } ?? "").calls.txt", calls(records)))
            }
        }
        return files
    }

    private func about() -> String {
        let facts = HandsetVersion.report + ["time \(MonotonicClock.wallTime.rfc3339)"]
        return facts.joined(separator: "\n") + "\n\n"
            + SystemProgram.output(
                of: "uname -a; cat /etc/os-release; nproc; free -k; uptime; df -k /var/lib /run; ulimit -a; id; "
                    + "systemctl --version; timedatectl")
    }

    private func sound() -> String {
        let directory = CardDirectory()
        return SoundListing(cards: directory.cards, entries: SoundCatalogue.entries()).text + "\n"
    }

    private func network() -> String {
        let addresses = NetworkInterface.all().map { "\($0.name) \($0.address.host)" }
        return addresses.joined(separator: "\n") + "\n\n"
            + SystemProgram.output(of: "ip -brief link; ip route; ip -6 route; cat /etc/resolv.conf; ss -s")
    }

    /// What is wrong with the configuration, and what it says.
    private func configuration(_ path: String) -> String {
        let check = CheckResult(path, ConfigurationCheck(kinds: ConfigurationKind.all))
        var lines = check.problems.map(\.description)
        lines.append("\(path): \(check.isGood ? "good" : "not good") for `handset \(check.command ?? "nothing known")`")
        let kind = ConfigurationKind.all.first { $0.command == check.command }
        if let kind, kind.command != "user", let document = try? ConfigDocument.read(path: path, fileChecks: .none) {
            lines += [""] + document.outline(of: kind.keys)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The unit that runs a configuration by its path; nil for another path.
    static func unit(of path: String) -> String? {
        guard path.hasPrefix("/etc/handset/"), path.hasSuffix(".yaml") else { return nil }
        let name = String(path.dropFirst("/etc/handset/".count).dropLast(".yaml".count))
        if name == "exchange" { return "handset-exchange" }
        return SetupPlan.problem(withName: name) == nil ? "handset@\(name)" : nil
    }

    private static func unit(_ unit: String) -> String {
        // A unit's name has nothing that a shell would obey.
        withoutWords(
            SystemProgram.output(
                of:
                    "systemctl --no-pager --full status '\(unit)'; systemctl --no-pager show '\(unit)' -p NRestarts,Result,"
                    + "ExecMainStatus,LimitRTPRIO,LimitMEMLOCK,LimitNOFILE; "
                    + "journalctl --no-pager --lines=\(journalLines) --unit='\(unit)'"))
    }

    /// A journal without the words of programs in calls, which may be secret or private to callers.
    static func withoutWords(_ journal: String) -> String {
        let words = "\(Device.programWords)"
        return journal.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            guard let start = line.firstRange(of: words) else { return String(line) }
            return line[..<start.upperBound] + " (left out)"
        }.joined(separator: "\n")
    }

    private func status(_ control: ControlConfiguration) async -> String {
        do {
            let client = DeviceClient(
                ControlHTTPClient(path: ControlSocketPath.reachingHTTP(control), owner: .device))
            let (reply, line) = try await client.ask(ControlRequest(.status))
            // The list of calls has names.
            guard var status = reply.status else { return line + "\n" }
            status.calls = status.calls.map { call in
                var call = call
                call.peer = "(left out)"
                return call
            }
            return ControlText.status(status) + "\n"
        } catch {
            return "\(error)\n"
        }
    }

    private func calls(_ path: String) -> String {
        do {
            let records = try CallJournal.records(in: path).suffix(Self.callRecords)
            return records.map { call in
                let time = (call.began ?? call.ended).map { WallClock(unixMilliseconds: $0).rfc3339 } ?? "?"
                let words = [
                    time, call.direction, call.reason ?? "continues", call.cause.map { "cause=\($0)" },
                    call.establishedAfter.map { "established_ms=\($0)" },
                    call.setUpTime.map { "setup_ms=\($0)" }, call.duration.map { "duration_ms=\($0)" },
                ]
                return words.compactMap { $0 }.joined(separator: " ")
            }.joined(separator: "\n") + "\n"
        } catch {
            return "\(error)\n"
        }
    }

    /// A name in the archive for each configuration; files of the same name in different folders are numbered.
    static func names(of paths: [String]) -> [String] {
        var taken: Set<String> = []
        return paths.map { path in
            let name = plain(path)
            // No more names than paths are taken, so one of these is free.
            let free = ([name] + (2...max(2, paths.count + 1)).map { "\(name)-\($0)" }).first { !taken.contains($0) }
            taken.insert(free ?? name)
            return free ?? name
        }
    }

    /// A path as a part of a file's name.
    private static func plain(_ path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return String(
            name.prefix(60).map { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) ? $0 : "_" })
    }
}

/// Text files in one file, as tar(1) reads it (POSIX.1-1988, ustar). A value.
struct TarArchive: Sendable {
    private static let block = 512

    private(set) var bytes: [UInt8] = []

    /// Adds a file that only its owner may read.
    ///
    /// - Parameter name: Its path in the archive: plain characters, 99 at most; a longer one is cut.
    mutating func add(_ name: String, _ text: String, at time: WallClock) {
        let contents = Array(text.utf8)
        var header = [UInt8](repeating: 0, count: Self.block)
        func put(_ text: String, at offset: Int) {
            for (index, byte) in text.utf8.enumerated() { header[offset + index] = byte }
        }
        put(String(name.utf8.prefix(99)) ?? "file", at: 0)
        put("0000600", at: 100)
        put("0000000", at: 108)
        put("0000000", at: 116)
        put(Self.octal(contents.count, digits: 11), at: 124)
        put(Self.octal(Int(clamping: max(0, time.unixMilliseconds / 1_000)), digits: 11), at: 136)
        // The sum is made as if its own place held blanks.
        put("        ", at: 148)
        put("0", at: 156)
        put("ustar", at: 257)
        put("00", at: 263)
        put(Self.octal(header.reduce(0) { $0 + Int($1) }, digits: 6), at: 148)
        header[154] = 0
        bytes += header + contents + [UInt8](repeating: 0, count: -contents.count & (Self.block - 1))
    }

    /// Ends the archive.
    mutating func finish() { bytes += [UInt8](repeating: 0, count: 2 * Self.block) }

    private static func octal(_ number: Int, digits: Int) -> String {
        let text = String(number, radix: 8)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text.suffix(digits)
    }
}
