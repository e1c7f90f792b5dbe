import CScriptedCard
import Foundation
import Testing

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
        let library = try Self.plugin()
        let configuration = """
            </usr/share/alsa/alsa.conf>
            pcm_type.scripted_card { lib "\(library)" }
            pcm.card { type scripted_card control "\(folder)/control" hint { show on description "A card for tests" } }
            \(more)
            """
        try configuration.write(toFile: folder + "/asound.conf", atomically: true, encoding: .utf8)
        // Suites that use libasound run one after another.
        setenv("ALSA_CONFIG_PATH", folder + "/asound.conf", 1)
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
