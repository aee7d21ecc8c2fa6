# Makes what kind's images/base/Dockerfile makes of its packages and files. Runs in a container of Debian that has both.
set -euo pipefail

# A node is no machine: nothing starts but what is enabled below, and its journal is not the kernel's.
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \
  /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/basic.target.wants/* \
  /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl*
echo ReadKMsg=no >>/etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd /sbin/init
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service # it registers things with the kernel, which is not the container's own

mkdir -p /etc/kubernetes/manifests
ctr oci spec |
  jq '.hooks.createContainer |= . + [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
    >/etc/containerd/cri-base.json
containerd --version
runc --version
