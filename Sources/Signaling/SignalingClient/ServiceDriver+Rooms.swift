internal import CallControl
internal import NIOCore
internal import SignalWire

// Rooms: joining, leaving, and coming back after the exchange has forgotten us.
extension ServiceDriver {
    func join(_ join: RoomJoin, _ promise: EventLoopPromise<RoomJoin.Result>) {
        request(join, doing: "join the room \(join.room)", promise) { [self] result in enter(join, result) }
    }

    func leave(_ leave: RoomLeave, _ promise: EventLoopPromise<Empty>) {
        rooms.leave(leave.room.text)
        request(leave, .queued, doing: "leave the room \(leave.room)", promise)
    }

    private func enter(_ join: RoomJoin, _ result: RoomJoin.Result) {
        let others = result.participants.map(CallControl.RoomParticipant.init)
        for event in rooms.enter(join, others, isLast: result.next == nil) { hub.publish(event) }
    }

    /// A session that begins afresh is in no room: those that the device was in are joined again.
    func rejoinRooms() {
        for join in rooms.joins { rejoin(join) }
    }

    private func rejoin(_ join: RoomJoin) {
        send(join, doing: "join the room \(join.room) again") { [self] result in
            switch result {
            case .success(let joined):
                enter(join, joined)
                guard let next = joined.next else { return }
                var rest = join
                rest.after = next
                rejoin(rest)
            case .failure(let error) where error.code == .disconnected: break  // The next session tries again.
            case .failure(let error):
                rooms.leave(join.room.text)
                hub.publish(.roomLost(room: join.room.text, error))
            }
        }
    }
}
