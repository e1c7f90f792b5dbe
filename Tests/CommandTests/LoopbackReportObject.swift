import Foundation
import Testing

/// The JSON report of `handset loopback`.
struct LoopbackReportObject {
    let object: [String: Any]

    init(_ text: String) throws {
        object = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
    }

    init(file: String) throws { try self.init(String(contentsOfFile: file, encoding: .utf8)) }

    var timing: [String: Any] { object["timing"] as? [String: Any] ?? [:] }
    var delay: Double { (timing["delay_ms"] as? [String: Any])?["mean"] as? Double ?? -1 }
    var drift: Double { timing["drift_ppm"] as? Double ?? .nan }
    var events: Int { timing["events"] as? Int ?? -1 }
    var facts: [String: String] {
        let list = object["facts"] as? [[String: String]] ?? []
        return Dictionary(list.map { ($0["label"] ?? "", $0["value"] ?? "") }) { first, _ in first }
    }
    /// Delay over time: seconds captured, and least, mean and greatest delay in milliseconds.
    var delayTrack: [(at: Double, least: Double, mean: Double, greatest: Double)] {
        (timing["delay_track"] as? [[Double]] ?? []).filter { $0.count >= 4 }.map { ($0[0], $0[1], $0[2], $0[3]) }
    }
    /// Name and milliseconds of each part of the delay.
    var stages: [(name: String, milliseconds: Double)] {
        let list = object["stages"] as? [[String: Any]] ?? []
        return list.map { ($0["name"] as? String ?? "", $0["ms"] as? Double ?? -1) }
    }
}

/// Waits until `isThere`, for a minute at the most.
func eventually(_ what: String, _ isThere: () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while !isThere() {
        try #require(ContinuousClock.now < end, "not within a minute: \(what)")
        try await Task.sleep(for: .milliseconds(10))
    }
}
