internal import AudioKit
internal import BlockingWork
internal import CallAgent
internal import CallPrograms
internal import ControlWire
internal import Core
internal import Files
internal import Glibc
internal import FoundationEssentials
internal import Realtime
internal import Synchronization

/// The sound of an agent's calls: texts by a voice to files, and what the other side says by a recogniser to text.
///
/// All files are in one folder of the owner's, which goes with this.
final class MCPSound: Sendable {
    /// A command that takes longer is killed.
    private static let voiceTimeout = Duration.seconds(15)
    private static let recogniserTimeout = Duration.seconds(60)
    /// What a voice may write, as in a call flow: six minutes at 22.05 kHz.
    private static let mostVoiceBytes = 16 << 20
    private static let mostTextBytes = 65_536
    /// How often new sound is looked at. The device writes it four times a second.
    private static let poll = Duration.milliseconds(50)
    /// How long the device may take to write the last sound of a call that ended.
    private static let lastSound = Duration.milliseconds(500)

    private let configuration: MCPConfiguration
    private let folder = Mutex<String?>(nil)
    private let nextFile = Atomic<Int>(1)

    init(_ configuration: MCPConfiguration) { self.configuration = configuration }

    /// Whether there is a voice.
    var speaks: Bool { !configuration.voice.isEmpty }

    /// Whether there is a recogniser.
    var hears: Bool { !configuration.recogniser.isEmpty }

    /// Removes all files.
    func remove() {
        guard let path = folder.withLock({ $0 }) else { return }
        try? FileManager.default.removeItem(atPath: path)
    }

    /// A path in the folder that is used for the first time.
    func newPath(_ purpose: String) throws(CommandFailure) -> String {
        let number = nextFile.add(1, ordering: .relaxed).oldValue
        return try ownFolder() + "/\(purpose)-\(number).wav"
    }

    private func ownFolder() throws(CommandFailure) -> String {
        try folder.withLock { folder throws(CommandFailure) in
            if let folder { return folder }
            let parent = configuration.folder ?? Self.variable("TMPDIR") ?? "/tmp"
            if configuration.folder != nil { try? WritableFolder.make(parent) }
            var name = Array("\(parent)/handset-mcp-XXXXXX".utf8CString)
            // Makes the folder with mode 0700, under a name that is not taken.
            let made = unsafe name.withUnsafeMutableBufferPointer {
                unsafe $0.baseAddress.flatMap { unsafe mkdtemp($0) } != nil
            }
            guard made else {
                throw CommandFailure(
                    .failed,
                    "cannot make a folder in \(parent): \(SystemError.last). Give mcp.folder one that can be written to"
                )
            }
            let path = RegularFile.absolute(
                String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self))
            folder = path
            return path
        }
    }

    private static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    // MARK: - Saying

    /// What is missing without a voice.
    static let noVoice = MCPSoundEnd.failed(
        "no voice is configured. Give handset mcp a configuration (--config) in which mcp.say is a command that reads text and writes a "
            + "WAV, such as [espeak-ng, --stdin, --stdout]; or use play_file")

    /// Makes a file of a text. Blocks.
    func speak(_ text: String, cancelledIf isCancelled: () -> Bool) -> MCPSoundEnd {
        let voice = configuration.voice.first ?? ""
        do {
            let wav = try run(
                configuration.voice, Array("\(text)\n".utf8), Self.mostVoiceBytes, Self.voiceTimeout, isCancelled)
            let path = try newPath("say")
            let file = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
            try file.write(wav)
            let samples = try AudioFileReader.samples(ofFile: path)
            return .spoken(path: path, length: .milliseconds(samples.count * 1_000 / AudioFormat.sampleRate))
        } catch let error as AudioFileError {
            return .failed(
                "the voice \(voice) must write a WAV to its standard output: \(error.reason). Run it by hand to see what it writes"
            )
        } catch {
            return .failed("\(error)")
        }
    }

    // MARK: - Hearing

    /// What is missing without a recogniser.
    static let noRecogniser = MCPSoundEnd.failed(
        "no recogniser is configured. Give handset mcp a configuration (--config) in which mcp.hear is a command that reads a WAV on "
            + "standard input and writes text")

    /// Listens to the other side, and recognises what it says.
    func hear(
        _ ear: CallEar, most: Duration, pause: Duration, cancelledIf isCancelled: @escaping @Sendable () -> Bool
    ) async -> MCPSoundEnd {
        let deadline = MonotonicClock.now.advanced(by: most)
        do {
            guard let rate = try await rate(of: ear, until: deadline) else {
                return .heard(.init(text: "", seconds: 0, end: ear.hasEnded ? .callEnded : .timeout))
            }
            guard rate % 8_000 == 0, (8_000...48_000).contains(rate) else {
                return .failed("the device records at \(rate) Hz, which cannot be listened to")
            }
            try ear.trim(toSeconds: HeardTurn.mostSeconds)
            var turn = HeardTurn(rateHz: rate, pause: pause)
            let end = try await listen(to: ear, &turn, until: deadline, cancelledIf: isCancelled)
            if isCancelled() { return .failed("cancelled") }
            let seconds = turn.seconds
            guard let samples = turn.recognisable() else {
                return .heard(.init(text: "", seconds: seconds, end: end))
            }
            let text = try await BlockingThreads.programs.run { [self] in
                try recognise(samples, cancelledIf: isCancelled)
            }
            return .heard(.init(text: text, seconds: seconds, end: end))
        } catch {
            return .failed("\(error)")
        }
    }

    /// The rate of a recording, once its head is there; nil if it has none in time.
    private func rate(of ear: CallEar, until deadline: Instant) async throws -> Int? {
        while true {
            try ear.trim(toSeconds: HeardTurn.mostSeconds)
            if let rate = ear.rateHz { return rate }
            guard MonotonicClock.now < deadline, !ear.hasEnded else { return nil }
            try await Task.sleep(for: Self.poll)
        }
    }

    private func listen(
        to ear: CallEar, _ turn: inout HeardTurn, until deadline: Instant,
        cancelledIf isCancelled: @escaping @Sendable () -> Bool
    ) async throws -> MCPSoundEnd.Heard.End {
        var lastAt: Instant?
        while true {
            let isOver = ear.hasEnded
            let new = try await BlockingThreads.files.run { () throws(SystemError) in try ear.read() }
            turn.take(new)
            if !new.isEmpty { continue }
            if turn.isComplete { return .pause }
            let now = MonotonicClock.now
            if isOver {
                let last = lastAt ?? now.advanced(by: Self.lastSound)
                lastAt = last
                if now >= last { return .callEnded }
            }
            if now >= deadline || isCancelled() { return .timeout }
            try await Task.sleep(for: Self.poll)
        }
    }

    private func recognise(_ samples: [Int16], cancelledIf isCancelled: () -> Bool) throws -> String {
        let path = try newPath("heard")
        defer { try? FileManager.default.removeItem(atPath: path) }
        var writer = try WAVWriter(path: path, sampleRate: HeardTurn.recognisedHz)
        try writer.append(samples.span)
        try writer.flush()
        let wav = try OpenFile(path, O_RDONLY).readAll(maximumBytes: 64 << 20) ?? []
        let written = try run(
            configuration.recogniser, wav, Self.mostTextBytes, Self.recogniserTimeout, isCancelled)
        let text = String(decoding: written, as: UTF8.self).drop(while: \.isWhitespace)
        return String(text.prefix(upTo: text.lastIndex { !$0.isWhitespace }.map(text.index(after:)) ?? text.startIndex))
    }

    private func run(
        _ command: [String], _ input: [UInt8], _ most: Int, _ timeout: Duration, _ isCancelled: () -> Bool
    ) throws(CommandFailure) -> [UInt8] {
        do throws(FilterProgram.Failure) {
            return try FilterProgram.run(
                command, input: input, output: .kept(maximumBytes: most), within: timeout,
                withholding: configuration.withheldVariables, cancelledIf: isCancelled)
        } catch {
            let name = command.first ?? ""
            switch error {
            case .notStarted(let why): throw CommandFailure(.failed, "cannot start \"\(name)\": \(why)")
            case .failed(let how): throw CommandFailure(.failed, "\(name) failed: \(how). Run it by hand to see why")
            case .tooSlow:
                throw CommandFailure(.failed, "\(name) took longer than \(timeout.components.seconds) s, and was ended")
            case .tooMuch: throw CommandFailure(.failed, "\(name) wrote more than \(most) bytes, and was ended")
            }
        }
    }
}
