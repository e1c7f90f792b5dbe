internal import AudioKit

/// What kind of machine a device runs on: the defaults that follow from it. Keys in a configuration override them.
public enum MachineProfile: String, CaseIterable, Sendable {
    /// A computer with power to spare.
    case desktop
    /// A small board, such as a Raspberry Pi: less effort in the encoder, and shorter echoes.
    case pi

    func apply(to media: inout MediaConfiguration) {
        switch self {
        case .desktop: break
        case .pi:
            // Encoding costs about a fifth less than at 5, and one worker does for all calls.
            media.encoder.complexity = 3
            media.workers = 1
        }
    }

    func apply(to audio: inout AudioConfiguration) {
        switch self {
        case .desktop: break
        case .pi: audio.echoTailMilliseconds = 64
        }
    }
}
