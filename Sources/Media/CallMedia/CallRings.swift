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

/// What is to change in the audio of a call that runs. The control side allocates and frees it. The worker exchanges its rings
/// with those of the call, and returns it.
package struct AudioChange: ~Copyable {
    /// What changes.
    package enum Part: BitwiseCopyable, Sendable {
        /// A file that is played in place of the source, known by a number; without a ring, playing ends.
        case announcement(number: UInt64)
        /// The recording; without rings it ends.
        case recording
        /// The program that is heard in place of the source; without a line it leaves.
        case line
        /// Another call or a room that is heard in place of the source and of the program; without a line it leaves.
        case bridge
    }

    let part: Part
    /// Rings or a line are set, and the call gets them.
    let installs: Bool
    /// Both sides are recorded.
    let recordsSent: Bool
    /// Of an announcement.
    package var player: AudioRing.Consumer?
    /// Of an announcement: it is heard until another call is, and no longer, also if it begins in between.
    package var yieldsToBridge = false
    /// Of a recording.
    package var recorder: AudioRing.Producer?
    package var sentRecorder: AudioRing.Producer?
    /// Of a program, another call or a room.
    package var line: PortLine?
    /// Of another call: what takes part in this one is paused meanwhile, and hears nothing.
    package var suspendsLine = false
    /// Of another call: it is heard from its first sound on, and until then what was heard before.
    package var waitsForSound = false
    /// Of another call: the file that is played meanwhile is heard until the other call is, and no longer.
    package var outlivesAnnouncement = false

    /// Makes a change that removes what there is, or replaces it if `installs`.
    package init(_ part: Part, installs: Bool, recordsSent: Bool = false) {
        self.part = part
        self.installs = installs
        self.recordsSent = recordsSent
    }
}
