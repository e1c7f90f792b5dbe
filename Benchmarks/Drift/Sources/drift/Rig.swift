@testable import AudioDevices
import CScriptedCard
import Foundation
import Realtime
import TestSupport
import Core

/// A worker and a device's loop on the real libasound, whose cards run in time that is made here: a loudspeaker's, on
/// whose cable the worker's impulses are looked for, and a microphone's, whose cable has impulses for the worker.
final class Rig {
    /// How late the worker's and the card's thread come at the most.
    static let workerJitterNanoseconds: Int64 = 1_000_000
    static let cardJitterNanoseconds: Int64 = 500_000
    private static let frameSamples = 960
    private static let second: Int64 = 1_000_000_000
    /// An impulse is looked for so long.
    private static let reach: Int64 = 200_000_000

    private let speaker: UnsafeMutablePointer<scripted_card>
    private let microphone: UnsafeMutablePointer<scripted_card>
    private var loop: CardLoop<ALSACard>
    private var line: SoundLine
    private var events: SPSCRing<CardEvent>.Consumer
    private var generator: SeededGenerator
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private var frameDue = Instant(nanoseconds: 1_003_700_000)
    private var nextFrame = Instant(nanoseconds: 1_003_700_000)
    private var nextWake: Instant?
    private var frame = [Int16](repeating: 0, count: frameSamples)
    private var playedAt: Instant?
    private var soundedAt: Instant?
    private var loudest: (value: Int16, at: Instant) = (0, Instant(nanoseconds: 0))
    /// What each direction's impulses have told since the last ``forget()``.
    private(set) var playback = Deviations()
    private(set) var capture = Deviations()

    /// - Parameter folder: Where the pages of the cards `speaker` and `microphone` are to be, as libasound's configuration
    ///   names them.
    init(folder: String, playbackPPM: Double, capturePPM: Double, seed: UInt64) throws {
        speaker = try Self.card(folder + "/speaker")
        microphone = try Self.card(folder + "/microphone")
        speaker.pointee.ppm.0 = playbackPPM
        microphone.pointee.ppm.1 = capturePPM
        generator = SeededGenerator(seed: seed)
        let pair = LinePair()
        let ring = SPSCRing<CardEvent>(capacity: 4_096)
        line = pair.worker
        events = ring.consumer
        let configuration = AudioDeviceConfiguration(playback: "speaker", capture: "microphone")
        loop = CardLoop(ALSACard(configuration), pair.device, events: ring.producer, eventSignal: nil)
        tellTime()
        loop.start(at: now)
    }

    deinit {
        scripted_card_unmap(speaker)
        scripted_card_unmap(microphone)
    }

    private static func card(_ path: String) throws -> UnsafeMutablePointer<scripted_card> {
        guard let card = scripted_card_create(path) else { throw CocoaError(.fileWriteUnknown) }
        card.pointee.rate = 48_000
        card.pointee.format = 2
        card.pointee.channels = 2
        card.pointee.least_period = 48
        card.pointee.most_period = 4_800
        card.pointee.most_buffer = 24_000
        return card
    }

    var statistics: CardStatistics { loop.statistics }
    /// Samples that the worker could not hand over, or did not get, since the last ``forget()``.
    var workerLosses: Int { allWorkerLosses - forgottenLosses }
    private var allWorkerLosses: Int { line.counters.playOverrun + line.counters.captureUnderrun }
    private var forgottenLosses = 0

    func forget() {
        forgottenLosses = allWorkerLosses
        playback = Deviations()
        capture = Deviations()
    }

    /// Lets time pass. The card's thread is woken by the interrupts of either card, and by its own deadlines.
    func run(seconds: Int) {
        let end = now.advanced(byNanoseconds: Int64(seconds) * Self.second)
        while true {
            if nextWake == nil { nextWake = nextInterrupt.map { late($0, by: Self.cardJitterNanoseconds) } }
            let wake = [nextWake, loop.nextDeadline].compactMap(\.self).min() ?? end
            let due = min(wake, nextFrame)
            guard due <= end else { break }
            now = max(now, due)
            tellTime()
            if nextFrame <= now { runFrame() }
            guard wake <= now else { continue }
            if let card = nextWake, card <= now { nextWake = nil }
            loop.step(at: now)
            while events.pop() != nil {}
        }
        now = end
    }

    private func tellTime() {
        speaker.pointee.now_ns = now.nanoseconds
        microphone.pointee.now_ns = now.nanoseconds
    }

    private var nextInterrupt: Instant? {
        [
            Self.interrupt(after: now, started: speaker.pointee.started_ns.0, ppm: speaker.pointee.ppm.0),
            Self.interrupt(after: now, started: microphone.pointee.started_ns.1, ppm: microphone.pointee.ppm.1),
        ].compactMap(\.self).min()
    }

    /// Periods are of 10 ms by the card's clock.
    private static func interrupt(after now: Instant, started: Int64, ppm: Double) -> Instant? {
        guard started > 0 else { return nil }
        let period = 1e7 / (1 + ppm * 1e-6)
        var number = (Double(now.nanoseconds - started) / period).rounded(.down) + 1
        while true {
            let time = started + Int64((number * period).rounded(.up)) + 1
            if time > now.nanoseconds { return Instant(nanoseconds: time) }
            number += 1
        }
    }

    private func late(_ time: Instant, by nanoseconds: Int64) -> Instant {
        time.advanced(byNanoseconds: Int64.random(in: 0...nanoseconds, using: &generator))
    }

    /// One frame of the worker's.
    private func runFrame() {
        let due = frameDue
        frameDue = due.advanced(byNanoseconds: Int64(Self.frameSamples) * Self.second / 48_000)
        nextFrame = late(frameDue, by: Self.workerJitterNanoseconds)
        for index in frame.indices { frame[index] = 0 }
        if due.nanoseconds / Self.second != frameDue.nanoseconds / Self.second { makeImpulses(at: due) }
        line.play(frame.span, at: now)
        var space = frame.mutableSpan
        line.capture(into: &space, at: now)
        listen(at: due)
        judge(at: due)
    }

    /// Once a second: one in the worker's frame, at a place of its own each time, and one in the air.
    private func makeImpulses(at due: Instant) {
        let index = Int.random(in: 0..<Self.frameSamples, using: &generator)
        frame[index] = 20_000
        playedAt = due.advanced(byNanoseconds: Int64(index) * 1_000_000 / 48)
        let tick = (due.nanoseconds + Self.reach) / 1_000 * 48 / 1_000 + Int64(index)
        soundedAt = Instant(nanoseconds: tick * 1_000_000 / 48)
        loudest.value = 0
        scripted_card_lay(microphone, tick, 20_000 << 16)
    }

    /// Looks for the impulse of the air in a frame.
    private func listen(at due: Instant) {
        for index in frame.indices where frame[index] > max(3_000, loudest.value) {
            loudest = (frame[index], due.advanced(byNanoseconds: Int64(index - Self.frameSamples) * 1_000_000 / 48))
        }
    }

    /// Once their time is over, what has become of both impulses.
    private func judge(at now: Instant) {
        if let soundedAt, soundedAt.nanoseconds(to: now) > Self.reach {
            self.soundedAt = nil
            let delay = loudest.value > 0 ? Double(soundedAt.nanoseconds(to: loudest.at)) * 1e-6 : nil
            capture.add(delay, statistics.capture)
        }
        if let playedAt, playedAt.nanoseconds(to: now) > Self.reach {
            self.playedAt = nil
            playback.add(Self.heard(playedAt, in: speaker), statistics.playback)
        }
    }

    /// How long after `time` the loudest sample was at the loudspeaker, in ms.
    private static func heard(_ time: Instant, in card: UnsafeMutablePointer<scripted_card>) -> Double? {
        let first = time.nanoseconds / 1_000 * 48 / 1_000
        var best: (value: Int32, tick: Int64) = (3_000 << 16, 0)
        for tick in first..<first + reach * 48 / 1_000_000 {
            let value = scripted_card_heard(card, tick)
            if value > best.value { best = (value, tick) }
        }
        guard best.tick > 0 else { return nil }
        return Double(best.tick) / 48 - Double(time.nanoseconds) * 1e-6
    }
}
