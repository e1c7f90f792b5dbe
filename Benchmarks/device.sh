# shellcheck shell=bash
device_pid=""
device_build() { :; }
device_start() { :; }
device_restart() { :; }
device_stop() { :; }
