import CallControl
import Core

/// Devices that lose one server at the same instant, and come back to it by their backoff, in virtual time.
///
/// The server is away for `outage`, during which attempts are refused at once. Then it takes one after the other; an
/// attempt that has waited for 10 s is given up by its device, and costs the server as much as one that succeeds.
struct Crowd {
    let devices: Int
    /// In seconds.
    let outage: Double
    let sessionsPerSecond: Double

    struct Result: CustomStringConvertible {
        /// When each device was back, in seconds after the loss, rising.
        fileprivate(set) var back: [Double] = []
        fileprivate(set) var attempts = 0
        /// The most attempts in a tenth of a second at the server that is back, for a second.
        fileprivate(set) var peakPerSecond = 0

        var attemptsEach: Double { Double(attempts) / Double(back.count) }
        func time(of share: Double) -> Double { back[min(back.count - 1, Int(share * Double(back.count)))] }
        var description: String {
            "99.9 % after \(time(of: 0.999)) s, all after \(time(of: 1)) s, \(attemptsEach) attempts each, "
                + "\(peakPerSecond) a second at most"
        }
    }

    private static let patience = 10.0
    /// Attempts are sorted into such steps, in seconds; in one of them they are in any order.
    private static let step = 0.001

    func run() -> Result {
        var result = Result()
        var agenda: [[(device: Int, at: Double)]] = []
        var backoffs: [ReconnectBackoff] = []
        func plan(_ device: Int, after failure: Double, isBurden: Bool) {
            let now = Instant.zero.advanced(by: .seconds(failure))
            let at = failure + backoffs[device].next(at: now, isBurden: isBurden).seconds
            let slot = Int(at / Self.step)
            while agenda.count <= slot { agenda.append([]) }
            agenda[slot].append((device, at))
        }
        for device in 0..<devices {
            backoffs.append(ReconnectBackoff(seed: UInt64(device)))
            plan(device, after: 0, isBurden: false)
        }
        var free = outage
        var perTenth: [Int: Int] = [:]
        var slot = 0
        while slot < agenda.count {
            // A wait may end in the step that it begins in.
            var next = 0
            while next < agenda[slot].count {
                let (device, at) = agenda[slot][next]
                next += 1
                result.attempts += 1
                guard at >= outage else {
                    plan(device, after: at, isBurden: false)
                    continue
                }
                perTenth[Int(at * 10), default: 0] += 1
                let start = max(free, at)
                free = start + 1 / sessionsPerSecond
                if start - at < Self.patience {
                    result.back.append(free)
                } else {
                    plan(device, after: at + Self.patience, isBurden: true)
                }
            }
            agenda[slot] = []
            slot += 1
        }
        result.peakPerSecond = 10 * (perTenth.values.max() ?? 0)
        return result
    }
}
