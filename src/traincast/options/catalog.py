"""All options by name, for signatures: `from traincast.options import catalog as o`, then `batch_size: o.BatchSize`."""

from traincast.options.cluster import *  # noqa: F403
from traincast.options.curves import *  # noqa: F403
from traincast.options.listing import *  # noqa: F403
from traincast.options.measure import *  # noqa: F403
from traincast.options.model import *  # noqa: F403
from traincast.options.plan import *  # noqa: F403
from traincast.options.run import *  # noqa: F403
from traincast.options.scale import *  # noqa: F403
from traincast.options.serve import *  # noqa: F403
from traincast.options.step import *  # noqa: F403
from traincast.options.train import *  # noqa: F403
