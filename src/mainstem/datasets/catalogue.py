"""Catalogue of datasets, one entry each; fingerprints are of the decoded arrays."""

import difflib

import numpy as np

from mainstem.datasets import convert, decode, open_bandit, pjm, proof
from mainstem.datasets.dataset import Dataset
from mainstem.datasets.libsvm import libsvm
from mainstem.datasets.openml import openml
from mainstem.datasets.pypi import pypi
from mainstem.datasets.uci import uci
from mainstem.errors import BadParameter

_CC_BY = "CC BY 4.0"

_ENTRIES = (
    Dataset(
        name="mnist",
        file="mnist.npz",
        task="classification",
        about="Handwritten digits: 60,000 + 10,000 images of 28 x 28 pixels",
        licence="none stated; often listed as CC BY-SA 3.0",
        sources=(openml(554, convert.mnist),),
        proof=proof.sha256("5e46235c90a23c768b02bf83e35109cc6690d8445ada9417ab71c3628c34b2bb"),
        decode=decode.images,
    ),
    Dataset(
        name="usps",
        file="usps.npz",
        task="classification",
        about="Digits from envelopes: 7,291 + 2,007 images of 16 x 16 pixels, as 256 features",
        licence="none stated; free for research",
        sources=(
            openml(41082, convert.usps_openml),
            libsvm(("usps.bz2", "usps.t.bz2"), 256, convert.usps_libsvm),
        ),
        proof=proof.sha256("61b48f867868ce42347d8a6bef278f06f3d548a9c6a64ec98d6b8c8c0552d33a"),
        decode=decode.two_parts,
    ),
    Dataset(
        name="letter",
        file="letter.npz",
        task="classification",
        about="Letter recognition: 20,000 distorted capitals, 16 features",
        licence=_CC_BY,
        sources=(uci(59, "letter+recognition", convert.letter),),
        proof=proof.sha256("3aa4f51d7ae0314287fecef92590abb5efc6a18d67a44ba673e135adb2f03b2b"),
        decode=decode.one_part,
    ),
    Dataset(
        name="pendigits",
        file="pendigits.npz",
        task="classification",
        about="Pen-based digits: 7,494 + 3,498 pen strokes, 16 features",
        licence=_CC_BY,
        sources=(
            uci(
                81,
                "pen+based+recognition+of+handwritten+digits",
                convert.two_tables("pendigits.tra", "pendigits.tes", np.uint8, delimiter=","),
            ),
        ),
        proof=proof.sha256("ff4f676886f5e7b137a609daad2f26add343aa1121c8e43be9bfd6de019460c2"),
        decode=decode.two_parts,
    ),
    Dataset(
        name="satimage",
        file="satimage.npz",
        task="classification",
        about="Landsat satellite: 4,435 + 2,000 patches of land, 36 features",
        licence=_CC_BY,
        sources=(
            uci(
                146,
                "statlog+landsat+satellite",
                convert.two_tables("sat.trn", "sat.tst", np.uint8),
            ),
        ),
        proof=proof.sha256("c14475b451f25895116b765c90c1a0dec5eb52290032aeb126e3324872c1e721"),
        decode=decode.two_parts,
    ),
    Dataset(
        name="shuttle",
        file="shuttle.npz",
        task="classification",
        about="Space shuttle radiators: 43,500 + 14,500 readings, 9 features, 7 uneven classes",
        licence=_CC_BY,
        sources=(
            uci(
                148,
                "statlog+shuttle",
                convert.two_tables("shuttle.trn", "shuttle.tst", np.int16),
            ),
        ),
        proof=proof.sha256("1426f2edc5b262afc2e806db444dd2cf6f8cd3bad28797cdcadc19439e8e8f57"),
        decode=decode.two_parts,
    ),
    Dataset(
        name="covtype",
        file="covtype.npz",
        task="classification",
        about="Forest cover types: 581,012 plots of 30 x 30 metres, 54 features",
        licence=f"{_CC_BY}; copyright Blackard, Colorado State University",
        sources=(uci(31, "covertype", convert.covtype),),
        proof=proof.sha256("1142db07ac9c4b9af846d52119f820a753e50d3d6ead86d4c7fffe071869a72a"),
        decode=decode.covtype,
    ),
    Dataset(
        name="sensorless",
        file="sensorless.npz",
        task="classification",
        about="Sensorless drive diagnosis: 58,509 readings of a motor, 48 features, 11 faults",
        licence=_CC_BY,
        sources=(
            libsvm(("Sensorless",), 48, convert.sensorless_libsvm),
            uci(325, "dataset+for+sensorless+drive+diagnosis", convert.sensorless_uci),
        ),
        proof=proof.sensorless,
        decode=decode.one_part,
        stand_in=Dataset(
            name="sensorless_subset",
            file="sensorless_subset.npz",
            task="classification",
            about="Sensorless drive diagnosis, partial: 2,200 of the 58,509 rows, 200 a class",
            licence=_CC_BY,
            sources=(),
            proof=proof.sha256("53dbf26ba62a7a3447f9cbd0250a7e0ad84c4ecb8c4dd97fc7d8bb26a2cdffea"),
            decode=decode.one_part,
        ),
    ),
    Dataset(
        name="room_occupancy",
        file="Occupancy_Estimation.csv.gz",
        task="classification",
        about="Room occupancy: 10,129 readings of 16 sensors in time order, 0 to 3 people",
        licence=_CC_BY,
        sources=(
            uci(864, "room+occupancy+estimation", convert.csv_table("Occupancy_Estimation.csv")),
        ),
        proof=proof.sha256("d936afc51a297af400b38d0ac93e2a41a0e9a77159f4c5081209e69f1bb9d468"),
        decode=decode.classification("Room_Occupancy_Count", decode.OCCUPANCY),
    ),
    Dataset(
        name="air_quality",
        file="AirQualityUCI.csv.gz",
        task="regression",
        about="Air quality in an Italian city: benzene from 5 gas sensors, hourly for a year",
        licence=_CC_BY,
        sources=(uci(360, "air+quality", convert.air_quality),),
        proof=proof.sha256("e3c61bfd11037cd6ca85ad73e4a8b6a0ec7c7c09ecf21ecd714f03b4e3df39fa"),
        decode=decode.regression("C6H6(GT)", decode.AIR_QUALITY, missing=decode.MISSING),
    ),
    Dataset(
        name="appliances_energy",
        file="energydata_complete.csv.gz",
        task="regression",
        about="Appliances energy: 19,735 readings of a house at 10 minutes, 25 features",
        licence=_CC_BY,
        sources=(
            uci(374, "appliances+energy+prediction", convert.csv_table("energydata_complete.csv")),
        ),
        proof=proof.sha256("c8c50fe1ff52d59482696521006a625fddcc1efbf8d1002e40656bca8bf2e7cb"),
        decode=decode.regression("Appliances", decode.APPLIANCES),
    ),
    Dataset(
        name="pjm_hourly",
        file="pjm_hourly.parquet",
        task="regression",
        about="PJM hourly load of 8 US grid zones, June 2013 to August 2018",
        licence="CC0; source PJM Interconnection",
        sources=(pjm.kaggle(),),
        proof=proof.sha256("65d417c2f0ed8a02497409cb3f25dfe9fb3b378a8271aa79c53d0b635e891772"),
        decode=pjm.decode,
    ),
    Dataset(
        name="elec2",
        file="elec2.npz",
        task="classification",
        about="New South Wales electricity: 45,312 half hours in time order, price up or down",
        licence="none stated; public",
        sources=(openml(151, convert.elec2),),
        proof=proof.sha256("c144e8866d4edb445106d6fb2d2db29feb238123a700dc6586986c4d62f73772"),
        decode=decode.one_part,
    ),
    Dataset(
        name="open_bandit",
        file="random_all.parquet",
        task="bandit",
        about="Open Bandit: 10,000 random choices among 80 fashion items in time order, 38 clicks",
        licence=f"{_CC_BY}; ZOZO",
        sources=(pypi("obp", "0.4.1", open_bandit.convert),),
        proof=proof.sha256("d25117b253a5034ad85a35c5e36235b6e3d7b20df0ec8f0fd799ab04b66d8012"),
        decode_log=open_bandit.decode,
        folder="open_bandit_small",
        beside={open_bandit.ITEMS: "item_context_random_all.csv.gz"},
    ),
)

DATASETS = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Dataset:
    """The entry of that name."""
    if name in DATASETS:
        return DATASETS[name]
    near = difflib.get_close_matches(name, DATASETS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(DATASETS)}"
    raise BadParameter(f"datasets: there is no {name!r}; {hint}")
