@testable import AudioDevices
import Datagrams
@testable import MediaEngine
import OpusCodec
import Peering
import Playout
import Realtime
import Speakerphone
import Testing
import Timekeeping

/// A desk between calls without a network and a card of which the test holds the other end, in time that the test makes.
struct DeskBench: ~Copyable {
    private var desk: SoundDesk
    private var card: LineEnds
    private var calls = RouteTable(capacity: 8)
    private var frames: [UInt64: Int] = [:]
    private(set) var now = Instant(nanoseconds: 1_000_000_000)

    init(_ change: (inout CallSound) -> Void = { _ in }) throws {
        var sound = CallSound()
        sound.processing.echoCancellation = false
        sound.processing.noiseSuppression = false
        sound.processing.gainControl = false
        change(&sound)
        let pair = LinePair()
        desk = try SoundDesk(sound, line: pair.worker)
        card = pair.device
    }

    deinit {
        for index in 0..<calls.count {
            let call = calls[index]
            call.deinitialize(count: 1)
            call.deallocate()
        }
    }

    /// Adds a call on the card, with frames of so many milliseconds.
    mutating func add(_ number: UInt64, frameMilliseconds: Int = 20) throws -> MediaCallID {
        let remote = try #require(SocketAddress(host: "192.0.2.1", port: 5_000))
        var encoder = EncoderSettings()
        encoder.frameDuration = try #require(EncoderSettings.FrameDuration(rawValue: frameMilliseconds))
        let plan = MediaCallPlan(
            peer: PeerPlan(
                transport: .direct(to: remote), protection: .plain, remoteSSRC: nil, localSSRC: UInt32(number),
                canonicalName: "peer", sendPayloadType: 111, receivePayloadType: 111, randomSeed: number),
            encoder: encoder, playout: PlayoutConfiguration(), audio: AudioBehaviour(source: .card), start: .atOnce)
        let id = MediaCallID(rawValue: number)
        calls.append(try MediaCall.make(id: id, plan: plan, files: CallFiles(), at: now))
        frames[number] = frameMilliseconds * 48
        return id
    }

    mutating func obey(_ order: SoundOrder) { desk.obey(order) }

    func report(_ index: Int) -> SoundReport { desk.report(on: calls[index]) }

    /// Runs two turns, 20 ms.
    ///
    /// - Parameters:
    ///   - microphone: What the card captures, sample for sample.
    ///   - heard: What each call has for the loudspeaker, sample for sample.
    /// - Returns: The last sample that was played, and the last that each call was given.
    mutating func run(microphone: Int16, heard: [Int16]) -> (played: Int16, sent: [Int16]) {
        var sent = [Int16](repeating: -1, count: calls.count)
        var played: Int16 = 0
        desk.settle(calls, at: now)
        for turn in 0..<2 {
            feed(microphone)
            let due = desk.turn(at: now) ?? now
            desk.capture(for: calls, at: due)
            for index in 0..<calls.count {
                let length = frames[calls[index].pointee.id.rawValue] ?? 960
                guard length == 480 || turn == 1 else { continue }
                let received = [Int16](repeating: heard[index], count: length)
                var frame = [Int16](repeating: 0, count: length)
                var space = frame.mutableSpan
                calls[index].pointee.audio.exchange(received: received.span, sending: &space)
                sent[index] = frame[length - 1]
            }
            desk.play(from: calls, at: due)
            played = drain() ?? played
            now = now.advanced(byNanoseconds: 10_000_000)
        }
        return (played, sent)
    }

    private mutating func feed(_ value: Int16) {
        let samples = [Int16](repeating: value, count: 480)
        _ = card.capturing.write(samples.span)
    }

    private mutating func drain() -> Int16? {
        var samples = [Int16](repeating: 0, count: 480)
        var space = samples.mutableSpan
        let count = card.playing.read(into: &space)
        return count == 0 ? nil : samples[count - 1]
    }

    /// What the loudspeaker plays in `turns` turns without a call, each sample.
    mutating func tones(turns: Int) -> [Int16] {
        var all: [Int16] = []
        for _ in 0..<turns {
            desk.settle(calls, at: now)
            guard let due = desk.turn(at: now) else { break }
            desk.capture(for: calls, at: due)
            desk.play(from: calls, at: due)
            var samples = [Int16](repeating: 0, count: 480)
            var space = samples.mutableSpan
            let count = card.playing.read(into: &space)
            all += samples.prefix(count)
            now = now.advanced(byNanoseconds: 10_000_000)
        }
        return all
    }
}
