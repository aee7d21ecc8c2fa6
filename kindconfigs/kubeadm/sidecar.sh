#!/bin/bash
# Adds a sidecar to this control-plane node ('sidecar.sh add'), or removes it ('sidecar.sh remove').
# Run it as root. docs/proxy.md says what must be done before and after.
set -eu
case ${1-} in
add | remove) ;;
*) echo "usage: $0 add|remove" >&2 && exit 4 ;;
esac
export KUBECONFIG=/etc/kubernetes/admin.conf
cd "$(dirname "$0")"
# kubeadm would take the address of the default route: give it the one that is advertised now.
address=$(sed -n 's/^ *- --advertise-address=//p' /etc/kubernetes/manifests/kube-apiserver.yaml)
{
  kubectl -n kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}'
  printf '\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n'
  printf 'localAPIEndpoint: {advertiseAddress: "%s"}\n' "$address"
  echo 'patches: {directory: /etc/kubernetes/patches}'
} >kubeadm.yaml
if [ "$1" = add ]; then
  mkdir -p /etc/kubernetes/patches
  cp patches/* /etc/kubernetes/patches/
  kubeadm init phase control-plane apiserver --config kubeadm.yaml
  # The old kube-apiserver stops first, which takes up to half a minute. The sidecar needs its port.
  until ss -Hltn 'sport = :6443' | grep -q '127\.0\.0\.1:6443'; do sleep 1; done
  cp skewproof-proxy.yaml /etc/kubernetes/manifests/
  until [ "$(curl -s 127.0.0.1:6440/readyz)" = ok ]; do sleep 1; done
else
  rm /etc/kubernetes/manifests/skewproof-proxy.yaml
  for patch in patches/*; do rm "/etc/kubernetes/$patch"; done
  # The kube-apiserver needs the sidecar's port.
  while ss -Hltn 'sport = :6443' | grep -qF "$address"; do sleep 1; done
  kubeadm init phase control-plane apiserver --config kubeadm.yaml
  until curl -sf --cacert /etc/kubernetes/pki/ca.crt "https://$address:6443/readyz"; do sleep 1; done
fi
