import CScriptedCard
import Foundation
import Realtime
import TestSupport
import Testing
import Core

/// The tests' ALSA plug-in, built and made known to libasound in this process, and the page of memory that rules it.
public final class ScriptedCard {
    /// Where its page of memory and libasound's configuration are.
    public let folder: String
    private let page: UnsafeMutablePointer<scripted_card>

    /// - Parameter more: Further lines for libasound's configuration.
    public init(rate: UInt32 = 48_000, format: UInt32 = 2, channels: UInt32 = 2, more: String = "") throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("card-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        page = try #require(scripted_card_create(folder + "/control"))
        page.pointee.rate = rate
        page.pointee.format = format
        page.pointee.channels = channels
        page.pointee.least_period = rate / 1_000
        page.pointee.most_period = rate / 10
        page.pointee.most_buffer = rate / 2
        let configuration = """
            \(try Self.library())
            \(pcm("card"))
            \(more)
            """
        try configuration.write(toFile: folder + "/asound.conf", atomically: true, encoding: .utf8)
        // Suites that use libasound run one after another.
        setVariable("ALSA_CONFIG_PATH", to: folder + "/asound.conf")
    }

    deinit {
        scripted_card_unmap(page)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// What it does.
    public var control: scripted_card {
        _read { yield page.pointee }
        _modify { yield &page.pointee }
    }

    /// A PCM of another name on this card, as libasound's configuration has it.
    public func pcm(_ name: String) -> String {
        "pcm.\(name) { type scripted_card control \"\(folder)/control\" hint { show on description \"A card for tests\" } }"
    }

    /// The tick at which something began to be on the cable, if that was within the last two seconds and a half.
    public var firstSound: Int? {
        let now = Int64(Double(MonotonicClock.now.nanoseconds) * 48e-6)
        let first = (now - 120_000..<now).first { scripted_card_heard(page, $0) != 0 }
        return first.flatMap { $0 > now - 120_000 ? Int($0) : nil }
    }

    /// How many ticks later what was on this card's cable a second ago is on the cable of `other`, and the tick at which it
    /// was; nil if it is not heard there, at most `most` ticks later.
    public func lag(to other: ScriptedCard, most: Int32 = 14_400) -> (ticks: Int, tick: Int)? {
        let tick = Int64(Double(MonotonicClock.now.nanoseconds) * 48e-6) - 48_000
        var likeness = 0.0
        let lag = scripted_card_lag(page, other.page, tick, 1_920, most, &likeness)
        return likeness > 0.6 ? (Int(lag), Int(tick)) : nil
    }

    /// The lines that libasound's configuration begins with.
    static func library() throws -> String {
        """
        </usr/share/alsa/alsa.conf>
        pcm_type.scripted_card { lib "\(try plugin())" }
        """
    }

    /// Builds the plug-in, once for each change of it.
    private static func plugin() throws -> String {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let source = tests.appendingPathComponent("CScriptedCard/plugin/scripted_card.c").path
        let library = FileManager.default.temporaryDirectory
            .appendingPathComponent("libscripted_card-\(getpid()).so").path
        if FileManager.default.fileExists(atPath: library) { return library }
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["cc", "-O1", "-shared", "-fPIC", "-DPIC", "-o", library, source, "-lasound", "-lm"]
        try compiler.run()
        compiler.waitUntilExit()
        try #require(compiler.terminationStatus == 0, "the plug-in for libasound does not compile")
        return library
    }
}
