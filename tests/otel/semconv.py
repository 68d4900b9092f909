"""The metrics of hosts and processes in OpenTelemetry's semantic conventions, with instrument, unit and attributes.

Facts of version 1.44.0, without deprecated ones. Names, instruments and units are from the package
opentelemetry-semantic-conventions 0.66b2 of PyPI. Attributes, of those that BlkKin has, are from
model/system/metrics.yaml and model/process/metrics.yaml of the conventions' repository.

SPDX-License-Identifier: BSD-2-Clause
"""
METRICS = """
system.cpu.frequency gauge Hz
system.cpu.logical.count updowncounter {cpu}
system.cpu.physical.count updowncounter {cpu}
system.cpu.time counter s cpu.mode cpu.logical_number
system.cpu.utilization gauge 1
system.disk.io counter By system.device disk.io.direction
system.disk.io_time counter s system.device
system.disk.limit updowncounter By
system.disk.merged counter {operation} system.device disk.io.direction
system.disk.operation_time counter s system.device disk.io.direction
system.disk.operations counter {operation} system.device disk.io.direction
system.filesystem.limit updowncounter By
system.filesystem.lock.count updowncounter {lock}
system.filesystem.usage updowncounter By
system.filesystem.utilization gauge 1
system.memory.limit updowncounter By
system.memory.linux.available updowncounter By
system.memory.linux.hugepages.limit updowncounter {page}
system.memory.linux.hugepages.page_size updowncounter By
system.memory.linux.hugepages.reserved updowncounter {page}
system.memory.linux.hugepages.surplus updowncounter {page}
system.memory.linux.hugepages.usage updowncounter {page}
system.memory.linux.hugepages.utilization gauge 1
system.memory.linux.shared updowncounter By
system.memory.linux.slab.usage updowncounter By
system.memory.usage updowncounter By system.memory.state
system.memory.utilization gauge 1
system.network.connection.count updowncounter {connection}
system.network.errors counter {error} network.interface.name network.io.direction
system.network.io counter By network.interface.name network.io.direction
system.network.packet.count counter {packet} system.device network.io.direction
system.network.packet.dropped counter {packet} network.interface.name network.io.direction
system.paging.faults counter {fault} system.paging.fault.type
system.paging.operations counter {operation} system.paging.fault.type system.paging.direction
system.paging.usage updowncounter By system.paging.state system.device
system.paging.utilization gauge 1
system.process.count updowncounter {process}
system.process.created counter {process}
system.process.limit updowncounter {thread}
system.uptime gauge s
process.context_switches counter {context_switch}
process.cpu.time counter s cpu.mode
process.cpu.utilization gauge 1
process.disk.io counter By disk.io.direction
process.disk.operations counter {operation}
process.memory.usage updowncounter By
process.memory.utilization gauge 1
process.memory.virtual updowncounter By
process.network.io counter By
process.paging.faults counter {fault} system.paging.fault.type
process.signals_pending updowncounter {signal}
process.thread.count updowncounter {thread}
process.unix.file_descriptor.count updowncounter {file_descriptor}
process.uptime gauge s
process.windows.handle.count updowncounter {handle}
"""

# the entity of a process's metric: in OpenTelemetry of the resource, here of each data point
PROCESS = {"process.executable.name", "process.pid"}
VALUES = {
    "cpu.mode": {"user", "system", "nice", "idle", "iowait", "interrupt", "steal", "softirq"},  # the last one is the collector's
    "disk.io.direction": {"read", "write"},
    "network.io.direction": {"receive", "transmit"},
    "system.memory.state": {"used", "free", "buffers", "cached"},
    "system.paging.direction": {"in", "out"},
    "system.paging.fault.type": {"major", "minor"},
    "system.paging.state": {"used", "free"},
}


def metrics():
    """Returns NAME -> (instrument, unit, attributes)."""
    words = (line.split() for line in METRICS.split("\n") if line)
    return {name: (instrument, unit, set(attributes) | (PROCESS if name.startswith("process.") else set()))
            for name, instrument, unit, *attributes in words}
