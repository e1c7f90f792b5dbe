internal import CallControl
internal import Logging
internal import MediaEngine
internal import Realtime
internal import SignalingClient

// A peer that vanishes from a call without ICE (contract CALL-4): the call's `SilenceWatch` decides, and the device looks at the
// media and probes over signaling.
extension Device {
    /// A call is established: from now on its peer is watched, if the configuration does not turn that off.
    func watchPeer(of id: CallID) {
        guard let period = calls[id]?.rules.silenceTimeout else { return }
        calls[id]?.silence = SilenceWatch(period: period)
        feed(silence: .begin, in: id)
    }

    private func feed(silence input: SilenceWatch.Input, in id: CallID) {
        guard let call = calls[id], call.record == nil, var watch = call.silence else { return }
        var outbox: [SilenceWatch.Output] = []
        watch.handle(input, at: MonotonicClock.now, into: &outbox)
        calls[id]?.silence = watch
        calls[id]?.timers.wakeWatch(at: watch.nextDeadline) { [weak self] in
            await self?.feed(silence: .timerFired, in: id)
        }
        for output in outbox { carryOut(output, in: id) }
    }

    private func carryOut(_ output: SilenceWatch.Output, in id: CallID) {
        switch output {
        case .observe: observePeer(of: id)
        case .probe(let isOnHold):
            logger.log(
                level: isOnHold ? .debug : .info, "Nothing comes from the peer of a call; probing it over signaling",
                metadata: about(id, ["on_hold": "\(isOnHold)"]))
            probePeer(of: id)
        case .lost(let cause):
            logger.notice(
                "The peer of a call is gone; ending the call", metadata: about(id, ["reason": "\(cause.rawValue)"]))
            feed(.media(.lost), to: id)
        }
    }

    /// Finds out when the peer's newest packet arrived.
    private func observePeer(of id: CallID) {
        guard let media = calls[id]?.media else { return }
        switch media.expectation {
        case .covered: return feed(silence: .observed(.covered), in: id)
        case .onHold: return feed(silence: .observed(.onHold), in: id)
        case .expecting: break
        }
        guard let running = media.runningID else { return feed(silence: .observed(.expecting(newest: nil)), in: id) }
        Task { [engine] in
            let report = await engine.report(on: running)
            feed(silence: .observed(.expecting(newest: report?.newestArrival)), in: id)
        }
    }

    private func probePeer(of id: CallID) {
        guard let call = calls[id], let invite = call.invite.id else { return feed(silence: .probed(nil), in: id) }
        let peer = call.machine.namedPeer
        Task { [service, logger] in
            do throws(SignalingError) {
                let probe = try await service.probe(invite, peer: peer)
                if case .answered(let host) = probe { peerIsThere(in: id, at: host) }
                feed(silence: .probed(probe), in: id)
            } catch {
                logger.debug(
                    "The peer of a call could not be probed", metadata: ["call": "\(id)", "error": "\(error)"])
                feed(silence: .probed(nil), in: id)
            }
        }
    }

    /// The peer of a call probes this device, which may not know the call any more because it was started again: then it hangs up,
    /// so that the peer does not wait for it.
    func answerProbe(_ signal: CallSignal) {
        guard calls.id(of: signal.invite) == nil, !invites.knows(signal.invite) else { return }
        logger.info("A peer probes a call that is not known here; hanging up", metadata: ["invite": "\(signal.invite)"])
        sendHangUp(
            CallHangUp(
                invite: signal.invite, reason: CallEndReason.connectionLost.rawValue, duration: .zero, peer: signal.from
            ))
    }
}
