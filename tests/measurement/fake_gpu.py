"""A device that works on after the host has asked, with a clock of its own: no GPU, no waiting."""


class FakeGpu:
    """Stands in for `torch.cuda`. The host's clock is `now_s`; the queue is done at `done_s`."""

    def __init__(self, *, launch_s=0.001):
        self.now_s, self.done_s, self.launch_s = 100.0, 100.0, launch_s
        self.n_synchronized = 0

    def ask(self, work_s):
        """The host asks for work and goes on at once."""
        self.now_s += self.launch_s
        self.done_s = max(self.done_s, self.now_s) + work_s

    def clock(self):
        return self.now_s

    def synchronize(self, *_):
        self.n_synchronized += 1
        self.now_s = max(self.now_s, self.done_s)

    def current_stream(self):
        return self

    def query(self):
        return self.done_s <= self.now_s

    def Event(self, *, enable_timing):
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, gpu):
        self._gpu, self.at_s = gpu, None

    def record(self):
        self.at_s = max(self._gpu.now_s, self._gpu.done_s)

    def elapsed_time(self, end):
        assert self._gpu.query(), "an event was read before the device had come to it"
        return 1e3 * (end.at_s - self.at_s)
