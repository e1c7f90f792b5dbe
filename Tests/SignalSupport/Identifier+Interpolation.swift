import SignalWire

/// Tests number their users and devices; a program takes such a text from outside, where it must be looked at.
extension Identifier: ExpressibleByStringInterpolation {}
