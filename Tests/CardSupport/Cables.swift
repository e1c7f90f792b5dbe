import Foundation

/// Cables between sound cards for calls that are measured from outside: what is played into one end of a cable is captured
/// at the other. Each is a scripted card, under a name for either end.
public final class Cables {
    /// The cables, in the order of their names.
    public let cables: [ScriptedCard]
    /// For a process that is to find them.
    public let environment: [String: String]
    private let folder: String

    /// - Parameters:
    ///   - ends: The names of each cable's ends: the one that is played on, and the one that is captured from.
    ///   - more: Further lines for libasound's configuration.
    public init(_ ends: [(into: String, outOf: String)], more: String = "") throws {
        cables = try ends.map { _ in try ScriptedCard() }
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("cables-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let pcms = zip(cables, ends).flatMap { cable, ends in [cable.pcm(ends.into), cable.pcm(ends.outOf)] }
        let configuration = ([try ScriptedCard.library()] + pcms + [more, ""]).joined(separator: "\n")
        try configuration.write(toFile: folder + "/asound.conf", atomically: true, encoding: .utf8)
        environment = ["ALSA_CONFIG_PATH": folder + "/asound.conf"]
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// A file in the cables' folder.
    public func path(_ name: String) -> String { "\(folder)/\(name)" }
}
