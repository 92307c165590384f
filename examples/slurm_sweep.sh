#!/bin/bash
# A sweep on several machines of a SLURM cluster: Ray on each, then the sweep on the first.
#SBATCH --job-name=coplay-sweep
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=08:00:00
set -euo pipefail

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address="$head:6379"
cpus=$SLURM_CPUS_PER_TASK

# Nobody else on these machines may use the cluster: all show a token that lies in the home folder.
export RAY_AUTH_MODE=token
ray get-auth-token --generate > /dev/null

# --block keeps Ray alive until the job ends.
srun --nodes=1 --ntasks=1 -w "$head" ray start --head --port=6379 --num-cpus="$cpus" --block &
until (: > "/dev/tcp/$head/6379") 2> /dev/null; do sleep 1; done
srun --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) --exclude="$head" \
    ray start --address="$address" --num-cpus="$cpus" --block &
sleep 15

# A job that is started again goes on with the sweep. The folder is on a disk that all machines share.
out=sweeps/slurm
if [ -e "$out/sweep.json" ]; then
    srun --overlap --nodes=1 --ntasks=1 -w "$head" coplay sweep --resume "$out" --on "ray:$address"
else
    srun --overlap --nodes=1 --ntasks=1 -w "$head" coplay sweep ppo --game stag-hunt \
        --vary discount=0.9,0.95,0.99 entropy-weight=0,0.01 --seeds 5 --steps 1000000 \
        --on "ray:$address" --out "$out"
fi
