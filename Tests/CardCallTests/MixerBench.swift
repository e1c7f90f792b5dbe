import Core
import AudioKit
import Playout
import Realtime
import Testing
@testable import AudioDevices
@testable import CallMedia
@testable import MediaEngine

/// A mixer between calls without a network and a card of which the test holds the other end, in time that the test makes.
final class MixerBench {
    private let mixer: UnsafeMutablePointer<CardMixer>
    private var card: LineEnds
    private let calls: UnsafeMutablePointer<RouteTable>
    private var frames: [UInt64: Int] = [:]
    private(set) var now = Instant(nanoseconds: 1_000_000_000)

    init(_ change: (inout CallSound) -> Void = { _ in }) throws {
        var sound = CallSound()
        sound.processing.echoCancellation = false
        sound.processing.noiseSuppression = false
        sound.processing.gainControl = false
        change(&sound)
        let pair = LinePair()
        let made = try CardMixer(sound, line: pair.worker)
        mixer = .allocate(capacity: 1)
        mixer.initialize(to: made)
        calls = .allocate(capacity: 1)
        calls.initialize(to: RouteTable(capacity: 8))
        card = pair.device
    }

    deinit {
        for index in 0..<calls.pointee.count {
            let call = calls.pointee[index]
            call.deinitialize(count: 1)
            call.deallocate()
        }
        calls.deinitialize(count: 1)
        calls.deallocate()
        mixer.deinitialize(count: 1)
        mixer.deallocate()
    }

    /// Adds a call on the card, with frames of so many milliseconds.
    func add(_ number: UInt64, frameMilliseconds: Int = 20) throws -> MediaCallID {
        let remote = try #require(SocketAddress(host: "192.0.2.1", port: 5_000))
        var encoder = EncoderSettings()
        encoder.frameDuration = try #require(EncoderSettings.FrameDuration(rawValue: frameMilliseconds))
        let plan = MediaCallPlan(
            peer: PeerPlan(
                transport: .direct(to: remote), protection: .plain, remoteSSRC: nil, localSSRC: UInt32(number),
                canonicalName: "peer", sendPayloadType: 111, receivePayloadType: 111, randomSeed: number),
            encoder: encoder, playout: PlayoutConfiguration(), audio: AudioBehaviour(source: .card), start: .atOnce)
        let id = MediaCallID(rawValue: number)
        calls.pointee.append(try MediaCall.make(id: id, plan: plan, rings: CallRings(), at: now))
        frames[number] = frameMilliseconds * 48
        return id
    }

    func handle(_ order: CardCommand) { mixer.pointee.handle(order) }

    func report(_ index: Int) -> SoundReport { mixer.pointee.report(on: calls.pointee.onCard[index]) }

    /// Runs two ticks, 20 ms.
    ///
    /// - Parameters:
    ///   - microphone: What the card captures, sample for sample; nil if it captures nothing.
    ///   - heard: What each call has for the loudspeaker, sample for sample.
    /// - Returns: The last sample that was played, and the last that each call was given.
    func run(microphone: Int16?, heard: [Int16]) -> (played: Int16, sent: [Int16]) {
        var sent = [Int16](repeating: -1, count: calls.pointee.count)
        var played: Int16 = 0
        mixer.pointee.settle(calls.pointee.onCard, at: now)
        for tick in 0..<2 {
            if let microphone { feed(microphone) }
            mixer.pointee.capture(for: calls.pointee.onCard, at: now)
            for index in 0..<calls.pointee.count {
                bring(heard[index], index)
                sent[index] = take(index, tick: tick) ?? sent[index]
            }
            mixer.pointee.play(from: calls.pointee.onCard, at: now)
            played = drain().last ?? played
            now = now.advanced(byNanoseconds: 10_000_000)
        }
        return (played, sent)
    }

    /// What the call brings to the loudspeaker's tick: this value over and over.
    private func bring(_ value: Int16, _ index: Int) {
        let received = [Int16](repeating: value, count: 480)
        calls.pointee[index].pointee.audio.bringToCard(received.span)
    }

    /// The last sample of a call's frame, if one is due in this tick.
    private func take(_ index: Int, tick: Int) -> Int16? {
        let length = frames[calls.pointee[index].pointee.id.rawValue] ?? 960
        return length == 480 || tick == 1 ? frame(index, length).last : nil
    }

    private func frame(_ index: Int, _ length: Int) -> [Int16] {
        var frame = [Int16](repeating: 0, count: length)
        var space = frame.mutableSpan
        calls.pointee[index].pointee.audio.takeFromCard(into: &space)
        return frame
    }

    private func feed(_ value: Int16) {
        let samples = [Int16](repeating: value, count: 480)
        _ = card.capturing.write(samples.span)
    }

    private func drain() -> [Int16] {
        var samples = [Int16](repeating: 0, count: 480)
        let count = read(&samples)
        return Array(samples.prefix(count))
    }

    private func read(_ samples: inout [Int16]) -> Int {
        var space = samples.mutableSpan
        return card.playing.read(into: &space)
    }

    /// What the loudspeaker plays in `ticks` ticks without a call, each sample.
    func tones(ticks: Int) -> [Int16] {
        var all: [Int16] = []
        for _ in 0..<ticks { all += toneTick() }
        return all
    }

    private func toneTick() -> [Int16] {
        mixer.pointee.settle(calls.pointee.onCard, at: now)
        if mixer.pointee.nextTick == now {
            mixer.pointee.capture(for: calls.pointee.onCard, at: now)
            mixer.pointee.play(from: calls.pointee.onCard, at: now)
        }
        now = now.advanced(byNanoseconds: 10_000_000)
        return drain()
    }
}
