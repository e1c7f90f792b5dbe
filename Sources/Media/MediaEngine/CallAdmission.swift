internal import AudioKit
internal import Realtime
internal import Core

/// Decides whether media workers have room for one more call; a pure function of their loads except for its hysteresis.
///
/// A call is admitted while the expected load, including that call and admitted calls that the measured load does not
/// contain yet, stays below a mark. Such a call is taken to be one of Opus, the costliest, because its codec is not agreed on yet. The
/// mark is higher by what encoders can still save with less effort: the worker lowers the effort within a quarter of a second, before a
/// frame is lost. After a refusal the mark is lower, so that a full device does not alternately accept and refuse calls.
struct CallAdmission {
    /// The mark while a lower complexity is left and all calls have Opus: the last step, to 0, saves a sixth
    /// (`Benchmarks/Instructions`).
    static let lowerableMark = 1.0
    /// The least that a lower complexity saves of the work of calls with Opus.
    private static let saving = 1.0 / 6
    /// By how much the mark falls after a refusal, until there is room again.
    static let hysteresis = 0.08

    /// Memory for one stream: 0.2 MB of a call over ICE and DTLS and 0.5 MB of a bot's call were measured; a jitter buffer
    /// that the peer fills, the peer's SSRCs and messages, and the rings of a recording are half a megabyte more.
    static let bytesOfStream = 1 << 20
    /// The process besides its calls, and the system.
    static let fixedBytes = 64 << 20
    /// There is room for this number of streams in any case.
    static let fewestStreams = 8

    /// Streams for which the memory has room: they may use half of what is beyond ``fixedBytes``.
    ///
    /// - Parameter memory: Bytes of memory that the machine has; nil if unknown.
    static func streams(in memory: Int?) -> Int {
        max(fewestStreams, ((memory ?? .max) - fixedBytes) / 2 / bytesOfStream)
    }

    /// The state of one worker.
    struct Worker {
        var load: WorkerLoad
        /// Calls that were placed on it and have not ended.
        var calls: Int
        /// Calls that it has memory for.
        var capacity: Int
    }

    /// Whether the last call that asked was refused.
    private(set) var isFull = false
    /// Streams in all that the memory has room for.
    private let limit: Int

    /// - Parameter limit: Streams in all that the memory has room for.
    init(limit: Int = .max) { self.limit = limit }

    /// Whether one more call fits.
    ///
    /// - Parameters:
    ///   - streams: What the call takes: one, or two if it has another leg.
    ///   - unplaced: Streams of calls that have been admitted and are on no worker yet.
    mutating func admits(_ workers: [Worker], streams: Int = 1, unplaced: Int) -> Bool {
        let room = min(
            workers.reduce(0) { $0 + Self.room(on: $1, isFull: isFull) }, limit - workers.reduce(0) { $0 + $1.calls })
        isFull = room < unplaced + streams
        return !isFull
    }

    /// Further calls that fit on a worker.
    static func room(on worker: Worker, isFull: Bool) -> Int {
        let load = worker.load
        let free = freeShare(load) - (isFull ? hysteresis : 0)
        let unmeasured = max(0, Double(worker.calls) - load.runningCalls)
        var room = free / max(load.costOfCall, 0.000_1) - unmeasured
        // A worker without calls that is not busy has room for one, even if the measured cost says otherwise.
        if worker.calls == 0, free > 0 { room = max(1, room) }
        return max(0, min(Int(max(0, min(room, 100_000))), worker.capacity - worker.calls))
    }

    /// The share that further calls, all of Opus, may take.
    private static func freeShare(_ load: WorkerLoad) -> Double {
        guard load.canLower else { return LoadGovernor.highMark - load.share }
        // Their own work can be lowered, too.
        let lowered = (LoadGovernor.highMark - load.share + saving * load.adjustableShare) / (1 - saving)
        return min(lowerableMark - load.share, lowered)
    }
}

/// Measures how fast this machine codes, to estimate how many calls it can carry before any call was measured.
enum CodecSpeed {
    /// Cost of a call besides coding, relative to coding: its jitter buffer, SRTP, system calls.
    private static let besidesCoding = 1.5
    private static let frames = 8

    /// The share of a core that a call takes which is encoded as the defaults say and protected against loss.
    ///
    /// Codes a few frames, which takes 2 ms on a desktop and 30 ms on a small board. The fastest frame counts, in
    /// CPU time, since others may have been interrupted.
    static func costOfCall() -> Double {
        var settings = EncoderSettings()
        settings.expectedLossPercent = 10
        do throws(OpusError) {
            var encoder = try OpusEncoder(settings: settings)
            var decoder = try OpusDecoder()
            let fastest = run(&encoder, &decoder, settings.frameDuration.samples)
            let period = Double(settings.frameDuration.rawValue) * 1e6
            return min(1, besidesCoding * Double(fastest) / period)
        } catch {
            // The first call will report what is wrong with libopus.
            return WorkerLoad().costOfCall
        }
    }

    /// Nanoseconds of the fastest frame.
    private static func run(_ encoder: inout OpusEncoder, _ decoder: inout OpusDecoder, _ count: Int) -> Int64 {
        var (samples, packet) = ([Int16](repeating: 0, count: count), [UInt8](repeating: 0, count: 1_275))
        var (fastest, noise) = (Int64.max, UInt32(1))
        for _ in 0..<frames {
            for index in samples.indices {
                noise = noise &* 1_664_525 &+ 1_013_904_223
                // A buzz of 200 Hz in noise: as much work as speech.
                samples[index] = Int16(truncatingIfNeeded: Int(noise >> 20)) + (index % 240 < 24 ? 8_000 : -800)
            }
            let start = MonotonicClock.threadCPUNanoseconds
            var room = packet.mutableSpan
            let length = encoder.encode(samples.span, into: &room)
            var sound = samples.mutableSpan
            if length > 0 { _ = unsafe decoder.decode(packet.span.bytes.extracting(0..<length), into: &sound) }
            fastest = min(fastest, MonotonicClock.threadCPUNanoseconds - start)
        }
        return fastest
    }
}
