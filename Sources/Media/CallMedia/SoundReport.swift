public import AudioKit

/// How the card's sound is doing at the media worker's end. A plain value, copied on the media thread.
public struct SoundReport: BitwiseCopyable, Equatable, Sendable {
    /// Level of the microphone as a meter shows it, after all processing, in dBFS.
    public package(set) var microphoneDBFS = -100.0
    /// Its held peak.
    public package(set) var microphonePeakDBFS = -100.0
    /// Level of the loudspeaker as a meter shows it, in dBFS.
    public package(set) var loudspeakerDBFS = -100.0
    /// Its held peak.
    public package(set) var loudspeakerPeakDBFS = -100.0
    /// The microphone is muted.
    public package(set) var isMuted = false
    /// Volume of the loudspeaker, in dB.
    public package(set) var volumeDB = 0.0
    /// The speakerphone's echo and how much of it is taken out.
    public package(set) var echo: SpeakerphoneStatistics
    /// Samples by which the speakerphone's parts delay the microphone.
    public package(set) var processingSamples = 0
    /// Ticks of 10 ms.
    public package(set) var ticks = 0
    /// Ticks skipped because the machine stalled.
    public package(set) var ticksSkipped = 0
    /// Captured samples that were not there in time.
    public package(set) var captureUnderrunSamples = 0
    /// Samples to be played that the card's thread did not take in time.
    public package(set) var playOverrunSamples = 0
    /// The call is on hold at the card.
    public package(set) var isHeld = false
    /// Samples between the call's frames and the card's ticks that were missing, or came too late.
    public package(set) var callSamplesLost = 0

    @_noAllocation @_noLocks
    package init(echo: SpeakerphoneStatistics) { self.echo = echo }
}
