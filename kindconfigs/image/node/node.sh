# Brings the images in /skewproof/images into the node's containerd. Runs in a container of the base image.
set -euo pipefail

# The kernel lets nobody without CAP_SYS_RESOURCE make a process less likely to be killed for want of memory. Where an engine lacks that
# capability, no container of a pod would start. (kind's entrypoint sets the same in rootless engines.)
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml
grep -q 'restrict_oom_score_adj = true' /etc/containerd/config.toml

containerd >/skewproof/containerd.log 2>&1 &
trap 'tail /skewproof/containerd.log >&2' ERR
for ((i = 0; i < 100; i++)); do
  ctr version >/dev/null 2>&1 && break
  sleep 0.1
done
for archive in /skewproof/images/*.tar; do
  # Pinned: a kubelet that is short of disk removes images, and these can be pulled from nowhere.
  ctr --namespace=k8s.io images import --label=io.cri-containerd.pinned=pinned --all-platforms --no-unpack "$archive" >/dev/null
done
kill %1
wait %1 || true
rm -rf /skewproof /run/containerd
