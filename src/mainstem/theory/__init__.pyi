"""The public names. `__init__.py` loads each of them when it is first used."""

from . import dynamic_fedavg as dynamic_fedavg
from . import fedomd as fedomd
from . import fedres as fedres
from . import fedsea as fedsea
from . import ofediq as ofediq
from .bound import Bound as Bound
from .bound import Rate as Rate
from .dynamic_fedavg import dynamic_fedavg_drift as dynamic_fedavg_drift
from .dynamic_fedavg import dynamic_fedavg_lemma_1 as dynamic_fedavg_lemma_1
from .dynamic_fedavg import dynamic_fedavg_theorem_1 as dynamic_fedavg_theorem_1
from .fedomd import fedomd_convex as fedomd_convex
from .fedomd import fedomd_strongly_convex as fedomd_strongly_convex
from .fedomd import fedomd_theorem_1 as fedomd_theorem_1
from .fedomd import fedomd_theorem_2 as fedomd_theorem_2
from .fedomd import fedomd_theorem_3 as fedomd_theorem_3
from .fedomd import fedomd_theorem_3_strongly_convex as fedomd_theorem_3_strongly_convex
from .fedres import fedres_convex as fedres_convex
from .fedres import fedres_exploration as fedres_exploration
from .fedres import fedres_theorem_1 as fedres_theorem_1
from .fedres import fedres_theorem_2 as fedres_theorem_2
from .fedres import fedres_theorem_3 as fedres_theorem_3
from .fedsea import fedsea_convex as fedsea_convex
from .fedsea import fedsea_equation_10 as fedsea_equation_10
from .fedsea import fedsea_period as fedsea_period
from .fedsea import fedsea_printed as fedsea_printed
from .fedsea import fedsea_shift as fedsea_shift
from .fedsea import fedsea_strongly_convex as fedsea_strongly_convex
from .fedsea import fedsea_theorem_1 as fedsea_theorem_1
from .fedsea import fedsea_theorem_2 as fedsea_theorem_2
from .ofediq import Comparison as Comparison
from .ofediq import ofediq_alpha as ofediq_alpha
from .ofediq import ofediq_convex as ofediq_convex
from .ofediq import ofediq_corollary_1 as ofediq_corollary_1
from .ofediq import ofediq_equation_11 as ofediq_equation_11
from .ofediq import ofediq_equation_15 as ofediq_equation_15
from .ofediq import ofediq_section_4_2_1 as ofediq_section_4_2_1
from .ofediq import ofediq_theorem_1 as ofediq_theorem_1
from .ofediq import ofediq_theorem_2 as ofediq_theorem_2
from .ofediq import rounding_variance as rounding_variance
from .planner import Plan as Plan
from .planner import plan as plan

PAPERS: tuple[str, ...]
STEPS: tuple[str, ...]
