@testable import CallMedia
@testable import MediaEngine
import AudioKit
import Testing

/// What the mixer makes of several calls, to the sample, in virtual time.
struct CardMixerTests {
    @Test("A call sends what the microphone captures, and plays what it hears, in the very tick", arguments: [10, 20])
    func oneCall(frameMilliseconds: Int) throws {
        let bench = try MixerBench()
        _ = try bench.add(1, frameMilliseconds: frameMilliseconds)
        let first = bench.run(microphone: 1_000, heard: [300])
        #expect(first.sent == [1_000] && first.played == 300)
        let second = bench.run(microphone: 2_000, heard: [400])
        #expect(second.sent == [2_000])
        #expect(bench.report(0).callSamplesLost == 0)
    }

    @Test("On hold, a call hears silence and is not heard, and gets the card when the other call has ended")
    func hold() throws {
        let bench = try MixerBench { $0.sharing = .hold }
        let first = try bench.add(1)
        let second = try bench.add(2)
        bench.handle(.focus(second))
        // What the first had before is over by the second frame.
        _ = bench.run(microphone: 1_000, heard: [300, 70])
        var now = bench.run(microphone: 1_000, heard: [300, 70])
        #expect(now.played == 70 && now.sent == [0, 1_000])
        #expect(bench.report(0).isHeld && !bench.report(1).isHeld)
        bench.handle(.focus(first))
        _ = bench.run(microphone: 1_000, heard: [300, 70])
        now = bench.run(microphone: 1_000, heard: [300, 70])
        #expect(now.played == 300 && now.sent == [1_000, 0])
        #expect(bench.report(0).callSamplesLost == 0)
    }

    @Test("Mixed, all calls are heard together, and each hears the microphone and the others, but not itself")
    func mix() throws {
        let bench = try MixerBench { $0.sharing = .mix }
        for number in UInt64(1)...3 { _ = try bench.add(number) }
        _ = bench.run(microphone: 1_000, heard: [10, 200, 3_000])
        let now = bench.run(microphone: 1_000, heard: [10, 200, 3_000])
        #expect(now.played == 3_210)
        #expect(now.sent == [4_200, 4_010, 1_210])
    }

    @Test("Calls with frames of different lengths share the card")
    func lengths() throws {
        let bench = try MixerBench { $0.sharing = .mix }
        _ = try bench.add(1, frameMilliseconds: 10)
        _ = try bench.add(2, frameMilliseconds: 20)
        _ = bench.run(microphone: 1_000, heard: [10, 200])
        let now = bench.run(microphone: 1_000, heard: [10, 200])
        #expect(now.played == 210 && now.sent == [1_200, 1_010])
    }

    @Test("A muted microphone sends silence, and the loudspeaker's volume is what was asked for")
    func muteAndVolume() throws {
        let bench = try MixerBench { $0.isMuted = true }
        _ = try bench.add(1)
        // Changes take 20 ms.
        _ = bench.run(microphone: 1_000, heard: [1_000])
        bench.handle(.volume(dB: -20))
        _ = bench.run(microphone: 1_000, heard: [1_000])
        var now = bench.run(microphone: 1_000, heard: [1_000])
        #expect(now.sent == [0] && now.played == 100)
        #expect(bench.report(0).isMuted && bench.report(0).volumeDB == -20)
        bench.handle(.mute(false))
        _ = bench.run(microphone: 1_000, heard: [1_000])
        now = bench.run(microphone: 1_000, heard: [1_000])
        #expect(now.sent == [1_000])
    }

    @Test(
        "A call counts what the card lacked while the call had it, and not what the card lacked before or for another call"
    )
    func gaps() throws {
        let bench = try MixerBench { $0.sharing = .hold }
        let first = try bench.add(1)
        bench.handle(.focus(first))
        for _ in 0..<10 { _ = bench.run(microphone: nil, heard: [300]) }
        #expect(bench.report(0).captureUnderrunSamples == 10 * 960)
        let second = try bench.add(2)
        _ = bench.run(microphone: nil, heard: [300, 70])
        bench.handle(.focus(second))
        _ = bench.run(microphone: 1_000, heard: [300, 70])
        #expect(bench.report(0).captureUnderrunSamples == 11 * 960 && bench.report(1).captureUnderrunSamples == 0)
        _ = bench.run(microphone: nil, heard: [300, 70])
        #expect(bench.report(0).captureUnderrunSamples == 11 * 960 && bench.report(1).captureUnderrunSamples == 960)
    }

    @Test("What the microphone gives is looked at before all processing, muted or not, and for each call by itself")
    func captured() throws {
        let bench = try MixerBench {
            $0.isMuted = true
            $0.sharing = .mix
        }
        _ = try bench.add(1)
        _ = bench.run(microphone: -40, heard: [0])
        #expect(bench.report(0).captured.spread == 0 && bench.report(0).captured.peak == 40)
        _ = try bench.add(2)
        let muted = bench.run(microphone: -37, heard: [0, 0])
        #expect(muted.sent == [0, 0])
        #expect(bench.report(0).captured.spread == 3 && bench.report(1).captured.spread == 0)
        #expect(bench.report(0).captured.samples == 1_920 && bench.report(1).captured.samples == 960)
    }

    @Test("A tone sounds without a call, low beneath one, and the mixer rests when there is neither")
    func tones() throws {
        let bench = try MixerBench()
        #expect(bench.tones(ticks: 5).isEmpty)
        bench.handle(.tone(.busy))
        let loudest = bench.tones(ticks: 40).map(abs).max() ?? 0
        #expect(loudest > 3_000)
        bench.handle(.tone(nil))
        #expect(bench.tones(ticks: 5).isEmpty)
        _ = try bench.add(1)
        bench.handle(.tone(.busy))
        let beneath = (0..<20).map { _ in abs(bench.run(microphone: 0, heard: [0]).played) }.max() ?? 0
        #expect(beneath > 0 && beneath < loudest / 4)
    }

    @Test("Each part of the speakerphone can be switched off, and then leaves sound as it is")
    func processing() throws {
        let bench = try MixerBench { $0.processing = SpeakerphoneSettings() }
        _ = try bench.add(1)
        var isChanged = false
        for _ in 0..<20 { isChanged = bench.run(microphone: 1_000, heard: [0]).sent != [1_000] || isChanged }
        #expect(isChanged)
        var off = SpeakerphoneSettings()
        off.echoCancellation = false
        off.noiseSuppression = false
        off.gainControl = false
        bench.handle(.process(off))
        #expect(bench.run(microphone: 1_000, heard: [0]).sent == [1_000])
    }
}
