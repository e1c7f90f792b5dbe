import Foundation
import Glibc
import Synchronization
import Testing

/// A SIP server and telephone in one, as far as a device needs it: it grants registrations, calls, and sends sound in µ-law.
final class SIPPeer: Sendable {
    private struct State {
        /// Where the device is.
        var device: sockaddr_in?
        var contact = ""
        var registrations = 0
        var calls: [String: Call] = [:]
        /// What was dialled in the newest call.
        var dialled = "desk"
        var isOver = false
    }

    private struct Call {
        /// The answer's, with its tag.
        var to: String
        /// Where the device takes sound.
        var media: sockaddr_in
        /// Packets that came from there.
        var received = 0
    }

    /// Where it listens.
    let port: UInt16
    private let signaling: Int32
    private let media: Int32
    private let mediaPort: UInt16
    private let state = Mutex(State())

    init() throws {
        (signaling, port) = try Self.open()
        (media, mediaPort) = try Self.open()
        Thread.detachNewThread { [self] in hear() }
        Thread.detachNewThread { [self] in speak() }
    }

    deinit {
        close(signaling)
        close(media)
    }

    /// Lets its threads go.
    func end() { state.withLock { $0.isOver = true } }

    var registrations: Int { state.withLock { $0.registrations } }

    /// Whether a call's sound comes from the device.
    func isHeard(_ call: String) -> Bool { state.withLock { ($0.calls[call]?.received ?? 0) > 10 } }

    /// Calls the device.
    ///
    /// - Parameter user: What was dialled.
    func call(_ call: String, to user: String = "desk") throws {
        let (device, contact) = state.withLock { state in
            state.dialled = user
            return (state.device, state.contact)
        }
        let target = try #require(device)
        let offer =
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio \(mediaPort) RTP/AVP 0\r\n"
            + "a=rtpmap:0 PCMU/8000\r\n"
        send(
            "INVITE \(contact) SIP/2.0\r\n\(headers(call, "INVITE", to: ""))Contact: <sip:bob@127.0.0.1:\(port)>\r\n"
                + "Content-Type: application/sdp\r\nContent-Length: \(offer.utf8.count)\r\n\r\n\(offer)", to: target)
    }

    private func headers(_ call: String, _ method: String, to tag: String) -> String {
        "Via: SIP/2.0/UDP 127.0.0.1:\(port);rport;branch=z9hG4bK\(call)\(method)\r\nMax-Forwards: 70\r\n"
            + "From: <sip:bob@127.0.0.1>;tag=\(call)\r\nTo: <sip:\(state.withLock { $0.dialled })@127.0.0.1>\(tag)\r\nCall-ID: \(call)\r\n"
            + "CSeq: 1 \(method)\r\n"
    }

    private func hear() {
        while !state.withLock({ $0.isOver }) {
            guard let (text, from) = Self.receive(signaling) else { continue }
            let lines = text.components(separatedBy: "\r\n")
            func headers(_ names: String...) -> [String] {
                lines.filter { line in names.contains { line.lowercased().hasPrefix($0 + ":") } }
            }
            func value(_ name: String) -> String {
                headers(name).first.map {
                    String($0.drop { $0 != ":" }.dropFirst()).trimmingCharacters(in: .whitespaces)
                } ?? ""
            }
            let first = lines.first ?? ""
            if first.hasPrefix("REGISTER"), let uri = value("contact").firstMatch(of: #/<([^>]+)>/#)?.1 {
                state.withLock { state in
                    state.device = from
                    state.contact = String(uri)
                    state.registrations += 1
                }
            }
            if first.hasPrefix("SIP/2.0 200"), value("cseq").hasSuffix("INVITE") {
                answered(value("call-id"), to: value("to"), lines, from)
            } else if !first.hasPrefix("SIP/2.0"), !first.hasPrefix("ACK") {
                let echoed = headers("via", "from", "to", "call-id", "cseq", "contact")
                    .map { $0.lowercased().hasPrefix("to:") && !$0.contains("tag=") ? $0 + ";tag=server" : $0 }
                send(
                    "SIP/2.0 200 OK\r\n\(echoed.joined(separator: "\r\n"))\r\nExpires: 600\r\nContent-Length: 0\r\n\r\n",
                    to: from)
            }
        }
    }

    private func answered(_ call: String, to: String, _ lines: [String], _ from: sockaddr_in) {
        let port = lines.first { $0.hasPrefix("m=audio ") }.flatMap { UInt16($0.split(separator: " ")[1]) } ?? 0
        var media = from
        media.sin_port = port.bigEndian
        let tag = to.firstRange(of: ";tag=").map { String(to[$0.lowerBound...]) } ?? ""
        let contact = state.withLock { state in
            if state.calls[call] == nil { state.calls[call] = Call(to: to, media: media) }
            return state.contact
        }
        send("ACK \(contact) SIP/2.0\r\n\(headers(call, "ACK", to: tag))Content-Length: 0\r\n\r\n", to: from)
    }

    /// Sends 20 ms of silence to each call every 20 ms, and counts what comes; longer than any test of it may take.
    private func speak() {
        var number: UInt16 = 0
        let end = ContinuousClock.now + .seconds(600)
        while ContinuousClock.now < end, !state.withLock({ $0.isOver }) {
            let targets = state.withLock { $0.calls.values.map(\.media) }
            number &+= 1
            for (index, target) in targets.enumerated() {
                var packet: [UInt8] = [0x80, 0, UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
                let time = UInt32(number) * 160
                for shift in [24, 16, 8, 0] { packet.append(UInt8(truncatingIfNeeded: time >> UInt32(shift))) }
                packet += [0, 0, 0, UInt8(index + 1)] + [UInt8](repeating: 0xFF, count: 160)
                Self.send(packet, from: media, to: target)
            }
            while let (_, from) = Self.receive(media, waits: false) {
                state.withLock { state in
                    for call in state.calls.keys where state.calls[call]?.media.sin_port == from.sin_port {
                        state.calls[call]?.received += 1
                    }
                }
            }
            usleep(20_000)
        }
    }

    // MARK: Sockets

    private static func open() throws -> (Int32, UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        try #require(descriptor >= 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        var time = timeval(tv_sec: 0, tv_usec: 100_000)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    private static func receive(_ descriptor: Int32, waits: Bool = true) -> (String, sockaddr_in)? {
        var bytes = [UInt8](repeating: 0, count: 8_192)
        var from = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &from) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &bytes, bytes.count, waits ? 0 : Int32(MSG_DONTWAIT), $0, &length)
            }
        }
        return count > 0 ? (String(decoding: bytes[..<count], as: UTF8.self), from) : nil
    }

    private func send(_ text: String, to target: sockaddr_in) {
        Self.send(Array(text.utf8), from: signaling, to: target)
    }

    private static func send(_ bytes: [UInt8], from descriptor: Int32, to target: sockaddr_in) {
        var target = target
        _ = withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
