"""Devices that work on after the host has asked, with a clock of their own: no GPU, no waiting."""


class FakeGpu:
    """Stands in for `torch.cuda`. The host's clock is `now_s`; the queue of each device is done at its `done_s`."""

    def __init__(self, *, launch_s=0.001, n_devices=1):
        self.now_s, self.done_s, self.launch_s = 100.0, [100.0] * n_devices, launch_s
        self.n_synchronized = 0

    def ask(self, work_s, device=0):
        """The host asks for work and goes on at once."""
        self.now_s += self.launch_s
        self.done_s[device] = max(self.done_s[device], self.now_s) + work_s

    def clock(self):
        return self.now_s

    def is_available(self):
        return True

    def device_count(self):
        return len(self.done_s)

    def synchronize(self, device=None):
        self.n_synchronized += 1
        self.now_s = max(self.now_s, self.done_s[_index(device)])

    def current_stream(self, device=None):
        return FakeStream(self, _index(device))

    def query(self):
        return self.current_stream().query()

    def Event(self, *, enable_timing):
        assert enable_timing
        return FakeEvent(self)


def _index(device):
    """As torch reads it; what names no device means the current one, the first."""
    return device if isinstance(device, int) else int((device or "").partition(":")[2] or 0)


class FakeStream:
    def __init__(self, gpu, device):
        self._gpu, self._device = gpu, device

    @property
    def done_s(self):
        return max(self._gpu.now_s, self._gpu.done_s[self._device])

    def query(self):
        return self.done_s <= self._gpu.now_s


class FakeEvent:
    def __init__(self, gpu):
        self._gpu, self._stream, self.at_s = gpu, None, None

    def record(self, stream=None):
        self._stream = stream or self._gpu.current_stream()
        self.at_s = self._stream.done_s

    def elapsed_time(self, end):
        assert self._stream.query(), "an event was read before the device had come to it"
        return 1e3 * (end.at_s - self.at_s)
