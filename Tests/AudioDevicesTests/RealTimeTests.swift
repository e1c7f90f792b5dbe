@testable import AudioDevices
import CScriptedCard
import CardSupport
import Foundation
import Realtime
import Synchronization
import TestSupport
import Testing
import Core

extension ALSATests {
    /// The device's own threads, in real time, each waited for and never for long.
    @Suite("In real time", .witnessed, .serialized)
    struct RealTimeTests {
        @Test("A device's thread runs a card, loses it, finds it again, and closes it on request")
        func life() throws {
            let card = try ScriptedCard()
            card.control.jitter_ns = 2_000_000
            let log = EventLog()
            let device = try AudioDevice(
                AudioDeviceConfiguration(playback: "card", capture: "card"), onEvent: { log.add($0) })
            defer { _ = device.stop() }
            #expect(log.wait { $0 == .running })
            card.control.absent_errno = ENODEV
            #expect(log.wait { $0 == .lost(errno: ENODEV) })
            card.control.absent_errno = 0
            #expect(log.wait { $0 == .running })
            #expect(
                log.wait {
                    guard case .report(let statistics) = $0 else { return false }
                    return statistics.isRunning && statistics.opens >= 2 && statistics.playback.cardFrames > 0
                })
            #expect(Self.takesLine(device) && !Self.takesLine(device))
            #expect(device.stop())
            #expect(log.wait { $0 == .stopped })
        }

        private static func takesLine(_ device: AudioDevice) -> Bool {
            if case .some = device.takeLine() { true } else { false }
        }

        @Test("A device without any card starts, reports why, and stops")
        func noCard() throws {
            let card = try ScriptedCard()
            card.control.absent_errno = ENODEV
            let log = EventLog()
            let device = try AudioDevice(
                AudioDeviceConfiguration(playback: "card", capture: "card"), onEvent: { log.add($0) })
            #expect(log.wait { $0 == .unavailable(CardFailure(direction: .playback, errno: ENODEV)) })
            #expect(device.stop())
        }

        @Test("A trial hears its tone through the card's cable, and says so of a card that gives only zeros")
        func trial() throws {
            let card = try ScriptedCard()
            var trial = SoundTrial(AudioDeviceConfiguration(playback: "card", capture: "card"))
            trial.seconds = 2
            let result = try trial.run()
            #expect(result.isWell && result.hearsItself, "\(result)")
            #expect(result.playback?.rate == 48_000)
            #expect(SoundCatalogue.entries().contains { $0.name == "card" && $0.abilities.count == 2 })

            trial.configuration.playback = nil
            let silent = try trial.run()
            #expect(!silent.isWell)
            #expect(silent.advice.contains { $0.contains("nothing but zeros") })

            card.control.absent_errno = EBUSY
            let busy = try trial.run()
            #expect(!busy.isWell)
            #expect(busy.advice.count == 1 && busy.advice[0].contains("Another program has it"))
        }

        @Test("A trial of two seconds of a sound server counts them from when sound flows, and finds that it works")
        func shortTrial() throws {
            let server = try PulseServer()
            let card = try ScriptedCard(more: server.pcms)
            defer { withExtendedLifetime((server, card)) {} }
            var trial = SoundTrial(AudioDeviceConfiguration(playback: "spk", capture: "spkmon"))
            trial.seconds = 2
            let result = try trial.run()
            #expect(result.isWell && result.hearsItself, "\(result)")
        }

        @Test("Through PulseAudio's plug-in a tone is played into a null sink and captured from its monitor")
        func pulse() throws {
            let server = try PulseServer()
            let card = try ScriptedCard(more: server.pcms)
            defer { withExtendedLifetime((server, card)) {} }
            let log = EventLog()
            let device = try AudioDevice(
                AudioDeviceConfiguration(playback: "spk", capture: "spkmon"), onEvent: { log.add($0) })
            defer { _ = device.stop() }
            #expect(log.wait { $0 == .running })
            guard var line = device.takeLine() else {
                Issue.record("a new device has no line")
                return
            }
            var heardFrames = 0
            var due = MonotonicClock.now
            let end = due.advanced(by: .seconds(20))
            var phase = 0.0
            // A worker's 20 ms frames, until half a second of the tone has come back.
            while heardFrames < 25, MonotonicClock.now < end {
                var frame = [Int16](repeating: 0, count: 960)
                for index in frame.indices {
                    frame[index] = Int16(12_000 * sin(phase))
                    phase += 2 * .pi * 440 / 48_000
                }
                line.play(frame.span, at: due)
                var space = frame.mutableSpan
                line.capture(into: &space, at: due)
                let energy = frame.reduce(0.0) { $0 + Double($1) * Double($1) } / 960
                if energy > 4_000 * 4_000 { heardFrames += 1 }
                due = due.advanced(by: .milliseconds(20))
                let left = MonotonicClock.now.nanoseconds(to: due)
                if left > 0 { usleep(UInt32(left / 1_000)) }
            }
            #expect(heardFrames >= 25, "\(device.statistics)")
            #expect(device.stop())
        }
    }
}

/// What a device has told, to wait for.
final class EventLog: Sendable {
    private let events = Mutex<[CardEvent]>([])
    private let signal = DispatchSemaphore(value: 0)

    func add(_ event: CardEvent) {
        events.withLock { $0.append(event) }
        signal.signal()
    }

    /// Waits for an event, and forgets those before it.
    ///
    /// - Returns: False if it does not come within 20 s.
    func wait(for isWanted: (CardEvent) -> Bool) -> Bool {
        let deadline = DispatchTime.now() + 20
        while true {
            let isThere = events.withLock { events in
                guard let index = events.firstIndex(where: isWanted) else { return false }
                events.removeFirst(index + 1)
                return true
            }
            if isThere { return true }
            if signal.wait(timeout: deadline) == .timedOut { return false }
        }
    }
}
