package import AudioPort
package import Realtime

/// A call's ends of the rings that join it with other threads: those of its files, and of a program.
package struct CallRings: ~Copyable {
    /// Filled from the file that is played.
    package var player: AudioRing.Consumer?
    /// Emptied into the recording: what the peer says.
    package var recorder: AudioRing.Producer?
    /// And what this side says, if that is recorded too.
    package var sentRecorder: AudioRing.Producer?
    /// Records the inputs of the playout, if the call is captured.
    package var capture: CaptureWriter?
    /// The worker's side of a program's port.
    package var line: PortLine?

    /// None.
    package init() {}
}
