internal import AudioDevices
internal import Realtime
internal import AudioKit
internal import Core

// The mixer's samples, handed from part to part.
extension CardMixer {
    // What follows hands out views of samples, which unoptimised code counts as reference counting, and asks the
    // speakerphone's parts for numbers. It is not analysed; what it calls is.

    @_semantics("no_performance_analysis") @inline(__always)
    static func capture(
        _ frame: inout SampleBuffer, _ reference: inout SampleBuffer, from line: inout SoundLine, at due: Instant,
        afterBoundary wait: Int64?
    ) {
        var samples = frame.mutableSamples(tickSamples)
        var played = reference.mutableSamples(tickSamples)
        line.capture(into: &samples, reference: &played, at: due, afterBoundary: wait)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func process(
        _ frame: inout SampleBuffer, with processor: inout SpeakerphoneProcessor, _ reference: borrowing SampleBuffer
    ) {
        var samples = frame.mutableSamples(tickSamples)
        processor.process(&samples, playback: reference.samples(tickSamples))
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func finish(_ frame: inout SampleBuffer, _ volume: inout VolumeControl, _ meter: inout LevelDisplay) {
        var samples = frame.mutableSamples(tickSamples)
        volume.apply(&samples)
        meter.add(samples.span)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func add(_ frame: borrowing SampleBuffer, to mixer: inout CallMixer) {
        mixer.add(frame.samples(tickSamples))
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func add(
        _ tones: inout CallProgressTones, to mixer: inout CallMixer, through work: inout SampleBuffer, isInCall: Bool
    ) {
        var samples = work.mutableSamples(tickSamples)
        tones.fill(&samples, isInCall: isInCall)
        mixer.add(samples.span)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func mix(_ mixer: inout CallMixer, into frame: inout SampleBuffer) {
        var samples = frame.mutableSamples(tickSamples)
        mixer.mix(into: &samples)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func play(
        _ frame: borrowing SampleBuffer, on line: inout SoundLine, at due: Instant, skipping: Int
    ) {
        line.play(frame.samples(tickSamples), at: due, skipping: skipping)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func statistics(of processor: borrowing SpeakerphoneProcessor) -> SpeakerphoneStatistics {
        processor.statistics
    }
}
