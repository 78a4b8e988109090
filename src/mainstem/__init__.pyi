"""The public names. `__init__.py` loads each of them when it is first used."""

from . import algorithms as algorithms
from . import datasets as datasets
from . import measure as measure
from . import parts as parts
from . import problems as problems
from . import sklearn as sklearn
from . import streams as streams
from . import theory as theory
from . import tracking as tracking
from .advice import advise as advise
from .algorithms.centred_clipping import centred_clipping as centred_clipping
from .algorithms.dynamic_fedavg import dynamic_fedavg as dynamic_fedavg
from .algorithms.fedomd import fedomd as fedomd
from .algorithms.fedomd import independent as independent
from .algorithms.fedres_erm import fedres_erm as fedres_erm
from .algorithms.fedres_erm import fictitious_play as fictitious_play
from .algorithms.fedres_sgd import central as central
from .algorithms.fedres_sgd import fedres_sgd as fedres_sgd
from .algorithms.fedsea import fedsea as fedsea
from .algorithms.guarded import guarded as guarded
from .algorithms.ofediq import fedogd as fedogd
from .algorithms.ofediq import ofedavg as ofedavg
from .algorithms.ofediq import ofediq as ofediq
from .engines.federate.client.learner import join as join
from .engines.federate.client.learner import join_async as join_async
from .engines.federate.hub.served import serve as serve
from .engines.federate.hub.served import serve_async as serve_async
from .engines.simulate import simulate as simulate
from .engines.simulate import sweep as sweep
from .errors import MainstemError as MainstemError
from .parts import network as network
from .run import Run as Run
from .run import compare as compare
from .run import load as load
from .run import load_model as load_model
from .theory.planner import plan as plan

__version__: str
