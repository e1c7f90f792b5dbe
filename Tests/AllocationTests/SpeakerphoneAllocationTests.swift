import CThreadCounters
import AudioKit
import Testing

/// Virtual time, for nothing here waits.
@Suite("Allocations of the speakerphone", .serialized)
struct SpeakerphoneAllocationTests {
    @Test("Echo, noise, gain, volume, tones, levels and mixing allocate nothing")
    func steadyState() throws {
        var phone = try SpeakerphoneProcessor()
        var tone = CallToneGenerator(CallToneSet(country: "DE").pattern(.ring))
        var volume = VolumeControl()
        var display = LevelDisplay()
        var mixer = CallMixer()
        var settings = SpeakerphoneSettings()
        var played = [Int16](repeating: 0, count: 480)
        var captured = played
        var before: Int64 = 0
        for frame in 0..<200 {
            // The first half is a warm-up: unoptimised code makes descriptions of its types when it first meets them.
            if frame == 100 { before = handset_test_allocations() }
            if frame % 10 == 0 {
                settings.noiseSuppression.toggle()
                phone.apply(settings)
                volume.set(gainDB: Double(-frame % 30))
            }
            var room = played.mutableSpan
            tone.fill(&room)
            volume.apply(&room)
            for index in 0..<480 { captured[index] = played[(index + 100) % 480] / 2 }
            var heard = captured.mutableSpan
            phone.process(&heard, playback: played.span)
            display.add(captured.span)
            mixer.begin(samples: 480)
            mixer.add(played.span)
            mixer.add(captured.span)
            var mixed = captured.mutableSpan
            mixer.mix(into: &mixed)
        }
        let allocations = handset_test_allocations() - before
        #expect(allocations == 0)
        #expect(display.peakDBFS > -60)
    }
}
