"""What is asked: command lines, each with the product of its {braces}, as in a shell.

Not every combination, but every model, place, precision, optimizer, strategy and switch at least once, and the
sentences of a few refusals. Files are those of `inputs/`, made up: losses of a power law or an exponential with a
wiggle for noise, a handful of jobs, epochs that shrink with GPUs.
"""

import itertools
import re

LINES = """
forecast {alexnet,vgg11,vgg16,vgg19,nin,overfeat,googlenet,inception_v3,resnet18,resnet34,resnet101} --on V100-SXM2-16GB --batch 8
forecast {resnet152,resnext50_32x4d,resnext101_32x8d,resnext101_32x4d,resnext101_32x16d,densenet121} --on V100-SXM2-16GB --batch 8
forecast {mobilenet_v2,efficientnet_b0,vit_b_16,bert-large,gpt2,gpt2-medium,gpt2-large,llama-1b} --on A100-SXM4-80GB --batch 4
forecast {cifar_resnet18,cifar_resnet32,cifar_resnet44,cifar_resnet56,cifar_resnet110} --on RTX-3090 --batch 128
forecast {mnist_cnn,mnist_cnn_2conv,cifar10_cnn,patchcamelyon_cnn} --on T4 --batch 128
forecast {resnet50,bert-base} --on {T4,V100-SXM2-16GB,RTX-3090,RTX-4090,A100-SXM4-80GB,H100-SXM5-80GB,H200-SXM,B200} --batch 16
forecast {resnet50,bert-base} --on {MI210,MI300X,generic-cpu,P100-PCIe-16GB,K80-die,A10G,L4} --batch 16
forecast {lstm_lm,cifar_resnet20} --on {T4,A100-SXM4-80GB,H100-SXM5-80GB,MI210,generic-cpu} --batch 32
forecast resnet50 --on {T4,A100-SXM4-80GB,H100-SXM5-80GB,MI300X} --batch 64 --precision {fp32,tf32,amp-fp16,amp-bf16,bf16}
forecast gpt2 --on {V100-SXM2-16GB,RTX-4090,B200} --batch 8 --precision {fp32,tf32,amp-fp16,amp-bf16,bf16}
forecast {cifar_resnet20,bert-base} --on T4 --batch 8 --optimizer {none,sgd,momentum,nesterov,adagrad,adadelta,rmsprop,adam,adamw}
forecast {vgg16,resnet50,bert-base,mnist_cnn} --on {T4,V100-SXM2-16GB} --batch 32 --method {roofline,paleo,layerwise}
forecast {resnet50,bert-base} --on generic-cpu --batch 8 --method {roofline,paleo}
forecast {alexnet,gpt2} --on A100-SXM4-80GB --batch 16 --method paleo --ppp {0.3,0.62}
forecast {resnet50,efficientnet_b0,gpt2} --on {RTX-4090,H100-SXM5-80GB} --batch 32 --precision amp-fp16 {--compiled,--layout nhwc,--compiled --layout nhwc}
forecast {resnet50,bert-base} --on {T4,4xT4} --batch 64 --accumulate {2,8}
forecast resnet50 --on {4xT4,8xA100-SXM4-80GB,2x4xV100-SXM2-16GB@50Gb/s,p3.16xlarge} --batch 128 --strategy {ddp,dp,mirrored,ps:2,ps-async:2,fsdp,zero1,zero2,zero3}
forecast bert-large --on {8xA100-SXM4-80GB,4x8xH100-SXM5-80GB@400Gb/s} --batch 256 --precision amp-bf16 --optimizer adamw --strategy {ddp,fsdp,zero1,zero3}
forecast vgg16 --on {2xT4,8xT4,4x4xT4@10Gb/s} --batch {32,512} --precision amp-fp16
forecast {gpt2-xl,llama-1b} --on {8xA100-SXM4-80GB,2x8xH100-SXM5-80GB@400Gb/s} --batch 64 --precision bf16 {--tensor-parallel 2,--tensor-parallel 8,--pipeline-parallel 4,--tensor-parallel 4 --pipeline-parallel 2}
forecast gpt2 --on 4xV100-SXM2-16GB --batch 32 --pipeline-parallel {2,4} --accumulate {4,8}
forecast {gpt2-xl,vgg19} --on {T4,p2.8xlarge} --batch 64
forecast cifar_resnet20 --on T4 --batch {16,256} --host {torch-eager,tf1-session,tf2-keras}
forecast resnet18 --on {T4,4xT4} --batch 64 --input-samples-per-s {50,100000}
forecast resnet50 --on {g4dn.xlarge,p3.16xlarge,p4d.24xlarge,1x_RTX5090_SECURE} --batch 256 --samples 1281167 --epochs 90
forecast resnet50 --on T4 --batch 64 --samples 50000 --epochs 3 {--price 0.53,--region Germany,--region us-east-1 --pue 1.2,--grid-g-per-kwh 400}
forecast resnet18 --on T4 --batch 100 --samples 50000 --curve accuracy.csv --target {0.9,0.99} --metric accuracy
forecast resnet50 --on T4 --on 4xT4 --on A100-SXM4-80GB --batch 4,16,64,512 --precision amp-fp16
forecast job.toml {--on 8xA100-SXM4-80GB,--fail-over budget=0.01,--fail-over memory=90%}
forecast resnet18 --on x --batch 32 --devices devices.toml
forecast {resnet5,resnet50 --precision fp8,resnet50 --method guess,vgg16 --strategy dp --tensor-parallel 2} --on T4 --batch 8
forecast resnet50 --on generic-cpu --batch 8 --method layerwise
forecast resnet50 --on {T4,4xT4} --batch {0,3}

scale {resnet50,vgg16,bert-base} --on {T4,V100-SXM2-16GB,A100-SXM4-80GB} --gpus 1,2,4,8 --batch 64
scale resnet50 --on {p3.16xlarge,2x4xT4@50Gb/s} --batch 256 --samples 1281167 --epochs 90
scale resnet18 --on 8xV100-SXM2-16GB --gpus 1,4,8 --batch-per-gpu {32,256} --strategy {ddp,dp,mirrored,ps:2,ps-async:2,fsdp,zero2}
scale vgg16 --on T4 --gpus 1,4,8 --batch 256 --algorithm {nccl,best,ring,double-tree,tree,butterfly,recursive-doubling,master}
scale vgg16 --on 4x4xT4@10Gb/s --gpus 1,4,16 --batch 256 --algorithm {ring,hierarchical} --accumulate {1,2}
scale resnet50 --on T4 --gpus 1,2,4 --batch 128 --link {'PCIe3 x8',10GB/s}
scale gpt2 --on H100-SXM5-80GB --gpus 1,8 --batch 64 --precision bf16 --optimizer adamw {--compiled,--price 2.5 --samples 100000}
scale resnet50 --on V100-SXM2-16GB --gpus 1,2,4,8 --batch 256 --samples 1281167 --compare runs.csv
scale --measured epochs.csv --samples 50000 --parameters 11173962
scale --optimus {paper-async,paper-sync --batch 128,optimus.csv} --steps 1000 --workers 1,2,4,8 --servers 2,4
scale resnet18 --on {T5,4xT4 --gpus 1\\,8}

memory {alexnet,resnet50,densenet121,vit_b_16,lstm_lm,mnist_cnn} --batch {1,64} --on T4
memory {resnet50,gpt2,bert-base} --batch 8 --on {T4,H100-SXM5-80GB,generic-cpu} --precision {fp32,amp-fp16} --optimizer adam
memory bert-large --batch 4 --on A100-SXM4-80GB --optimizer {none,sgd,momentum,adagrad,adadelta,rmsprop,adamw}
memory {gpt2-xl,llama-1b} --batch 2 --on {MI210,B200} --precision bf16 --optimizer adamw
memory vgg16 --batch 16

explain {resnet50,vgg16,bert-base,cifar_resnet20} --on {T4,A100-SXM4-80GB} --batch 32
explain {resnet50,gpt2} --on {4xT4,2x4xV100-SXM2-16GB@50Gb/s} --batch 64
explain resnet50 --on generic-cpu --batch 16
explain resnet50 --on H100-SXM5-80GB --batch 64 --precision amp-bf16 {--compiled,--layout nhwc,--input-samples-per-s 300,--method roofline}

layers {alexnet,resnet50,mobilenet_v2,lstm_lm,bert-base,gpt2,mnist_cnn} --by kind
layers {resnet18,vit_b_16,llama-1b} --batch 4 --sort {flop,bytes,parameters} --top 5 --on T4
layers inception_v3 --tree --batch 2 {--precision amp-fp16,--on A100-SXM4-80GB}

plan resnet18 --samples 1281167 --epochs 10 --batch-size 256 --provider AWS --max-gpus 8 --max-nodes 1 {--deadline 24h,--budget 20,--deadline 1h --budget 5,--spot}
plan mnist_cnn --samples 60000 --epochs 100 --batch-sizes 128:512 --noise-scale 1000 --provider GCP --max-gpus 4 --max-nodes 1
plan gpt2 --samples 100000 --batch-size 64 --optimizer adamw --precision amp-bf16 --strategy ddp,fsdp --provider Lambda --max-gpus 8 --max-nodes 1
plan cifar_resnet20 --samples 50000 --batch-size 128 --target-accuracy 0.9 --curve accuracy.csv --provider AWS --max-gpus 2 --max-nodes 1
plan resnet18 --samples 1281167 --batch-size 256 --provider AWS --max-gpus 4 --max-nodes 1 --spot --interruptions-per-day 3 --checkpoint-mb-per-s 50 --setup 10min --confidence 90%
plan resnet18 --samples 1281167 --provider Nobody

converge loss.csv --total-steps 10000 --lr constant {--target 2.2 --price 36,--target 1.0,--step-s 0.25}
converge loss.csv --total-steps 10000 --family optimus {--target 2.2,--price 36,--lr constant}
converge loss.csv {--total-steps 20000 --lr linear,--total-steps 20000 --lr cosine,--total-steps 20000 --lr 0.1\\,0.01@12000}
converge loss.csv --total-steps 10000 --target 2.2 --batch 64 --batch-to 256 --noise-scale {500,5000}
converge accuracy.csv --epochs 60 --metric {accuracy --target 0.92,loss --target 0.5,loss --split train,accuracy --target 92}
converge accuracy.csv --epochs 60 --metric accuracy --target 0.93 {--like whole_run.csv,--relation-from whole_run.csv}
converge cosine.jsonl --total-steps {5000,10000}
converge loss.csv accuracy.csv --target 2.1
converge diverged.csv --total-steps 100
converge loss.csv --total-steps 10000 {--format csv --column train_loss=train_loss,--price 0 --step-s 0.4,--like loss.csv}
converge loss.csv --total-steps {-5,9000 --epochs 9 --steps-per-epoch 100,9000 --epochs 9 --steps-per-epoch 1000}
converge {nowhere.csv,loss.csv --metric f1}

transfer sizes.csv --predict {depth=26,depth=32} --epochs 90 --steps-per-epoch 100
transfer sizes.csv --predict num_layers=26 --family thin --total-steps 9000 --steps-per-epoch 100 --workers 1-8 --servers 2,4 --optimus {paper-async,paper-sync --batch 128}
transfer logs.csv --predict depth=26 --split {train --target 0.9,validation}
transfer sizes.csv --predict {depth=0,width=3 --epochs 9}

simulate jobs.csv --cluster 1x4xT4 --policy {fifo,srtf,drf,tiresias,optimus,gavel,pollux,traincast}
simulate jobs.csv --cluster 2x4xT4 --policy fifo,traincast --interval {0,30} --restart 10
simulate jobs.csv --cluster 2x4xT4 --policy srtf --work-error 1 --speed-error 0.2 --failure 300 --repair 60 --checkpoint 30 --seeds 3 --seed 7
simulate trainings.csv --cluster 2x4xT4@10Gb/s --policy fifo,optimus,traincast
simulate servers.csv --cluster 2x4xT4 --policy optimus-online,fifo,traincast --seeds 2
simulate trace.csv --cluster 2x8xV100 --policy fifo,srtf
simulate jobs.csv --cluster {2xT4,4xT4 --policy best}

train {scratch,teacher-student,weak} --image-side 8 --on T4 --forecast-only
train scratch --image-side 8 --epochs 3 --batch-size 100 --optimizer adamw --precision amp-fp16 --no-augment --on 4xT4 --price 0.5 --forecast-only
train transfer --image-side 8 --approach cached --approach fine-tune --rate 0.1 --rate 0.03 --seeds 2 --on T4 --forecast-only
train teacher-student --image-side 8 --labeled 10% --k 50 --k 20 --p 1 --p 3 --seeds 1 --on T4 --forecast-only
train weak --image-side 8 --noise 25% --noise 0 --clean 0.1 --imbalance 5 --seeds 1 --on T4 --forecast-only
train scaling --image-side 8 --samples 256 --batch-sizes {16,16\\,...} --n-devices 1,2 --on T4 --price 0.5 --forecast-only
train collect --image-side 8 --models cifar_resnet20,cifar_resnet32 --epochs 1,3 --seeds 2 --on T4 --forecast-only
train {scratch --epochs 0,scratch --price=-1,scratch --optimizer best,weak --noise 120%,teacher-student --p 11,scaling --n-devices 2\\,4}
"""  # noqa: E501  a question stays on its line


def expanded(line):
    """The line with each combination of what its braces hold; a comma behind a backslash is no separator."""
    parts = re.split(r"\{([^}]*)\}", line)
    choices = [re.split(r"(?<!\\),", part) if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(choice).replace("\\,", ",") for choice in itertools.product(*choices)]


def questions_by_command():
    """{"forecast": ["forecast alexnet --on ...", ...], "scale": ...}"""
    by_command = {}
    for line in LINES.splitlines():
        if line:
            by_command.setdefault(line.split()[0], []).extend(expanded(line))
    return by_command
