import Foundation
import Playout

/// What the command line asks for.
struct Options {
    var json = false
    var wavs: String?
    var speech = "/usr/share/sounds/alsa"
    var seconds = 32
    /// Silence put in after each recording. The recordings themselves leave 0.2 s and less.
    var pauseMilliseconds = 0
    /// The pulls begin with the first packet, as those of a call without a sound card do; else at any time.
    var startsWithPeer = false
    var seeds: [UInt64] = [1, 2, 3, 4]
    var profiles: [String] = []
    /// What the constant delay adds, in milliseconds; nil for what the buffer added.
    var constantMilliseconds: Int?
    var pullSamples = 960
    var configuration = PlayoutConfiguration()

    static let usage = """
        jitter [--json] [--wavs DIRECTORY] [--speech DIRECTORY] [--seconds N] [--seeds FIRST-LAST]
               [--profiles NAME,NAME…] [--pull-ms 10|20|40|60] [--pause-ms N] [--starts-with-peer]
               [--constant MS]
               [--late-cost MS] [--memory MS] [--initial MS]
        """

    init(_ arguments: some Sequence<String>) {
        var rest = Array(arguments)[...]
        while let option = rest.popFirst() {
            switch option {
            case "--json": json = true
            case "--wavs": wavs = rest.popFirst()
            case "--speech": speech = rest.popFirst() ?? speech
            case "--seconds": seconds = Self.number(rest.popFirst())
            case "--pause-ms": pauseMilliseconds = Self.number(rest.popFirst())
            case "--starts-with-peer": startsWithPeer = true
            case "--seeds":
                let ends = (rest.popFirst() ?? "").split(separator: "-").compactMap { UInt64($0) }
                guard let first = ends.first, let last = ends.last, first <= last else { Self.fail() }
                seeds = Array(first...last)
            case "--profiles": profiles = (rest.popFirst() ?? "").split(separator: ",").map(String.init)
            case "--pull-ms": pullSamples = Self.number(rest.popFirst()) * 48
            case "--constant": constantMilliseconds = Self.number(rest.popFirst())
            case "--late-cost": configuration.millisecondsPerLatePercent = Self.number(rest.popFirst())
            case "--initial": configuration.initialDelayMilliseconds = Self.number(rest.popFirst())
            case "--memory": configuration.memoryMilliseconds = Self.number(rest.popFirst())
            default: Self.fail()
            }
        }
    }

    private static func number(_ text: String?) -> Int {
        guard let text, let number = Int(text), number > 0 else { fail() }
        return number
    }

    private static func fail() -> Never {
        FileHandle.standardError.write(Data((usage + "\n").utf8))
        exit(2)
    }
}
