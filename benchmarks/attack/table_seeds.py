"""Small valid tables: jobs, runs, speeds, prices; and TOML files of devices, clusters, hosts and jobs."""

from __future__ import annotations

import gzip
import json
import random


def _table(header: str, *rows: str) -> bytes:
    return "\n".join([header, *rows, ""]).encode()


def plain_jobs() -> bytes:
    rows = [f"job{n},{30 * n},{600 + 100 * n},{1 + n % 3},{4 + n % 3},0.9,900,1100" for n in range(6)]
    return _table("name,submit_s,seconds,n_devices,max_devices,exponent,steps_p10,steps_p90", *rows)


def forecast_jobs() -> bytes:
    rows = [f"job{n},{30 * n},mnist_cnn,64,6000,{1 + n},{1 + n % 2}" for n in range(3)]
    return _table("name,submit_s,model,batch_size,n_samples,n_epochs,n_devices", *rows)


def server_jobs() -> bytes:
    rows = [f"job{n},{30 * n},sync,1.02 2.78 4.92 0.0 0.02,0.01 0.5 0.2,0.4,4000,2,4,128" for n in range(3)]
    return _table("name,submit_s,mode,theta,loss,target_loss,expected_steps,n_servers,n_workers,batch_size", *rows)


def workload() -> bytes:
    rows = [f"real,{n % 2},job{n},{60 * n},small,1,64" for n in range(6)]
    return _table("set,workload,job,submit_time_s,application,num_gpus,batch_size", *rows)


def philly_trace() -> bytes:
    rows = [f"2017-10-09 07:{n:02}:55,{300 + n},{1 + n % 4}" for n in (3, 1, 2, 5, 4)]
    return _table("timestamp,duration_s,num_gpus", *rows)


def gzipped_trace() -> bytes:
    return gzip.compress(philly_trace(), mtime=0)


def pollux_steps() -> bytes:
    rows = []
    for placement, nodes, gpus in (("1", 1, 1), ("2", 1, 2), ("4", 1, 4), ("11", 2, 2), ("22", 2, 4)):
        rows += [
            f"small,{placement},{nodes},{gpus},{batch},{0.01 * batch**0.8:.5f},{0.001 * nodes}"
            for batch in (16, 32, 64, 128)
        ]
    return _table("app,placement,num_nodes,num_gpus,local_batch,step_time_s,sync_time_s", *rows)


def pollux_gradients() -> bytes:
    rows = [
        f"small,{batch},{epoch},{epoch + 1},{0.1 / (1 + epoch)},{2.0 + epoch}"
        for batch in (64, 128, 256)
        for epoch in range(5)
    ]
    return _table("app,batch_size,epoch,progress,grad_sqr,grad_var", *rows)


def live_jobs() -> bytes:
    return _table(
        "name,submit_s,model,batch_size,n_epochs,n_devices,max_devices",
        "a,0,cifar_resnet20,64,2,1,2",
        "b,5,cifar_resnet20,64,1,1,1",
    )


def prices() -> bytes:
    return _table(
        "offer,device,n_devices,usd_per_hour,spot_usd_per_hour,date,network,provider",
        "p3.16xlarge,,,24.48,7.3,2026-11-16,,",
        ",T4,1,0.35,,2026-11-16,,mine",
        "big,V100-SXM2-16GB,8,20,8,2026-11-16,25Gb/s,mine",
    )


def own_devices_csv() -> bytes:
    return _table(
        "name,aliases,kind,vendor,arch,year,n_sm,boost_clock_mhz,fp32_tflop_per_s,fp16_dense_tflop_per_s,memory_gib,memory_gb_per_s,tdp_w",
        "MyGPU,mine;card,gpu,NVIDIA,Turing,2018,40,1590,8.1,65,16,320,70",
        "Other,,gpu,NVIDIA,Volta,2017,80,1530,15.7,125,16,900,300",
    )  # fmt: skip


def own_devices_toml() -> bytes:
    return b"""[[device]]
name = "MyGPU"
aliases = ["mine"]
arch = "Turing"
n_sm = 40
boost_clock_mhz = 1590
fp32_tflop_per_s = 8.1
fp16_dense_tflop_per_s = 65
memory_gib = 16
memory_gb_per_s = 320.0
l2_mib = 4
tdp_w = 70
pcie_gen = 3
"""


def machine_profile() -> bytes:
    """As `traincast calibrate` keeps it."""
    return b"""[[device]]
name = "my CPU"
kind = "cpu"
fp32_tflop_per_s = 0.12
tf32_dense_tflop_per_s = 0
fp16_dense_tflop_per_s = 0
bf16_dense_tflop_per_s = 0
memory_gib = 8.0
memory_gb_per_s = 20.0
n_sm = 2
l2_mib = 1
prices = { "bytes.fresh" = 1e-10 }
price_log_sd = 0.1
source = "traincast calibrate"
"""


def host_profile() -> bytes:
    return b"""name = "this-machine"
forward_dispatch_s = 5e-6
backward_dispatch_s = 3e-6
optimizer_dispatch_s = 2e-6
view_dispatch_s = 1e-6
call_s = 1e-4
source = "measured"
"""


def cluster() -> bytes:
    return b"""name = "lab"
device = "T4"
n_nodes = 2
devices_per_node = 4
inside = "PCIe3 x16"
node_price_usd_per_hour = 3.5
price_source = "own"
price_date = 2026-11-16
region = "Germany"

[between]
name = "10 GbE"
gb_per_s = 1.25
latency_us = 30
achievable = 0.8
is_shared = true
"""


def job() -> bytes:
    return b"""[model]
name = "mnist_cnn"

[data]
samples = 60000
input_samples_per_s = 50000.0

[training]
batch = [64, 128]
epochs = 3
precision = "fp32"
optimizer = "sgd"
accumulate = 1

[cluster]
on = ["T4", "2xT4"]
strategy = "ddp"
price_usd_per_hour = 0.5
region = "Germany"
pue = 1.2

[limits]
budget_usd = 200.0
hours = 12.0
memory_fraction = 0.9
"""


def measured_epochs() -> bytes:
    rows = [
        f"{batch},{gpus},{40 / gpus**0.8 * (64 / batch) ** 0.3:.3f}" for batch in (64, 128) for gpus in (1, 2, 4, 8)
    ]
    return _table("Batch size,GPUs,epoch_s", *rows)


def measured_runs() -> bytes:
    return _table("gpus,epoch_s", "1,40", "2,22", "4,13")


def speeds() -> bytes:
    rows = [
        f"{servers},{workers},{workers / (1 + 0.2 * workers / servers + 0.05 * servers):.4f}"
        for servers in (1, 2, 4)
        for workers in (1, 2, 4, 8)
    ]
    return _table("servers,workers,steps_per_s", *rows)


def curve_table() -> bytes:
    source = random.Random(0)
    rows = [
        f"resnet{depth},{depth},{hardware},{0.002 * depth + 0.01 * source.random():.4f},{1.1 + 0.01 * depth:.3f},"
        f"{0.1 + 0.001 * depth:.4f},{90 + depth}"
        for depth in (20, 32, 44, 56, 110)
        for hardware in ("cpu", "gpu")
    ]
    return _table("model,depth,hardware,b0,b1,b2,epochs", *rows)


def curve_list() -> bytes:
    header, *rows = curve_table().decode().split()
    return json.dumps(
        [dict(zip(header.split(","), map(_typed, row.split(",")), strict=True)) for row in rows], indent=1
    ).encode()


def _typed(cell: str) -> str | float:
    try:
        return float(cell)
    except ValueError:
        return cell
