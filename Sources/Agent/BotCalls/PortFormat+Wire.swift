internal import AudioPort
internal import BotWire

extension PortFormat.Encoding {
    init(_ encoding: WireFormat.Encoding) {
        switch encoding {
        case .mulaw: self = .muLaw
        case .alaw: self = .aLaw
        case .linear: self = .linear
        }
    }
}
